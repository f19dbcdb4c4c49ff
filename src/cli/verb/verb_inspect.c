/* phloem inspect [data|checkpoint|config|model] PATH */
#include <string.h>

#include "base/file/file.h"
#include "cli/config_text.h"
#include "cli/verb.h"
#include "cli/verb/inspect.h"

static const char *const kinds[] = {"data", "checkpoint", "config", "model"};
enum kind { KIND_DATA, KIND_CHECKPOINT, KIND_CONFIG, KIND_MODEL, NUM_KINDS };

/* A folder of a checkpoint's files is named as the file is that one rank writes, and maybe as a folder. */
static bool is_checkpoint(const char *path)
{
    return ph__path_ends_in(path, ".safetensors") || ph__path_ends_in(path, ".safetensors/");
}

static ph_status find_kind(const struct cli_arguments *arguments, enum kind *kind_out)
{
    if (arguments->num_positional == 1) {
        const char *path = arguments->positional[0];
        *kind_out = is_checkpoint(path) ? KIND_CHECKPOINT : cli_is_prepared(path) ? KIND_DATA : KIND_MODEL;
        return PH_OK;
    }
    for (size_t i = 0; i < NUM_KINDS; i++) {
        if (strcmp(arguments->positional[0], kinds[i]) == 0) {
            *kind_out = (enum kind)i;
            return PH_OK;
        }
    }
    return cli_unknown("kind of thing to inspect", arguments->positional[0], kinds, NUM_KINDS);
}

static ph_status inspect_source(enum kind kind, const char *path, const struct cli_texts *sets, bool is_dot)
{
    struct cli_source source;
    const bool is_data = kind == KIND_DATA;
    ph_status status = (is_data ? cli_source_open_data : cli_source_open)(&source, path, sets);
    if (status == PH_OK)
        status = is_data ? cli_inspect_data(&source) : cli_inspect_model(&source, is_dot);
    cli_source_close(&source);
    return status;
}

ph_status verb_inspect(int argc, char **argv)
{
    struct cli_texts sets = {0};
    bool is_dot = false;
    const struct cli_flag flags[] = {
        {"--dot", CLI_SWITCH, &is_dot, NULL, "model: its graph as Graphviz text"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "in place of the config's value"},
    };
    const struct cli_command command = {"inspect",
        "Shows data (CONFIG or DIR), a checkpoint (FILE, or the folder of its files), a config (CONFIG) or "
        "a\n"
        "model (CONFIG or DIR). DIR is a folder that phloem train made, or, for data, phloem prepare.",
        "[data|checkpoint|config|model] PATH", 1, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    enum kind kind;
    PH_TRY(find_kind(&arguments, &kind));
    const char *path = arguments.positional[arguments.num_positional - 1];
    if (kind == KIND_CHECKPOINT)
        return cli_inspect_checkpoint(path);
    if (kind == KIND_CONFIG)
        return cli_config_print(path, &sets);
    return inspect_source(kind, path, &sets, is_dot);
}
