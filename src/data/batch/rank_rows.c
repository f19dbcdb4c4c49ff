#include "data/batch/rank_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/file/file.h"
#include "base/sizes.h"
#include "data/source/input_file.h"

#define GIVEN_WORD (PH_POSITION_WORDS - 1) /* of a position; the others are the window's */

/* ---- opening --------------------------------------------------------------------------------------------- */

static ph_status check_options(
    const char *path, const struct ph_dataset *dataset, const struct ph_batches_options *options)
{
    if (options->world_size <= 1 && options->rank == 0)
        return PH_OK;
    if (options->rank >= options->world_size)
        return ph_fail(PH_ERROR_USAGE, "%s: rank %zu of %zu: ranks are counted from 0", path, options->rank,
            options->world_size);
    if (dataset == NULL && ph__file_is_pipe(path))
        return ph_fail(PH_ERROR_USAGE, "%s: is read once, and each of %zu ranks needs all of it", path,
            options->world_size);
    return PH_OK;
}

ph_status ph__rank_rows_open(struct ph__rank_rows *rows, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__read_record *record,
    const struct ph_batches_options *options)
{
    *rows = (struct ph__rank_rows){.rank = options->rank,
        .world_size = ph__max(options->world_size, 1),
        .batch_size = options->batch_size,
        .num_given = options->start != NULL ? options->start->words[GIVEN_WORD] : 0};
    PH_TRY(check_options(path, dataset, options));
    rows->has_lanes =
        options->shuffle_lanes > 1 && options->is_shuffled && dataset == NULL && ph__input_is_prepared(path);
    if (rows->has_lanes)
        return ph__lanes_open(&rows->lanes, encoder, path, options, rows->num_given);
    return ph__window_open(&rows->window, encoder, path, dataset, record, options);
}

void ph__rank_rows_close(struct ph__rank_rows *rows)
{
    if (rows->has_lanes)
        ph__lanes_close(&rows->lanes);
    else
        ph__window_close(&rows->window);
    memset(rows, 0, sizeof *rows);
}

/* ---- batches --------------------------------------------------------------------------------------------- */

/* Where the part of the rank in a batch of n rows begins, and where the next one's. */
static size_t part_first(const struct ph__rank_rows *rows, size_t n)
{
    return ph__part_start(n, rows->rank, rows->world_size);
}

static size_t part_end(const struct ph__rank_rows *rows, size_t n)
{
    return ph__part_start(n, rows->rank + 1, rows->world_size);
}

static ph_status take_lanes(struct ph__rank_rows *rows, struct ph__rank_batch *batch)
{
    const uint64_t left = rows->lanes.num_left;
    batch->num_global = left < rows->batch_size ? (size_t)left : rows->batch_size;
    const size_t first = part_first(rows, batch->num_global), end = part_end(rows, batch->num_global);
    batch->num_rows = end - first;
    return ph__lanes_take(&rows->lanes, batch->num_global, first, end, &batch->rows);
}

/* Takes the whole batch, and gives the rank's part of it. */
static ph_status take_all(struct ph__rank_rows *rows, struct ph__rank_batch *batch)
{
    PH_TRY(ph__window_take(&rows->window, rows->batch_size, &batch->rows, &batch->num_global));
    const size_t first = part_first(rows, batch->num_global);
    batch->rows += first;
    batch->num_rows = part_end(rows, batch->num_global) - first;
    return PH_OK;
}

/* Takes the rank's part of n rows, skips the others, and counts all that there were; with `goes_on` it tries for one row
 * more, so that the end is reached if it is there. */
static ph_status take_part(
    struct ph__rank_rows *rows, size_t n, bool goes_on, struct ph__rank_batch *batch, size_t *num_found_out)
{
    const size_t first = part_first(rows, n), end = part_end(rows, n);
    uint64_t num_before, num_behind;
    PH_TRY(ph__window_skip(&rows->window, first, &num_before));
    PH_TRY(ph__window_take(&rows->window, end - first, &batch->rows, &batch->num_rows));
    PH_TRY(ph__window_skip(&rows->window, n - end + (goes_on ? 1 : 0), &num_behind));
    *num_found_out = (size_t)(num_before + num_behind) + batch->num_rows;
    return PH_OK;
}

static ph_status skip_and_take(struct ph__rank_rows *rows, struct ph__rank_batch *batch)
{
    struct ph_position start;
    ph__window_tell(&rows->window, &start);
    PH_TRY(take_part(rows, rows->batch_size, false, batch, &batch->num_global));
    if (batch->num_global == rows->batch_size || batch->num_global == 0)
        return PH_OK;
    size_t num_again;
    PH_TRY(ph__window_return(&rows->window, &start));
    PH_TRY(take_part(rows, batch->num_global, true, batch, &num_again));
    if (num_again != batch->num_global)
        return ph_fail(PH_ERROR_DATA, "%s: has changed while it was read", rows->window.path);
    return PH_OK;
}

static ph_status fail_without_rows(const struct ph__rank_rows *rows)
{
    const struct ph__window *window = rows->has_lanes ? &rows->lanes.lanes[0].window : &rows->window;
    uint64_t num_rows = window->source.num_rows;
    if (rows->has_lanes)
        num_rows = ph__prepared_set_manifest(rows->lanes.blocks.set)->num_rows;
    else if (window->is_prepared)
        num_rows = ph__prepared_set_manifest(window->prepared.set)->num_rows;
    if (num_rows == 0)
        return ph_fail(PH_ERROR_DATA, "%s: has no rows", window->path);
    return ph_fail(PH_ERROR_DATA, "%s: none of its %" PRIu64 " rows takes part: data.negative_rate is %g",
        window->path, num_rows, window->negatives.rate);
}

ph_status ph__rank_rows_next(struct ph__rank_rows *rows, struct ph__rank_batch *batch_out)
{
    struct ph__rank_batch batch = {.num_rows = 0};
    if (rows->has_lanes)
        PH_TRY(take_lanes(rows, &batch));
    else if (rows->window.can_skip)
        PH_TRY(skip_and_take(rows, &batch));
    else
        PH_TRY(take_all(rows, &batch));
    if (batch.num_global == 0 && rows->num_given == 0)
        return fail_without_rows(rows);
    batch.first = rows->num_given + part_first(rows, batch.num_global);
    rows->num_given += batch.num_global;
    *batch_out = batch;
    return PH_OK;
}

/* ---- what is known of the pass --------------------------------------------------------------------------- */

void ph__rank_rows_tell(const struct ph__rank_rows *rows, struct ph_position *position_out)
{
    *position_out = (struct ph_position){{0}};
    if (!rows->has_lanes)
        ph__window_tell(&rows->window, position_out);
    position_out->words[GIVEN_WORD] = rows->num_given;
}

uint64_t ph__rank_rows_num_bad(const struct ph__rank_rows *rows)
{
    return rows->has_lanes ? 0 : rows->window.source.num_bad_rows;
}

const char *ph__rank_rows_first_bad(const struct ph__rank_rows *rows)
{
    return rows->has_lanes ? "" : rows->window.source.first_bad_row;
}
