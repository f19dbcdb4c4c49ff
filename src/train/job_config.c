#include "train/job_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

#define NUM_SECTIONS 10
#define NUM_TRAINING_SECTIONS 7 /* the first ones */

static const struct ph_option top_options[] = {
    {.key = "seed",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_top_settings, seed),
        .default_text = "1",
        .min = 0,
        .max = 9007199254740992.0,
        .help = "Of initial weights, shuffling and dropout."},
    {.key = "threads",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_top_settings, threads),
        .default_text = "0",
        .min = 0,
        .max = PH_MAX_THREADS,
        .help =
            "Threads that compute; 0: as many as this process may run on. The result does not depend on it.",
        .may_change = true},
};

static const struct ph_option_table top_table = {
    .section = "",
    .help = "Keys of the whole job.",
    .options = top_options,
    .num_options = sizeof top_options / sizeof *top_options,
    .settings_size = sizeof(struct ph_top_settings),
};

static void list_sections(struct ph_config *config, struct ph_section sections[NUM_SECTIONS])
{
    const struct ph_section all[NUM_SECTIONS] = {
        {&top_table, &config->top},
        {&ph__data_options, &config->data},
        {&ph__model_options, &config->model},
        {&ph__train_options, &config->train},
        {&ph__optimizer_options, &config->optimizer},
        {&ph__parallel_options, &config->parallel},
        {&ph__published_options, &config->published},
        {&ph__prepare_options, &config->prepare},
        {&ph__synth_options, &config->synth},
        {&ph__tune_options, &config->tune},
    };
    memcpy(sections, all, sizeof all);
}

/* For those who only read them: a section's settings are one pointer, for readers and writers alike. */
static void list_const_sections(const struct ph_config *config, struct ph_section sections[NUM_SECTIONS])
{
    list_sections((struct ph_config *)config, sections);
}

/* ---- reading ---------------------------------------------------------------------------------------------- */

ph_status ph__job_config_parse(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets)
{
    struct ph_section sections[NUM_SECTIONS];
    *config = (struct ph_config){0};
    list_sections(config, sections);
    PH_TRY(ph__config_read(path, sets, num_sets, sections, NUM_SECTIONS, &config->arena));
    ph__model_section_finish(&config->model);
    ph__optimizer_section_finish(&config->optimizer);
    return PH_OK;
}

ph_status ph__job_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets)
{
    PH_TRY(ph__job_config_parse(config, path, sets, num_sets));
    return ph__data_settings_finish(&config->data, &config->arena);
}

void ph__job_config_fini(struct ph_config *config)
{
    ph__arena_fini(&config->arena);
}

ph_status ph_config_read(
    const char *path, const char *const *sets, size_t num_sets, struct ph_config **config_out)
{
    struct ph_config *config = malloc(sizeof *config);
    if (config == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a config");
    ph_status status = ph__job_config_read(config, path, sets, num_sets);
    if (status == PH_OK)
        *config_out = config;
    else
        ph_config_destroy(config);
    return status;
}

void ph_config_destroy(struct ph_config *config)
{
    if (config == NULL)
        return;
    ph__job_config_fini(config);
    free(config);
}

/* ---- what it says ----------------------------------------------------------------------------------------- */

const struct ph_data_settings *ph_config_data(const struct ph_config *config)
{
    return &config->data;
}

const struct ph_synth_settings *ph_config_synth(const struct ph_config *config)
{
    return &config->synth;
}

const struct ph_model_settings *ph_config_model(const struct ph_config *config)
{
    return &config->model.settings;
}

const struct ph_train_settings *ph_config_train(const struct ph_config *config)
{
    return &config->train;
}

const struct ph_optimizer_settings *ph_config_optimizer(const struct ph_config *config)
{
    return &config->optimizer.settings;
}

struct ph_prepare_options ph_config_prepare_options(const struct ph_config *config)
{
    return (struct ph_prepare_options){
        .num_threads = (size_t)config->top.threads,
        .part_bytes = (uint64_t)config->prepare.part_bytes,
        .block_rows = (size_t)config->prepare.block_rows,
        .vocabulary_bytes = (uint64_t)config->prepare.vocabulary_bytes,
    };
}

struct ph_train_job ph_config_job(const struct ph_config *config)
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

/* ---- writing and comparing -------------------------------------------------------------------------------- */

ph_status ph_config_write(const struct ph_config *config, const char *path)
{
    struct ph_section sections[NUM_SECTIONS];
    struct ph_writer *writer;
    list_const_sections(config, sections);
    bool is_standard = strcmp(path, "-") == 0;
    PH_TRY((is_standard ? ph__writer_open : ph__writer_open_atomic)(path, &writer));
    ph_status status = ph__config_write(writer, sections, NUM_TRAINING_SECTIONS);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

ph_status ph__job_config_compare(const struct ph_config *before, const struct ph_config *after)
{
    struct ph_section before_sections[NUM_SECTIONS], after_sections[NUM_SECTIONS];
    list_const_sections(before, before_sections);
    list_const_sections(after, after_sections);
    return ph__config_compare(
        before_sections, after_sections, NUM_TRAINING_SECTIONS, "may not change on resume");
}

/* Of what may change on resume, epochs, steps, patience and bad rows shape the outcome all the same. */
static struct ph_config only_outcome(const struct ph_config *config)
{
    struct ph_config bare = *config;
    bare.top = (struct ph_top_settings){0};
    bare.data.train = bare.data.valid = bare.data.test = bare.data.prepared = NULL;
    bare.data.num_prefetched = 0;
    bare.train.report_seconds = bare.train.checkpoint_seconds = 0;
    bare.train.checkpoint_steps = bare.train.checkpoints_kept = 0;
    bare.published = (struct ph_published_settings){0};
    return bare;
}

ph_status ph__job_config_outcome(
    const struct ph_config *config, struct ph_arena *arena, const char **text_out)
{
    struct ph_config bare = only_outcome(config);
    struct ph_section sections[NUM_SECTIONS];
    const char *text = "", *changes;
    list_sections(&bare, sections);
    for (size_t i = 0; i < NUM_TRAINING_SECTIONS && text != NULL; i++) {
        PH_TRY(ph__config_changes(&sections[i], arena, &changes));
        text = ph__arena_printf(arena, "%s%s", text, changes);
    }
    *text_out = text;
    return text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__job_config_describe(struct ph_writer *writer, bool is_markdown)
{
    struct ph_config none = {0};
    struct ph_section sections[NUM_SECTIONS];
    const struct ph_option_table *tables[NUM_SECTIONS];
    list_sections(&none, sections);
    for (size_t i = 0; i < NUM_SECTIONS; i++)
        tables[i] = sections[i].table;
    return ph__config_describe(writer, tables, NUM_SECTIONS, is_markdown);
}
