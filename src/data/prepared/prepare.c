/* Preparing data: text in, a folder of prepared splits out (docs/DATA.md).
 *
 *     FOLDER/source.yaml    the data section that the folder was made by
 *     FOLDER/plan.json      the files, and how they were cut
 *     FOLDER/learning/…     results of the first pass for each part, until the encoder is there
 *     FOLDER/encoder.json   the encoder
 *     FOLDER/train/…        parts and, when all are there, the manifest; likewise for valid and test
 *     FOLDER/prepared.yaml  the data section that reads the folder; written last
 *
 * Each file appears when it is whole and durable, and holds the same bytes for every number of threads and
 * after any interruption. So resuming means making the files that are missing. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/text/utf8.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "data/learn/learn.h"
#include "data/prepared/prepare_options.h"
#include "data/prepared/prepare_passes.h"

struct preparation {
    const struct ph_data_settings *settings;
    const char *folder;
    const struct ph_prepare_options *options;
    struct ph__arena arena;
    struct ph_encoder *encoder;
    char digest[65]; /* seal of the encoder, once it is whole */
    struct ph__prepare_plan plan;
    struct ph__prepare_context context;
    struct ph__prepare_result *results; /* (plan.num_tasks) */
    struct ph__rows *blocks;            /* (num_threads) blocks that the threads work on */
    size_t num_threads;
    struct ph__tasks tasks;
    int lock; /* lock of the folder */
};

static bool has_split(const struct ph_data_settings *settings, size_t split)
{
    return ph__split_path(settings, split) != NULL;
}

/* ---- the folder ---- */

/* Counts of a folder's entries. */
struct listing {
    size_t num_entries, num_foreign; /* foreign: not the settings */
    bool has_settings;
};

static ph_status add_entry(void *argument, const char *name)
{
    struct listing *listing = argument;
    listing->num_entries++;
    if (strcmp(name, PH_PREPARED_SOURCE) == 0)
        listing->has_settings = true;
    else if (strcmp(name, PH_PREPARED_SOURCE ".tmp") != 0) /* left by a kill */
        listing->num_foreign++;
    return PH_OK;
}

/* Returns PH_OK for an empty folder and, with may_resume, for the beginning of a preparation: its settings,
 * which are written first, or a remainder of them after a kill. PH_ERROR_USAGE for other folders: their files
 * would be taken for the preparation's, or get lost among them. */
static ph_status check_folder(const char *folder, bool may_resume)
{
    struct listing listing = {0};
    PH_TRY(ph__directory_visit(folder, add_entry, &listing));
    if (listing.num_foreign > 0 && !listing.has_settings)
        return ph_fail(PH_ERROR_USAGE,
            "%s: the folder is not empty and has no preparation (no " PH_PREPARED_SOURCE
            "): give --out a new folder",
            folder);
    if (listing.num_entries > 0 && !may_resume)
        return ph_fail(
            PH_ERROR_USAGE, "%s: the folder is not empty; continue its preparation with --resume", folder);
    return PH_OK;
}

static const char *path_of(struct preparation *preparation, const char *name)
{
    return ph__path_join(&preparation->arena, preparation->folder, name);
}

static ph_status open_folder(struct preparation *preparation)
{
    PH_TRY(ph__directory_create(preparation->folder));
    PH_TRY(ph__directory_lock(preparation->folder, &preparation->lock));
    return check_folder(preparation->folder, preparation->options->may_resume);
}

static ph_status write_settings(const struct ph__section *section, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__config_write(writer, section, 1));
}

/* Saves the settings, or compares them with the saved ones. */
static ph_status check_settings(struct preparation *preparation)
{
    struct ph_data_settings now = *preparation->settings;
    const struct ph__section section = {&ph__data_options, &now};
    const char *path = path_of(preparation, PH_PREPARED_SOURCE);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (!ph__file_exists(path))
        return write_settings(&section, path);
    return ph__data_settings_compare(path, &now, "may not change on resume");
}

/* Loads the encoder if there is one, else outlines it for the first pass. */
static ph_status open_encoder(struct preparation *preparation, const char *path, bool *is_outline)
{
    *is_outline = !ph__file_exists(path);
    if (*is_outline)
        return ph__encoder_outline(preparation->settings, &preparation->encoder);
    return ph_encoder_load(path, &preparation->encoder);
}

/* Learns and saves the encoder. Needs a checked plan: results of another plan would be taken for this
 * plan's. */
static ph_status complete_encoder(struct preparation *preparation, const char *path, const char *learning)
{
    if (ph__fit_first_wanted(preparation->encoder) != NULL)
        PH_TRY(ph__prepare_learn(
            preparation->settings, &preparation->plan, learning, preparation->options, preparation->encoder));
    return ph_encoder_save(preparation->encoder, path);
}

