#include "train/config/job_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/thread/parallel.h"
#include "graph/recipe_table.h"
#include "serve/model_folder.h"

#define MAX_SECTIONS (11 + PH_NUM_MODEL_SECTIONS)

static const struct ph__option top_options[] = {
    PH_INTEGER_KEY("seed", struct ph_run_settings, seed, "1", 0, 9007199254740992.0,
        "Seed of initial weights, shuffling and dropout."),
    PH_INTEGER_KEY("threads", struct ph_run_settings, num_threads, "0", 0, PH_MAX_THREADS,
        "Number of threads that compute. 0: as many as this process may run on. The result does not depend "
        "on it.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK),
    PH_CHOICE_KEY("team", struct ph_run_settings, team, "pthread", "pthread|openmp",
        "Kind of the threads that compute. pthread: threads of Phloem, which sleep when idle; fewer of them "
        "compute while other processes keep a core busy. openmp: threads of libgomp. The result does not "
        "depend on it.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK),
};

static const struct ph__option_table top_table = {
    .section = "",
    .help = "Keys of the whole run.",
    .options = top_options,
    .num_options = sizeof top_options / sizeof *top_options,
    .settings_size = sizeof(struct ph_run_settings),
};

/* Lists the sections that a training reads, in the order of a written config. has_all_kinds: with the
 * sections of every kind of model, to read a config by; else with those of the chosen kind alone. */
static size_t list_training_sections(
    struct ph_config *config, bool has_all_kinds, struct ph__section sections[MAX_SECTIONS])
{
    size_t count = 0;
    sections[count++] = (struct ph__section){&top_table, &config->run};
    sections[count++] = (struct ph__section){&ph__data_options, &config->data};
    count += (has_all_kinds ? ph__model_sections : ph__model_used_sections)(&config->model, sections + count);
    sections[count++] = (struct ph__section){&ph__train_options, &config->train};
    sections[count++] = (struct ph__section){&ph__optimizer_options, &config->optimizer};
    sections[count++] = (struct ph__section){&ph__parallel_options, &config->parallel};
    sections[count++] = (struct ph__section){&ph__published_options, &config->published};
    return count;
}

/* Adds the sections of other verbs behind those of a training. */
static size_t list_sections(struct ph_config *config, struct ph__section sections[MAX_SECTIONS])
{
    size_t count = list_training_sections(config, true, sections);
    sections[count++] = (struct ph__section){&ph__prepare_options, &config->prepare};
    sections[count++] = (struct ph__section){&ph__synth_options, &config->synth};
    sections[count++] = (struct ph__section){&ph__slates_options, &config->slates};
    sections[count++] = (struct ph__section){&ph__csbm_options, &config->csbm};
    sections[count++] = (struct ph__section){&ph__tune_options, &config->tune};
    return count;
}

/* Lists the sections of a training for reading alone. The cast is there because a section has one settings
 * pointer, for readers and writers. */
static size_t list_used_sections(const struct ph_config *config, struct ph__section sections[MAX_SECTIONS])
{
    return list_training_sections((struct ph_config *)config, false, sections);
}

/* ---- reading ---- */

/* Reads a config, from a text if one is given, without looking for the prepared data that it names. */
static ph_status parse(
    struct ph_config *config, const char *path, const char *text, const char *const *sets, size_t num_sets)
{
    struct ph__section sections[MAX_SECTIONS];
    *config = (struct ph_config){0};
    const size_t count = list_sections(config, sections);
    if (text != NULL)
        PH_TRY(ph__config_read_text(path, text, sets, num_sets, sections, count, &config->arena));
    else
        PH_TRY(ph__config_read(path, sets, num_sets, sections, count, &config->arena));
    config->optimizer.settings.groups = config->optimizer.groups.items;
    config->optimizer.settings.num_groups = config->optimizer.groups.count;
    return ph__model_section_finish(&config->model, path, &config->arena);
}

ph_status ph__job_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets)
{
    PH_TRY(parse(config, path, NULL, sets, num_sets));
    return ph__data_settings_finish(&config->data, &config->arena);
}

void ph__job_config_fini(struct ph_config *config)
{
    ph__arena_fini(&config->arena);
}

ph_status ph_config_read(
    const char *path, const char *const *sets, size_t num_sets, struct ph_config **config_out)
{
    return ph_config_from_text(NULL, path, sets, num_sets, config_out);
}

ph_status ph_config_from_text(const char *text, const char *name, const char *const *sets, size_t num_sets,
    struct ph_config **config_out)
{
    struct ph_config *config = malloc(sizeof *config);
    if (config == NULL)
        return ph__out_of_memory("a config");
    ph_status status = parse(config, name, text, sets, num_sets);
    if (status == PH_OK)
        status = ph__data_settings_finish(&config->data, &config->arena);
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

/* ---- kept configs ---- */

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = folder != NULL ? strlen(folder) : 0;
    return path != NULL && length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Replaces the splits that lie in the former prepared data by those of the prepared data named now. */
static ph_status find_splits_anew(struct ph_config *config, const char *former)
{
    const char **splits[] = {&config->data.paths.train, &config->data.paths.valid, &config->data.paths.test};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (lies_in(*splits[i], former))
            *splits[i] = NULL;
    return ph__data_settings_finish(&config->data, &config->arena);
}

ph_status ph__kept_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets)
{
    struct ph_config kept = {0};
    *config = (struct ph_config){0};
    ph_status status = ph__model_folder_blame(parse(&kept, path, NULL, NULL, 0));
    if (status == PH_OK)
        status = parse(config, path, NULL, sets, num_sets);
    if (status == PH_OK && !is_same(kept.data.prepared, config->data.prepared))
        status = find_splits_anew(config, kept.data.prepared);
    ph__job_config_fini(&kept);
    return status;
}

/* PH_ERROR_CONFIG when the two differ in a key that may not change on resume. */
static ph_status compare(const struct ph_config *before, const struct ph_config *after)
{
    static const char rule[] = "may not change on resume";
    struct ph__section before_sections[MAX_SECTIONS], after_sections[MAX_SECTIONS];
    if (before->model.settings.kind != after->model.settings.kind)
        return ph_fail(PH_ERROR_CONFIG, "model.kind was '%s' and is now '%s', but %s",
            ph_model_name(before->model.settings.kind), ph_model_name(after->model.settings.kind), rule);
    const size_t count = list_used_sections(before, before_sections);
    list_used_sections(after, after_sections);
    const struct ph__key_filter filter = {.without = PH_KEY_MAY_CHANGE};
    return ph__config_compare(before_sections, after_sections, count, filter, rule);
}

ph_status ph__kept_config_compare(const struct ph_config *config, const char *path)
{
    struct ph_config kept = {0};
    ph_status status = ph__kept_config_read(&kept, path, NULL, 0);
    if (status == PH_OK)
        status = compare(&kept, config);
    ph__job_config_fini(&kept);
    return status;
}

/* ---- sections ---- */

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

ph_status ph_config_prepare_options(const struct ph_config *config, struct ph_prepare_options *options)
{
    const struct ph_prepare_options own = {
        .size = sizeof own, .num_threads = config->run.num_threads, .settings = config->prepare};
    return ph__options_give(&own, sizeof own, options, "ph_prepare_options");
}

struct ph__train_job ph__config_job(const struct ph_config *config)
{
    return (struct ph__train_job){
        .run = config->run,
        .model = &config->model.settings,
        .train = &config->train,
        .optimizer = &config->optimizer.settings,
        .parallel = &config->parallel,
        .paths = config->data.paths,
        .reading = config->data.reading,
    };
}

/* ---- writing as text ---- */

ph_status ph_config_write(const struct ph_config *config, const char *path)
{
    struct ph__section sections[MAX_SECTIONS];
    struct ph__writer *writer;
    const size_t count = list_used_sections(config, sections);
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__config_write(writer, sections, count));
}

