#include "data/prepared/prepare_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/format/json_fields.h"
#include "base/format/seal.h"
#include "base/memory/memory.h"
#include "data/source/source.h"

#define FORMAT "phloem-prepare-plan"
#define VERSION 2
#define MAX_FILE_BYTES ((uint64_t)1 << 28)

/* ---- making ---- */

static bool is_text(const struct ph_data_settings *settings)
{
    return settings->format != PH_DATA_NPY && settings->format != PH_DATA_ARROW;
}

/* Looks up the inputs of the file and, for text, whether reading may start at any byte. */
static ph_status look_at(
    struct ph__arena *arena, const struct ph_data_settings *settings, struct ph__prepare_file *file)
{
    struct ph__reader *reader;
    if (ph__file_is_pipe(file->path))
        return PH_OK;
    PH_TRY(ph__input_files_look(
        arena, file->path, &(struct ph__input_beside){.are_arrays = !is_text(settings)}, &file->inputs));
    if (file->inputs.count == 0 || !is_text(settings))
        return PH_OK;
    file->num_bytes = file->inputs.items[0].num_bytes;
    PH_TRY(ph__reader_open(file->path, &reader));
    file->is_cut = ph__reader_is_plain(reader);
    ph__reader_close(reader);
    return PH_OK;
}

static ph_status add_files(struct ph__prepare_plan *plan, const struct ph_data_settings *settings,
    enum ph__split split, size_t *capacity)
{
    const char *path = ph__split_path(settings, split);
    const char **paths;
    size_t num_paths;
    if (path == NULL)
        return PH_OK;
    PH_TRY(ph__input_list(&plan->arena, path, &paths, &num_paths));
    PH_TRY(
        ph__array_reserve((void **)&plan->files, capacity, plan->num_files + num_paths, sizeof *plan->files));
    for (size_t i = 0; i < num_paths; i++) {
        struct ph__prepare_file *file = &plan->files[plan->num_files];
        *file = (struct ph__prepare_file){.path = paths[i], .split = split, .number = i};
        PH_TRY(look_at(&plan->arena, settings, file));
        plan->num_files++;
    }
    return PH_OK;
}

static uint64_t num_parts(const struct ph__prepare_plan *plan, const struct ph__prepare_file *file)
{
    return file->is_cut && file->num_bytes > 0 ? (file->num_bytes - 1) / plan->cut.part_bytes + 1 : 1;
}

static ph_status make_tasks(struct ph__prepare_plan *plan)
{
    uint64_t count = 0;
    for (size_t i = 0; i < plan->num_files; i++)
        count += num_parts(plan, &plan->files[i]);
    plan->tasks = count <= SIZE_MAX / sizeof *plan->tasks ? calloc(count + 1, sizeof *plan->tasks) : NULL;
    if (plan->tasks == NULL)
        return ph__out_of_memory("prepare: %" PRIu64 " parts", count);
    for (size_t i = 0; i < plan->num_files; i++) {
        const struct ph__prepare_file *file = &plan->files[i];
        for (uint64_t part = 0; part < num_parts(plan, file); part++) {
            struct ph__prepare_task *task = &plan->tasks[plan->num_tasks++];
            *task = (struct ph__prepare_task){.file = file, .part = (size_t)part};
            if (!file->is_cut)
                continue;
            task->begin = part * plan->cut.part_bytes;
            task->end = task->begin + plan->cut.part_bytes;
            task->end = task->end < file->num_bytes ? task->end : file->num_bytes;
        }
    }
    return PH_OK;
}

ph_status ph__prepare_plan_init(
    struct ph__prepare_plan *plan, const struct ph_data_settings *settings, struct ph_prepare_settings cut)
{
    *plan = (struct ph__prepare_plan){.cut = cut};
    size_t capacity = 0;
    for (size_t split = 0; split < PH_SPLIT_COUNT; split++)
        PH_TRY(add_files(plan, settings, (enum ph__split)split, &capacity));
    return make_tasks(plan);
}

void ph__prepare_plan_fini(struct ph__prepare_plan *plan)
{
    free(plan->files);
    free(plan->tasks);
    ph__arena_fini(&plan->arena);
    memset(plan, 0, sizeof *plan);
}

uint64_t ph__prepare_plan_text_bytes(const struct ph__prepare_plan *plan, size_t num_tasks)
{
    uint64_t num_bytes = 0;
    for (size_t i = 0; i < num_tasks; i++) {
        if (!plan->tasks[i].file->is_cut)
            return 0;
        num_bytes += plan->tasks[i].end - plan->tasks[i].begin;
    }
    return num_bytes;
}

ph_status ph__prepare_task_first_line(const struct ph__prepare_task *task, uint64_t *byte_out)
{
    struct ph__reader *reader;
    char *line;
    size_t length;
    if (task->begin == 0) {
        *byte_out = 0;
        return PH_OK;
    }
    PH_TRY(ph__reader_open(task->file->path, &reader));
    ph_status status = ph__reader_seek(reader, task->begin - 1, 0);
    if (status == PH_OK)
        status = ph__reader_line(reader, &line, &length);
    if (status == PH_OK)
        *byte_out = ph__reader_byte(reader);
    ph__reader_close(reader);
    return status;
}

/* ---- keeping ---- */