static ph_status make_encoder(struct preparation *preparation, const char *path, bool is_outline)
{
    const char *learning = path_of(preparation, "learning");
    if (learning == NULL)
        return PH_ERROR_MEMORY;
    if (is_outline)
        PH_TRY(complete_encoder(preparation, path, learning));
    PH_TRY(ph__encoder_digest(preparation->encoder, preparation->digest));
    return ph__prepare_learn_clean(learning);
}

/* Saves the plan, or compares it with the saved one. */
static ph_status check_plan(struct preparation *preparation)
{
    struct ph__prepare_plan *plan = &preparation->plan;
    const char *path = path_of(preparation, "plan.json");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (ph__file_exists(path))
        return ph__prepare_plan_compare(plan, path);
    return ph__prepare_plan_save(plan, path);
}

/* ---- the parts ---- */

static ph_status run_task(void *argument, size_t task, size_t worker)
{
    struct preparation *preparation = argument;
    return ph__prepare_task(&preparation->context, &preparation->plan.tasks[task], task,
        &preparation->blocks[worker], &preparation->results[task]);
}

static ph_status make_parts(struct preparation *preparation)
{
    const struct ph__prepare_plan *plan = &preparation->plan;
    struct ph__prepare_context *context = &preparation->context;
    *context = (struct ph__prepare_context){.encoder = preparation->encoder,
        .folder = preparation->folder,
        .cut = plan->cut,
        .max_bad_rows = preparation->settings->reading.max_bad_rows,
        .may_resume = preparation->options->may_resume,
        .tasks = &preparation->tasks};
    ph__part_digest(preparation->digest, context->digest);
    PH_TRY(ph__row_layout_init(&context->layout, preparation->encoder));
    size_t num_threads = preparation->options->num_threads;
    preparation->num_threads = num_threads != 0 ? num_threads : ph__cpu_count();
    preparation->results = calloc(plan->num_tasks + 1, sizeof *preparation->results);
    preparation->blocks = calloc(preparation->num_threads, sizeof *preparation->blocks);
    if (preparation->results == NULL || preparation->blocks == NULL)
        return ph__out_of_memory("prepare: %zu parts", plan->num_tasks);
    struct ph__prepare_pass pass = ph__prepare_pass_begin(preparation->options, false);
    preparation->tasks = (struct ph__tasks){.run = run_task,
        .argument = preparation,
        .num_tasks = plan->num_tasks,
        .stop_signal = preparation->options->stop_signal,
        .on_progress = ph__prepare_pass_tell,
        .progress_context = &pass,
        .progress.total_bytes = ph__prepare_plan_text_bytes(plan, plan->num_tasks)};
    return ph__tasks_run(&preparation->tasks, preparation->num_threads);
}

/* ---- bad rows: counted by task, added up when all tasks are done ---- */

/* Reads up to the first bad row. */
static ph_status read_bad_row(struct ph__source *source)
{
    struct ph__rows rows = {0};
    bool is_end = false;
    ph_status status = PH_OK;
    while (status == PH_OK && !is_end && source->num_bad_rows == 0) {
        rows.num_rows = 0;
        status = ph__source_next(source, &rows, &is_end);
    }
    ph__rows_fini(&rows);
    return status;
}

/* Reads the text of a kept part again, up to its first bad row: a part records only the number of bad
 * rows. */
static ph_status find_bad_row(const struct ph__prepare_context *context, const struct ph__prepare_task *task,
    struct ph__prepare_result *result)
{
    const bool has_arrays = context->encoder->format == PH_DATA_NPY;
    struct ph__source source;
    struct ph__source_position start = {0};
    const struct ph__source_options options = {
        .max_bad_rows = UINT64_MAX, .start = &start, .is_one_file = true, .end_byte = task->end};
    *(has_arrays ? &start.row : &start.byte) = result->kept_bad_begin;
    if (task->file->is_cut)
        PH_TRY(ph__prepare_task_first_line(task, &start.byte));
    ph_status status = ph__source_open(&source, context->encoder, task->file->path, &options);
    if (status == PH_OK)
        status = read_bad_row(&source);
    result->first_bad_line = source.first_bad_line + (has_arrays ? 0 : result->kept_bad_lines);
    memcpy(result->first_bad_reason, source.first_bad_reason, sizeof result->first_bad_reason);
    ph__source_close(&source);
    return status;
}

