#include "cli/config_text.h"

#include "cli/foundation/replay.h"
#include "hub/server/hub_options.h"
#include "serve/repository/served_settings.h"
#include "serve/server/server_options.h"
#include "serve/speculation/speculation.h"
#include "train/config/job_config.h"

static const char title[] =
    "# Config keys\n\n"
    "Made by `phloem config --docs` from the tables by which the program reads configs.\n"
    "A config is a YAML file; `--set key=value` on the command line overrides its values.\n";

ph_status cli_config_print(const char *path, const struct cli_texts *sets)
{
    struct ph_config *config;
    PH_TRY(ph_config_read(path, sets->items, sets->count, &config));
    ph_status status = ph_config_write(config, "-");
    ph_config_destroy(config);
    return status;
}

/* Option tables of configs that are not for training. */
static const struct ph__option_table *const verbs[] = {&ph__hub_options, &ph__server_options,
    &ph__served_options, &ph__speculation_options, &cli_replay_options};

ph_status cli_config_describe(bool is_markdown)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open("-", &writer));
    ph_status status = is_markdown ? ph__writer_write(writer, title, sizeof title - 1) : PH_OK;
    if (status == PH_OK)
        status = ph__job_config_describe(writer, is_markdown);
    if (status == PH_OK)
        status = ph__config_describe(writer, verbs, sizeof verbs / sizeof *verbs, is_markdown);
    return ph__writer_end(writer, status);
}