static const struct ph__json_field input_fields[] = {
    {"bytes", PH_JSON_COUNT, offsetof(struct ph__input_file, num_bytes), 0},
    {"checksum", PH_JSON_TEXT, offsetof(struct ph__input_file, checksum), 17},
};
#define NUM_INPUT_FIELDS (sizeof input_fields / sizeof *input_fields)

static struct ph__json *inputs_json(const struct ph__input_files *inputs)
{
    struct ph__json *json = ph__json_array();
    for (size_t i = 0; i < inputs->count; i++) {
        struct ph__json *item = ph__json_object();
        ph__json_set_text(item, "path", inputs->items[i].path);
        ph__json_set_fields(item, input_fields, NUM_INPUT_FIELDS, &inputs->items[i]);
        ph__json_append(json, item);
    }
    return json;
}

ph_status ph__prepare_plan_save(const struct ph__prepare_plan *plan, const char *path)
{
    struct ph__json *json = ph__sealed_json_object(), *files = ph__json_array();
    ph__json_set_text(json, "format", FORMAT);
    ph__json_set_integer(json, "version", VERSION);
    ph__json_set_integer(json, "part_bytes", (int64_t)plan->cut.part_bytes);
    ph__json_set_integer(json, "block_rows", (int64_t)plan->cut.block_rows);
    for (size_t i = 0; i < plan->num_files; i++) {
        struct ph__json *file = ph__json_object();
        ph__json_set_text(file, "split", ph__split_names[plan->files[i].split]);
        ph__json_set_text(file, "path", plan->files[i].path);
        ph__json_set(file, "inputs", inputs_json(&plan->files[i].inputs));
        ph__json_append(files, file);
    }
    ph__json_set(json, "files", files);
    ph_status status = ph__sealed_json_write(json, path);
    ph__json_destroy(json);
    return status;
}

static ph_status compare_input(const struct ph__input_file *input, const struct ph__json *saved)
{
    struct ph__input_file before = {.path = ph__json_as_text(ph__json_get(saved, "path"), "")};
    const char *key = ph__json_get_fields(saved, input_fields, NUM_INPUT_FIELDS, &before);
    if (key != NULL || strcmp(before.path, input->path) != 0)
        return ph_fail(
            PH_ERROR_DATA, "%s: not among the files with which the preparation began", input->path);
    return ph__input_file_compare(input, &before, "the preparation began");
}

/* PH_ERROR_DATA naming the file that differs from the saved one. */
static ph_status compare_inputs(const struct ph__input_files *inputs, const struct ph__json *saved)
{
    for (size_t i = 0; i < inputs->count; i++)
        PH_TRY(compare_input(&inputs->items[i], ph__json_at(saved, i)));
    if (ph__json_size(saved) <= inputs->count)
        return PH_OK;
    const struct ph__json *gone = ph__json_at(saved, inputs->count);
    return ph_fail(PH_ERROR_DATA, "%s: the preparation began with this file, which is now missing",
        ph__json_as_text(ph__json_get(gone, "path"), ""));
}

static ph_status compare_file(const struct ph__prepare_file *file, const struct ph__json *saved)
{
    const char *path = ph__json_as_text(ph__json_get(saved, "path"), "");
    const char *split = ph__json_as_text(ph__json_get(saved, "split"), "");
    if (strcmp(path, file->path) != 0 || strcmp(split, ph__split_names[file->split]) != 0)
        return ph_fail(PH_ERROR_DATA,
            "%s: not among the files with which the preparation began, which had %s in its place", file->path,
            path);
    return compare_inputs(&file->inputs, ph__json_get(saved, "inputs"));
}

static ph_status compare_number(const struct ph__json *saved, const char *key, uint64_t now)
{
    int64_t before = ph__json_as_integer(ph__json_get(saved, key), 0);
    if ((uint64_t)before == now)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "prepare.%s was %" PRId64 " and is now %" PRIu64 ", but may not change on resume", key, before, now);
}

static ph_status compare(const struct ph__prepare_plan *plan, const struct ph__json *saved, const char *path)
{
    const struct ph__json *files = ph__json_get(saved, "files");
    if (strcmp(ph__json_as_text(ph__json_get(saved, "format"), ""), FORMAT) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: not the plan of a preparation", path);
    int64_t version = ph__json_as_integer(ph__json_get(saved, "version"), 1);
    if (version != VERSION)
        return ph_fail(PH_ERROR_DATA,
            "%s: version %" PRId64
            " of the plan is not supported, only version %d; prepare again, into an empty folder",
            path, version, VERSION);
    PH_TRY(compare_number(saved, "part_bytes", plan->cut.part_bytes));
    PH_TRY(compare_number(saved, "block_rows", plan->cut.block_rows));
    if (ph__json_size(files) != plan->num_files)
        return ph_fail(PH_ERROR_DATA, "%s: the preparation began with %zu files, and now has %zu", path,
            ph__json_size(files), plan->num_files);
    for (size_t i = 0; i < plan->num_files; i++)
        PH_TRY(compare_file(&plan->files[i], ph__json_at(files, i)));
    return PH_OK;
}

ph_status ph__prepare_plan_compare(const struct ph__prepare_plan *plan, const char *path)
{
    struct ph__json *saved;
    PH_TRY(ph__sealed_json_read(path, PH_ERROR_DATA, MAX_FILE_BYTES, &saved));
    ph_status status = compare(plan, saved, path);
    ph__json_destroy(saved);
    return status;
}