/* Writes the place of a task's first bad row, and its problem. */
static void describe_bad_row(const struct ph__prepare_context *context, const struct ph__prepare_plan *plan,
    struct ph__prepare_result *results, size_t task, char *text_out, size_t size)
{
    const struct ph__prepare_file *file = plan->tasks[task].file;
    struct ph__prepare_result *result = &results[task];
    ph_status status = PH_OK;
    if (result->has_kept_bad && result->first_bad_reason[0] == '\0')
        status = find_bad_row(context, &plan->tasks[task], result);
    uint64_t line = result->first_bad_line;
    for (size_t i = task; i-- > 0 && plan->tasks[i].file == file;)
        line += results[i].num_lines;
    if (status == PH_OK)
        snprintf(text_out, size, "%s:%" PRIu64 ": %s", file->path, line, result->first_bad_reason);
    else
        snprintf(text_out, size, "%s: the bad rows can no longer be read", file->path);
}

/* PH_ERROR_DATA naming the file and the line when the split has more bad rows than context->max_bad_rows.
 * Keeps the first bad rows that it finds in `results` (num_tasks). */
static ph_status check_bad_rows(const struct ph__prepare_context *context,
    const struct ph__prepare_plan *plan, struct ph__prepare_result *results, enum ph__split split)
{
    uint64_t num_bad_rows = 0;
    for (size_t i = 0; i < plan->num_tasks; i++) {
        if (plan->tasks[i].file->split != split)
            continue;
        num_bad_rows += results[i].num_bad_rows;
        if (num_bad_rows <= context->max_bad_rows)
            continue;
        char place[1024];
        describe_bad_row(context, plan, results, i, place, sizeof place);
        return ph_fail(PH_ERROR_DATA,
            "%s; %" PRIu64 " bad rows up to this one, more than data.max_bad_rows = %" PRIu64, place,
            num_bad_rows, context->max_bad_rows);
    }
    return PH_OK;
}

/* Gives the caller the place and the problem of the first bad row of all; "" when there is none. */
static void tell_first_bad_row(const struct preparation *preparation)
{
    char text[512] = "";
    for (size_t i = 0; i < preparation->plan.num_tasks && text[0] == '\0'; i++)
        if (preparation->results[i].num_bad_rows > 0)
            describe_bad_row(
                &preparation->context, &preparation->plan, preparation->results, i, text, sizeof text);
    ph__buffer_set(preparation->options->first_bad_row, text);
}

/* ---- splits ---- */

static ph_status add_results(
    const struct preparation *preparation, enum ph__split split, struct ph__manifest *manifest)
{
    const struct ph__prepare_plan *plan = &preparation->plan;
    size_t num_parts = 0;
    for (size_t i = 0; i < plan->num_tasks; i++)
        num_parts += preparation->results[i].num_parts;
    manifest->parts = calloc(num_parts + 1, sizeof *manifest->parts);
    if (manifest->parts == NULL)
        return ph__out_of_memory("prepare: %zu parts", num_parts);
    for (size_t i = 0; i < plan->num_tasks; i++) {
        const struct ph__prepare_result *result = &preparation->results[i];
        if (plan->tasks[i].file->split != split)
            continue;
        for (size_t part = 0; part < result->num_parts; part++) {
            manifest->parts[manifest->num_parts++] = result->parts[part];
            manifest->num_rows += result->parts[part].num_rows;
            manifest->num_words += result->parts[part].num_words;
            manifest->num_bytes += result->parts[part].num_bytes;
        }
        manifest->num_bad_rows += result->num_bad_rows;
    }
    return PH_OK;
}

static ph_status write_manifest(
    struct preparation *preparation, enum ph__split split, struct ph_prepare_summary *summary)
{
    struct ph__manifest manifest = {.num_parts = 0};
    const char *path = ph__arena_printf(
        &preparation->arena, "%s/%s/" PH_MANIFEST_NAME, preparation->folder, ph__split_names[split]);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    memcpy(manifest.encoder, preparation->digest, sizeof manifest.encoder);
    PH_TRY(check_bad_rows(&preparation->context, &preparation->plan, preparation->results, split));
    ph_status status = add_results(preparation, split, &manifest);
    if (status == PH_OK && manifest.num_rows == 0)
        status = ph_fail(PH_ERROR_DATA, "%s: has no rows", ph__split_path(preparation->settings, split));
    if (status == PH_OK)
        status = ph__manifest_write(&manifest, path);
    summary->num_parts += manifest.num_parts;
    summary->num_bytes += manifest.num_bytes;
    ph__manifest_fini(&manifest);
    return status;
}

static ph_status make_split_folders(struct preparation *preparation)
{
    for (size_t split = 0; split < PH_SPLIT_COUNT; split++) {
        if (!has_split(preparation->settings, split))
            continue;
        const char *path = path_of(preparation, ph__split_names[split]);
        if (path == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(ph__directory_create(path));
    }
    return PH_OK;
}

/* ---- the whole preparation ---- */

static ph_status print_section(const struct preparation *preparation, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "data:\n  prepared: "));
    PH_TRY(ph__config_write_path(writer, preparation->folder));
    return ph__writer_printf(writer, "\n");
}