/* Leaves the top level out: a run's key stands beside its seed. */
ph_status ph__job_config_outcome(
    const struct ph_config *config, struct ph__arena *arena, const char **text_out)
{
    const struct ph__key_filter filter = {.without = PH_KEY_NO_OUTCOME};
    struct ph__section sections[MAX_SECTIONS];
    const size_t count = list_used_sections(config, sections);
    const char *changes, *recipes;
    PH_TRY(ph__config_changes(sections + 1, count - 1, filter, arena, &changes));
    PH_TRY(ph__recipe_table_text(config->train.recipes, arena, &recipes));
    *text_out = strcmp(recipes, "none") == 0
                    ? changes
                    : ph__arena_printf(arena, "%strain.recipes=%s\n", changes, recipes);
    return *text_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__job_config_common(
    const struct ph_config *config, struct ph__arena *arena, const char **text_out)
{
    const struct ph__key_filter filter = {.without = PH_KEY_PER_RANK};
    struct ph__section sections[MAX_SECTIONS];
    const size_t count = list_used_sections(config, sections);
    return ph__config_values(sections, count, filter, arena, text_out);
}

/* ---- a job ---- */

/* Gives the data section that the job reads by, with the key's default where the job says 0. */
static ph_status take_reading(
    const struct ph__train_job *job, struct ph__arena *arena, struct ph__section *section_out)
{
    void *settings;
    PH_TRY(ph__config_defaults(&ph__data_options, arena, &settings));
    struct ph_reading *taken = &((struct ph_data_settings *)settings)->reading, plain = *taken;
    *taken = job->reading;
    if (taken->shuffle_bytes == 0)
        taken->shuffle_bytes = plain.shuffle_bytes;
    if (taken->shuffle_lanes == 0)
        taken->shuffle_lanes = plain.shuffle_lanes;
    if (taken->negative_rate == 0)
        taken->negative_rate = plain.negative_rate;
    *section_out = (struct ph__section){&ph__data_options, settings};
    return PH_OK;
}

ph_status ph__job_values(const struct ph__train_job *job, struct ph__key_filter filter,
    struct ph__arena *arena, const char **text_out)
{
    /* Casts away const: the sections are only read here, but their pointers serve writers, too. */
    struct ph__optimizer_section optimizer = {.settings = *job->optimizer,
        .groups = {job->optimizer->num_groups, (void *)(uintptr_t)job->optimizer->groups}};
    struct ph__model_section model;
    struct ph__section reading, sections[MAX_SECTIONS] = {{&top_table, (void *)(uintptr_t)&job->run}};
    const struct ph__key_filter reads = {filter.with | PH_KEY_NO_ENCODING, filter.without};
    const char *values, *read, *recipes;
    size_t count = 1;
    PH_TRY(ph__model_section_take(&model, job->model, arena));
    count += ph__model_used_sections(&model, sections + count);
    sections[count++] = (struct ph__section){&ph__train_options, (void *)(uintptr_t)job->train};
    sections[count++] = (struct ph__section){&ph__optimizer_options, &optimizer};
    if (job->parallel != NULL)
        sections[count++] = (struct ph__section){&ph__parallel_options, (void *)(uintptr_t)job->parallel};
    PH_TRY(take_reading(job, arena, &reading));
    PH_TRY(ph__config_values(&reading, 1, reads, arena, &read));
    PH_TRY(ph__config_values(sections, count, filter, arena, &values));
    PH_TRY(ph__recipe_table_text(job->train->recipes, arena, &recipes));
    *text_out = ph__arena_printf(arena, "%s%strain.recipes=%s\n", values, read, recipes);
    return *text_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- describing ---- */

ph_status ph__job_config_describe(struct ph__writer *writer, bool is_markdown)
{
    struct ph_config none = {0};
    struct ph__section sections[MAX_SECTIONS];
    const struct ph__option_table *tables[MAX_SECTIONS];
    size_t count = 0;
    const size_t num_sections = list_sections(&none, sections);
    for (size_t i = 0; i < num_sections; i++)
        if (strncmp(sections[i].table->section, "model.", 6) != 0) /* `phloem models` explains these */
            tables[count++] = sections[i].table;
    return ph__config_describe(writer, tables, count, is_markdown);
}

ph_status ph_config_schema(char **json_out)
{
    struct ph_config none = {0};
    struct ph__section sections[MAX_SECTIONS];
    struct ph__json *list = ph__json_array();
    const size_t num_sections = list_sections(&none, sections);
    ph_status status = PH_OK;
    for (size_t i = 0; i < num_sections && status == PH_OK; i++)
        status = ph__config_schema_add(list, sections[i].table);
    if (status == PH_OK)
        status = ph__json_text(list, 0, json_out);
    ph__json_destroy(list);
    return status;
}
