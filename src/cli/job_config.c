#include "cli/job_config.h"

#include <string.h>

#define NUM_SECTIONS 8
#define NUM_TRAINING_SECTIONS 6 /* the first ones */

static const struct ph_option top_options[] = {
    {.key = "seed",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct cli_top_settings, seed),
        .default_text = "1",
        .min = 0,
        .max = 9007199254740992.0,
        .help = "Of initial weights, shuffling and dropout."},
    {.key = "threads",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct cli_top_settings, threads),
        .default_text = "0",
        .min = 0,
        .max = 4096,
        .help =
            "Threads that compute; 0: as many as this process may run on. The result does not depend on it.",
        .may_change = true},
};

static const struct ph_option_table top_table = {
    .section = "",
    .help = "Keys of the whole job.",
    .options = top_options,
    .num_options = sizeof top_options / sizeof *top_options,
    .settings_size = sizeof(struct cli_top_settings),
};

static void list_sections(struct cli_job_config *config, struct ph_section sections[NUM_SECTIONS])
{
    const struct ph_section all[NUM_SECTIONS] = {
        {&top_table, &config->top},
        {&ph__data_options, &config->data},
        {&ph__model_options, &config->model},
        {&ph__train_options, &config->train},
        {&ph__optimizer_options, &config->optimizer},
        {&ph__parallel_options, &config->parallel},
        {&ph__prepare_options, &config->prepare},
        {&ph__synth_options, &config->synth},
    };
    for (size_t i = 0; i < NUM_SECTIONS; i++)
        sections[i] = all[i];
}

ph_status cli_job_config_read(struct cli_job_config *config, const char *path, const struct cli_texts *sets)
{
    struct ph_section sections[NUM_SECTIONS];
    *config = (struct cli_job_config){0};
    list_sections(config, sections);
    PH_TRY(ph__config_read(path, sets->items, sets->count, sections, NUM_SECTIONS, &config->arena));
    ph__model_section_finish(&config->model);
    ph__optimizer_section_finish(&config->optimizer);
    return ph__data_settings_finish(&config->data, &config->arena);
}

void cli_job_config_fini(struct cli_job_config *config)
{
    ph__arena_fini(&config->arena);
}

ph_status cli_job_config_write(struct cli_job_config *config, const char *path)
{
    struct ph_section sections[NUM_SECTIONS];
    struct ph_writer *writer;
    list_sections(config, sections);
    bool is_standard = strcmp(path, "-") == 0;
    PH_TRY((is_standard ? ph__writer_open : ph__writer_open_atomic)(path, &writer));
    ph_status status = ph__config_write(writer, sections, NUM_TRAINING_SECTIONS);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

ph_status cli_job_config_compare(struct cli_job_config *config, const char *path)
{
    static const struct cli_texts none;
    struct ph_section before_sections[NUM_SECTIONS], sections[NUM_SECTIONS];
    struct cli_job_config before = {0};
    list_sections(&before, before_sections);
    list_sections(config, sections);
    ph_status status = cli_job_config_read(&before, path, &none);
    if (status == PH_OK)
        status =
            ph__config_compare(before_sections, sections, NUM_TRAINING_SECTIONS, "may not change on resume");
    cli_job_config_fini(&before);
    return status;
}

static const char title[] =
    "# Config keys\n\n"
    "Made by `phloem config --docs` from the tables that the program reads configs by.\n"
    "A config is YAML; `--set key=value` on the command line goes before it.\n";

ph_status cli_job_config_print(const char *path, const struct cli_texts *sets)
{
    struct cli_job_config config = {0};
    ph_status status = cli_job_config_read(&config, path, sets);
    if (status == PH_OK)
        status = cli_job_config_write(&config, "-");
    cli_job_config_fini(&config);
    return status;
}

ph_status cli_job_config_describe(bool is_markdown)
{
    struct cli_job_config none = {0};
    struct ph_section sections[NUM_SECTIONS];
    const struct ph_option_table *tables[NUM_SECTIONS];
    struct ph_writer *writer;
    list_sections(&none, sections);
    for (size_t i = 0; i < NUM_SECTIONS; i++)
        tables[i] = sections[i].table;
    PH_TRY(ph__writer_open("-", &writer));
    ph_status status = is_markdown ? ph__writer_write(writer, title, sizeof title - 1) : PH_OK;
    if (status == PH_OK)
        status = ph__config_describe(writer, tables, NUM_SECTIONS, is_markdown);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

struct ph_train_job cli_job_config_job(const struct cli_job_config *config)
{
    return (struct ph_train_job){
        .seed = (uint64_t)config->top.seed,
        .model = &config->model.settings,
        .train = &config->train,
        .optimizer = &config->optimizer.settings,
        .train_path = config->data.train,
        .valid_path = config->data.valid,
        .test_path = config->data.test,
        .is_shuffled = config->data.is_shuffled,
        .shuffle_bytes = (size_t)config->data.shuffle_bytes,
        .num_prefetched = (size_t)config->data.num_prefetched,
        .negative_rate = config->data.negative_rate,
        .max_bad_rows = (uint64_t)config->data.max_bad_rows,
        .num_threads = (size_t)config->top.threads,
    };
}
