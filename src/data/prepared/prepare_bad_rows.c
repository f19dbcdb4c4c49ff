#include "data/prepared/prepare_bad_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/source/source.h"

/* Reads on to a bad row. */
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

/* Of a part that was kept only the number of its bad rows is known: reads its text again up to the first one. */
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

/* The place of a task's first bad row, and what is wrong with it. */
static void describe(const struct ph__prepare_context *context, const struct ph__prepare_plan *plan,
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
        snprintf(text_out, size, "%s: its bad rows cannot be read any more", file->path);
}

ph_status ph__prepare_check_bad_rows(const struct ph__prepare_context *context,
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
        describe(context, plan, results, i, place, sizeof place);
        return ph_fail(PH_ERROR_DATA,
            "%s; %" PRIu64 " bad rows up to there, more than data.max_bad_rows = %" PRIu64, place,
            num_bad_rows, context->max_bad_rows);
    }
    return PH_OK;
}

void ph__prepare_first_bad_row(const struct ph__prepare_context *context, const struct ph__prepare_plan *plan,
    struct ph__prepare_result *results, char *text_out, size_t size)
{
    text_out[0] = '\0';
    for (size_t i = 0; i < plan->num_tasks && text_out[0] == '\0'; i++)
        if (results[i].num_bad_rows > 0)
            describe(context, plan, results, i, text_out, size);
}