static ph_status write_section(struct preparation *preparation)
{
    struct ph__writer *writer;
    const char *path = path_of(preparation, "prepared.yaml");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, print_section(preparation, writer));
}

static void add_up(const struct preparation *preparation, struct ph_prepare_summary *summary)
{
    for (size_t i = 0; i < preparation->plan.num_tasks; i++) {
        const struct ph__prepare_result *result = &preparation->results[i];
        summary->num_rows += result->num_rows;
        summary->num_bad_rows += result->num_bad_rows;
        summary->num_text_bytes += result->num_text_bytes;
        summary->num_kept_parts += result->num_kept;
    }
    tell_first_bad_row(preparation);
    summary->num_threads = preparation->num_threads;
}

static ph_status prepare(struct preparation *preparation, struct ph_prepare_summary *summary)
{
    bool is_outline = false;
    const char *encoder_path = path_of(preparation, "encoder.json");
    if (encoder_path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(open_folder(preparation));
    PH_TRY(open_encoder(preparation, encoder_path, &is_outline));
    PH_TRY(ph__prepare_plan_init(&preparation->plan, preparation->settings, preparation->options->settings));
    PH_TRY(check_settings(preparation)); /* writes first: errors before this can be corrected */
    PH_TRY(check_plan(preparation));
    PH_TRY(make_encoder(preparation, encoder_path, is_outline));
    PH_TRY(make_split_folders(preparation));
    uint64_t start_ns = ph__clock_ns();
    PH_TRY(make_parts(preparation));
    summary->seconds = (double)(ph__clock_ns() - start_ns) * 1e-9;
    for (size_t split = 0; split < PH_SPLIT_COUNT; split++)
        if (has_split(preparation->settings, split))
            PH_TRY(write_manifest(preparation, (enum ph__split)split, summary));
    add_up(preparation, summary);
    return write_section(preparation);
}

static void fini(struct preparation *preparation)
{
    for (size_t i = 0; preparation->results != NULL && i < preparation->plan.num_tasks; i++)
        ph__prepare_result_fini(&preparation->results[i]);
    for (size_t i = 0; preparation->blocks != NULL && i < preparation->num_threads; i++)
        ph__rows_fini(&preparation->blocks[i]);
    free(preparation->results);
    free(preparation->blocks);
    ph__row_layout_fini(&preparation->context.layout);
    ph__prepare_plan_fini(&preparation->plan);
    ph__directory_unlock(preparation->lock);
    ph_encoder_destroy(preparation->encoder);
    ph__arena_fini(&preparation->arena);
}

/* Refuses requests that are wrong by settings and options alone, before there is a folder. */
static ph_status check_request(const struct ph_data_settings *settings, const char *folder)
{
    if (!ph__utf8_is_valid(folder, strlen(folder)))
        return ph_fail(PH_ERROR_USAGE,
            "%s: the folder's name is not UTF-8, so no config can name it: choose another", folder);
    if (settings->prepared != NULL)
        return ph_fail(PH_ERROR_CONFIG,
            "data.prepared: '%s' is prepared already; remove this key to prepare its files again",
            settings->prepared);
    if (!has_split(settings, PH_SPLIT_TRAIN) && !has_split(settings, PH_SPLIT_VALID) &&
        !has_split(settings, PH_SPLIT_TEST))
        return ph_fail(
            PH_ERROR_CONFIG, "data.train is missing; prepare needs data.train, data.valid or data.test");
    return PH_OK;
}

/* Refuses data whose splits are rows of one file. */
static ph_status check_whole(const struct ph_data_settings *settings)
{
    const struct ph__field_settings *fields = settings->fields.items;
    bool is_whole = settings->format == PH_DATA_GRAPH;
    for (size_t i = 0; i < settings->fields.count; i++)
        is_whole = is_whole || fields[i].kind == PH_FIELD_SPLIT;
    return !is_whole
               ? PH_OK
               : ph_fail(PH_ERROR_CONFIG,
                     "graphs and data with a field of kind split cannot be prepared: train on the files");
}

ph_status ph_prepare(const struct ph_data_settings *settings, const char *folder,
    const struct ph_prepare_options *options, struct ph_prepare_summary *summary_out)
{
    struct ph_prepare_options own, filled;
    struct preparation preparation = {.settings = settings, .folder = folder, .options = &filled, .lock = -1};
    struct ph_prepare_summary summary = {0};
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_prepare_options"));
    PH_TRY(check_request(settings, folder));
    PH_TRY(check_whole(settings));
    PH_TRY(ph__prepare_options_fill(&own, &filled));
    ph_status status = prepare(&preparation, &summary);
    fini(&preparation);
    if (status == PH_OK)
        *summary_out = summary;
    return status;
}
