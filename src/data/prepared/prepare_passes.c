#include "data/prepared/prepare_passes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "base/thread/cpu.h"
#include "data/learn/learn.h"
#include "data/source/source.h"

/* ---- learning ---- */

struct learning {
    const struct ph_data_settings *settings;
    const struct ph_encoder *encoder;
    const struct ph__prepare_plan *plan;
    struct ph__arena arena;
    const char **prefixes; /* (num_tasks) tasks of the training split */
    size_t num_tasks;
    uint64_t max_bytes; /* memory for the ids of each thread */
    struct ph__tasks tasks;
};

/* Progress of a learning task. */
struct telling {
    struct learning *learning;
    size_t task;
    bool has_told; /* false: the part had been learnt before */
};

static bool advance_learning(void *argument, uint64_t num_rows, uint64_t num_bytes)
{
    struct telling *telling = argument;
    telling->has_told = true;
    return ph__tasks_advance(&telling->learning->tasks, telling->task, num_rows, num_bytes);
}

static ph_status learn_task(void *argument, size_t number, size_t worker)
{
    (void)worker;
    struct learning *learning = argument;
    const struct ph__prepare_task *task = &learning->plan->tasks[number];
    struct ph__source_position start = {.file = task->file->number};
    struct telling telling = {.learning = learning, .task = number};
    struct ph__fit_summary summary;
    if (task->file->is_cut)
        PH_TRY(ph__prepare_task_first_line(task, &start.byte));
    const struct ph__learn_part part = {.path = learning->settings->paths.train,
        .start = &start,
        .end_byte = task->file->is_cut ? task->end : 0,
        .prefix = learning->prefixes[number],
        .max_bytes = learning->max_bytes,
        .max_bad_rows = learning->settings->reading.max_bad_rows,
        .advance = advance_learning,
        .advance_argument = &telling};
    PH_TRY(ph__learn_part(learning->encoder, &part, &summary));
    if (!telling.has_told)
        ph__tasks_skip(&learning->tasks, task->end - task->begin);
    return PH_OK;
}

/* Names the files of the training split's tasks, which are the plan's first tasks. */
static ph_status name_tasks(struct learning *learning, const char *folder)
{
    const struct ph__prepare_plan *plan = learning->plan;
    learning->prefixes = ph__arena_alloc_array(&learning->arena, plan->num_tasks, sizeof *learning->prefixes);
    if (learning->prefixes == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < plan->num_tasks && plan->tasks[i].file->split == PH_SPLIT_TRAIN; i++) {
        learning->prefixes[i] = ph__arena_printf(&learning->arena, "%s/part-%05zu-%05zu", folder,
            plan->tasks[i].file->number, plan->tasks[i].part);
        if (learning->prefixes[i] == NULL)
            return PH_ERROR_MEMORY;
        learning->num_tasks++;
    }
    return PH_OK;
}

static ph_status learn(struct learning *learning, const char *folder,
    const struct ph_prepare_options *options, struct ph_encoder *encoder)
{
    size_t num_threads = options->num_threads != 0 ? options->num_threads : ph__cpu_count();
    PH_TRY(ph__directory_create(folder));
    PH_TRY(name_tasks(learning, folder));
    learning->max_bytes =
        options->settings.vocabulary_bytes / (2 * num_threads); /* sorting takes as much again */
    struct ph__prepare_pass pass = ph__prepare_pass_begin(options, true);
    learning->tasks = (struct ph__tasks){.run = learn_task,
        .argument = learning,
        .num_tasks = learning->num_tasks,
        .stop_signal = options->stop_signal,
        .on_progress = ph__prepare_pass_tell,
        .progress_context = &pass,
        .progress.total_bytes = ph__prepare_plan_text_bytes(learning->plan, learning->num_tasks)};
    PH_TRY(ph__tasks_run(&learning->tasks, num_threads));
    return ph__learn_finish(learning->settings->paths.train, learning->prefixes, learning->num_tasks,
        options->settings.vocabulary_bytes, encoder);
}

