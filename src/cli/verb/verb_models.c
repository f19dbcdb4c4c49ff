/* phloem models [KIND] */
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "model/model.h"

static void print_kinds(void)
{
    for (int kind = 0; kind < PH_NUM_MODELS; kind++)
        printf("  %-10s %s\n", ph_model_name(kind), ph_model_description(kind));
    printf("\nKeys under \"model\" are for all models (phloem config --keys); phloem models KIND explains "
           "the keys of one model alone.\n");
}

static ph_status write_keys(const void *table, struct ph__writer *writer)
{
    const struct ph__option_table *keys = table;
    return ph__config_describe(writer, &keys, 1, false);
}

static ph_status explain(const char *name)
{
    const int kind = ph_model_find(name);
    const char *known[PH_NUM_MODELS];
    for (int i = 0; i < PH_NUM_MODELS; i++)
        known[i] = ph_model_name(i);
    if (kind < 0)
        return cli_unknown("model", name, known, PH_NUM_MODELS);
    printf("%s: %s\n", name, ph_model_description(kind));
    if (ph__model(kind)->keys != NULL)
        return cli_print(write_keys, ph__model(kind)->keys);
    printf("\nIt has no keys of its own.\n");
    return PH_OK;
}

ph_status verb_models(int argc, char **argv)
{
    const struct cli_command command = {
        "models", "models dlrm", "Lists the models, or explains the keys of one.", "[KIND]", 0, 1, NULL, 0};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (arguments.num_positional > 0)
        return explain(arguments.positional[0]);
    print_kinds();
    return PH_OK;
}