ph_status ph__prepare_learn(const struct ph_data_settings *settings, const struct ph__prepare_plan *plan,
    const char *folder, const struct ph_prepare_options *options, struct ph_encoder *encoder)
{
    struct learning learning = {.settings = settings, .encoder = encoder, .plan = plan};
    ph_status status = learn(&learning, folder, options, encoder);
    ph__arena_fini(&learning.arena);
    return status;
}

struct cleaning {
    const char *folder;
    struct ph__arena arena;
};

static ph_status cannot_remove(const char *path)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
}

static ph_status remove_entry(void *argument, const char *name)
{
    struct cleaning *cleaning = argument;
    const char *path = ph__path_join(&cleaning->arena, cleaning->folder, name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    return unlink(path) == 0 ? PH_OK : cannot_remove(path);
}

ph_status ph__prepare_learn_clean(const char *folder)
{
    struct cleaning cleaning = {.folder = folder};
    ph_status status = ph__directory_visit(folder, remove_entry, &cleaning);
    ph__arena_fini(&cleaning.arena);
    if (status == PH_OK && rmdir(folder) != 0 && errno != ENOENT)
        status = cannot_remove(folder);
    return status;
}

/* ---- making parts ---- */

/* State of a task. */
struct making {
    const struct ph__prepare_context *context;
    const struct ph__prepare_task *task;
    size_t number;          /* number of the task */
    struct ph__arena arena; /* paths of parts */
    struct ph__source source;
    bool is_open;            /* true: source is open */
    uint64_t num_kept_lines; /* lines of the task in kept parts */
    uint64_t num_told_lines; /* lines of the source in parts that were made */
    bool is_end;             /* true: the source has no more rows */
    struct ph__rows *rows;   /* rows of the block in the making */
    struct ph__prepare_result *result;
};

/* Returns true when the source is arrays, read by rows; everything else is read by bytes. */
static bool has_arrays(const struct making *making)
{
    return making->context->encoder->format == PH_DATA_NPY;
}

/* ---- kept parts ---- */

/* Writes the name of a part, "part-00002-00013.phd" for part 13 of the third file, and returns its path. */
static const char *part_path(struct making *making, size_t part, char name_out[PH_PART_NAME_BYTES])
{
    snprintf(name_out, PH_PART_NAME_BYTES, "part-%05zu-%05zu.phd", making->task->file->number % 10000000,
        part % 10000000);
    return ph__arena_printf(&making->arena, "%s/%s/%s", making->context->folder,
        ph__split_names[making->task->file->split], name_out);
}

static ph_status add_part(struct making *making, const char *path, const char *name,
    const struct ph__part_footer *footer, bool is_kept)
{
    struct ph__prepare_result *result = making->result;
    if (is_kept && footer->range.num_bad_rows > 0 && !result->has_kept_bad) {
        result->has_kept_bad = true;
        result->kept_bad_begin = footer->range.begin;
        result->kept_bad_lines = result->num_lines;
    }
    PH_TRY(ph__array_reserve(
        (void **)&result->parts, &result->capacity, result->num_parts + 1, sizeof *result->parts));
    struct ph__manifest_part *part = &result->parts[result->num_parts];
    *part = (struct ph__manifest_part){.num_rows = footer->num_rows, .num_words = footer->num_words};
    snprintf(part->name, sizeof part->name, "%s", name);
    ph__checksum_text(footer->checksum, part->checksum);
    PH_TRY(ph__file_size(path, &part->num_bytes));
    result->num_parts++;
    result->num_kept += is_kept;
    result->num_text_bytes +=
        has_arrays(making) ? footer->num_words * sizeof(uint32_t) : footer->range.end - footer->range.begin;
    result->num_lines += footer->range.num_lines;
    result->num_rows += footer->num_rows;
    result->num_bad_rows += footer->range.num_bad_rows;
    return PH_OK;
}

/* Keeps a part that an interrupted preparation has finished, if the part is there and begins at `begin`. */
static ph_status keep_part(
    struct making *making, size_t part, uint64_t begin, bool *is_kept_out, struct ph__part_range *range_out)
{
    const struct ph__prepare_context *context = making->context;
    const struct ph__prepare_task *task = making->task;
    struct ph__part_reader *reader;
    char name[PH_PART_NAME_BYTES];
    const char *path = part_path(making, part, name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    *is_kept_out = false;
    if (!context->may_resume || !ph__file_exists(path))
        return PH_OK;
    if (ph__file_is_pipe(task->file->path))
        return ph_fail(PH_ERROR_USAGE,
            "%s: made from %s, which cannot be read again to compare it: prepare again, into an empty folder",
            path, ph__pipe_name(task->file->path));
    if (ph__part_reader_open(path, &context->layout, context->digest, &reader) != PH_OK)
        return PH_OK; /* damaged: make it anew */
    struct ph__part_footer footer = *ph__part_reader_footer(reader);
    ph__part_reader_close(reader);
    if (footer.range.begin != begin || (task->file->is_cut && footer.range.end != task->end))
        return PH_OK;
    ph__tasks_skip(context->tasks, footer.range.end - footer.range.begin);
    *is_kept_out = true;
    *range_out = footer.range;
    return add_part(making, path, name, &footer, true);
}

/* ---- parts in the making ---- */

/* Returns the position of the next row: a byte of text, or a row of arrays. */
static uint64_t tell(const struct making *making)
{
    struct ph__source_position position;
    ph__source_tell(&making->source, &position);
    return has_arrays(making) ? position.row : position.byte;
}

/* Reports a block's rows and the bytes read since *told. Returns false when the task should end early. */
static bool advance(struct making *making, uint64_t *told)
{
    const uint64_t position = tell(making), read = position - *told;
    const struct ph__rows *rows = making->rows;
    *told = position;
    return ph__tasks_advance(making->context->tasks, making->number, rows->num_rows,
        has_arrays(making) ? ph__rows_num_words(rows) * sizeof(uint32_t) : read);
}

/* Returns the number of lines, or rows of arrays, that the source has read. */
static uint64_t num_lines(const struct making *making)
{
    struct ph__source_position position = {0};
    if (making->is_open)
        ph__source_tell(&making->source, &position);
    return position.row;
}

static bool is_full(const struct making *making, uint64_t begin)
{
    if (making->task->file->is_cut)
        return false;
    uint64_t consumed = tell(making) - begin;
    if (has_arrays(making))
        consumed *= making->context->layout.num_fixed_words * sizeof(uint32_t);
    return consumed >= making->context->cut.part_bytes;
}

/* Reads rows into blocks until the file, its piece or the part ends. */
static ph_status write_rows(struct making *making, struct ph__part_writer *writer, uint64_t begin)
{
    struct ph__rows *rows = making->rows;
    bool is_part_full = false;
    uint64_t told = begin == 0 || making->is_end ? 0 : tell(making); /* a header belongs to the first part */
    rows->num_rows = 0;
    while (!making->is_end && !is_part_full) {
        PH_TRY(ph__source_next(&making->source, rows, &making->is_end));
        if (!making->is_end && rows->num_rows < making->context->cut.block_rows &&
            ph__rows_num_words(rows) < PH_BLOCK_FULL_WORDS)
            continue;
        if (!advance(making, &told))
            return ph_fail(PH_ERROR_INTERRUPTED, "the preparation was stopped");
        PH_TRY(ph__part_writer_add(writer, rows));
        rows->num_rows = 0;
        is_part_full = is_full(making, begin);
    }
    return PH_OK;
}

/* Writes part number `part`: all rows of a piece or, if the file is not cut, as many as a part takes. */
static ph_status make_part(struct making *making, size_t part, uint64_t begin)
{
    const struct ph__prepare_context *context = making->context;
    const struct ph__prepare_task *task = making->task;
    struct ph__part_writer *writer;
    struct ph__part_footer footer;
    char name[PH_PART_NAME_BYTES];
    const char *path = part_path(making, part, name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    uint64_t num_bad_before = making->source.num_bad_rows;
    PH_TRY(ph__part_writer_open(path, &context->layout, context->digest, &writer));
    ph_status status = write_rows(making, writer, begin);
    const struct ph__part_range range = {.begin = begin,
        .end = task->file->is_cut ? task->end : tell(making),
        .num_lines = num_lines(making) - making->num_told_lines,
        .num_bad_rows = making->source.num_bad_rows - num_bad_before,
        .is_last = task->file->is_cut ? task->end == task->file->num_bytes : making->is_end};
    making->num_told_lines += range.num_lines;
    if (status == PH_OK)
        status = ph__part_writer_finish(writer, &range, &footer);
    ph__part_writer_close(writer);
    return status == PH_OK ? add_part(making, path, name, &footer, false) : status;
}

static ph_status open_source(struct making *making, const struct ph__source_position *start, uint64_t end)
{
    const struct ph__prepare_context *context = making->context;
    const struct ph__source_options options = {.max_bad_rows = context->max_bad_rows,
        .stop_signal = context->tasks->stop_signal,
        .start = start,
        .is_one_file = true,
        .end_byte = end};
    making->is_open = true;
    return ph__source_open(&making->source, context->encoder, making->task->file->path, &options);
}

/* Makes the only part of a task of a file that is cut. */
static ph_status make_piece(struct making *making)
{
    const struct ph__prepare_task *task = making->task;
    struct ph__part_range range;
    struct ph__source_position start = {0};
    bool is_kept = false;
    PH_TRY(keep_part(making, task->part, task->begin, &is_kept, &range));
    if (is_kept)
        return PH_OK;
    PH_TRY(ph__prepare_task_first_line(task, &start.byte));
    making->is_end = task->part > 0 && start.byte >= task->end; /* a file without text is opened, too */
    if (!making->is_end)
        PH_TRY(open_source(making, &start, task->end));
    return make_part(making, task->part, task->begin);
}

/* Makes all parts of a file that can only be read from its beginning. */
static ph_status make_stream(struct making *making)
{
    struct ph__part_range range = {0};
    struct ph__source_position start = {0};
    bool is_kept = false;
    size_t part = 0;
    do {
        PH_TRY(keep_part(making, part, range.end, &is_kept, &range));
        part += is_kept;
    } while (is_kept && !range.is_last);
    if (is_kept)
        return PH_OK;
    *(has_arrays(making) ? &start.row : &start.byte) = range.end;
    if (has_arrays(making))
        making->num_told_lines = range.end;
    else
        making->num_kept_lines = making->result->num_lines;
    PH_TRY(open_source(making, &start, 0));
    for (uint64_t begin = range.end; !making->is_end; begin = tell(making))
        PH_TRY(make_part(making, part++, begin));
    return PH_OK;
}

ph_status ph__prepare_task(const struct ph__prepare_context *context, const struct ph__prepare_task *task,
    size_t number, struct ph__rows *rows, struct ph__prepare_result *result)
{
    struct making making = {
        .context = context, .task = task, .number = number, .rows = rows, .result = result};
    ph_status status = task->file->is_cut ? make_piece(&making) : make_stream(&making);
    if (making.is_open && !result->has_kept_bad) {
        result->first_bad_line = making.num_kept_lines + making.source.first_bad_line;
        memcpy(result->first_bad_reason, making.source.first_bad_reason, sizeof result->first_bad_reason);
    }
    if (making.is_open)
        ph__source_close(&making.source);
    ph__arena_fini(&making.arena);
    return status;
}

void ph__prepare_result_fini(struct ph__prepare_result *result)
{
    free(result->parts);
    memset(result, 0, sizeof *result);
}
