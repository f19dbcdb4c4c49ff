#include "data/batch/rank_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "data/source/input_file.h"

/* ---- lanes: dealing blocks ---- */

/* Gives lane l of L the blocks at places l, L + l, 2 L + l … of the permuted order, one lane after the
 * other. */
static ph_status deal_blocks(struct ph__lanes *lanes, uint64_t seed, uint64_t epoch)
{
    struct ph__prepared_source *blocks = &lanes->blocks;
    struct ph__rng_sequence random = {.key = {seed, epoch, ph__hash_name("data.shuffle.deal")}};
    const size_t num_blocks = blocks->end;
    uint32_t *dealt = malloc((num_blocks + 1) * sizeof *dealt);
    if (dealt == NULL)
        return ph__out_of_memory("cannot deal %zu blocks", num_blocks);
    ph__rng_shuffle(&random, blocks->order, num_blocks);
    size_t num_dealt = 0;
    for (size_t lane = 0; lane < lanes->num_lanes; lane++)
        for (size_t place = lane; place < num_blocks; place += lanes->num_lanes)
            dealt[num_dealt++] = blocks->order[place];
    free(blocks->order);
    blocks->order = dealt;
    return PH_OK;
}

static size_t window_bytes_of(const struct ph__lanes *lanes, const struct ph_batches_options *options)
{
    size_t all =
        options->reading.shuffle_bytes == 0 ? PH_DEFAULT_SHUFFLE_BYTES : options->reading.shuffle_bytes;
    return ph__max(all / lanes->num_lanes, 1);
}

static ph_status open_lane(struct ph__lanes *lanes, size_t number, const struct ph_encoder *encoder,
    const char *folder, const struct ph_batches_options *options)
{
    const struct ph__prepared_source *blocks = &lanes->blocks;
    struct ph__lane *lane = &lanes->lanes[number];
    struct ph__prepared_source own;
    size_t longer = blocks->end % lanes->num_lanes, each = blocks->end / lanes->num_lanes;
    size_t first = number * each + ph__min(number, longer);
    size_t end = first + each + (number < longer ? 1 : 0);
    lane->num_rows = lane->num_left = ph__prepared_source_num_kept(blocks, first, end);
    lanes->num_left += lane->num_rows;
    ph__prepared_source_view(&own, blocks, first, end, window_bytes_of(lanes, options));
    return ph__window_open_blocks(&lane->window, encoder, folder, &own, options);
}

/* ---- lanes: dealing rows ---- */

static size_t count_open(const struct ph__lanes *lanes)
{
    size_t num_open = 0;
    for (size_t i = 0; i < lanes->num_lanes; i++)
        num_open += lanes->lanes[i].num_left > lanes->lanes[i].share;
    return num_open;
}

/* Sets each lane's share of the next num_rows rows: even parts. Rows that a lane lacks are dealt to the other
 * lanes in even parts again. */
static void deal_rows(struct ph__lanes *lanes, size_t num_rows)
{
    for (size_t i = 0; i < lanes->num_lanes; i++)
        lanes->lanes[i].share = 0;
    for (size_t missing = num_rows; missing > 0;) {
        const size_t rest = missing, num_open = count_open(lanes);
        for (size_t i = 0, part = 0; i < lanes->num_lanes; i++) {
            struct ph__lane *lane = &lanes->lanes[i];
            if (lane->num_left == lane->share)
                continue;
            uint64_t has = lane->num_left - lane->share;
            size_t wanted = ph__range_start(rest, part + 1, num_open) - ph__range_start(rest, part, num_open);
            size_t given = wanted < has ? wanted : (size_t)has;
            lane->share += given;
            missing -= given;
            part++;
        }
    }
}

static void hand_out(struct ph__lanes *lanes, uint64_t num_batches)
{
    for (size_t i = 0; i < lanes->num_lanes; i++) {
        lanes->lanes[i].num_left -= num_batches * lanes->lanes[i].share;
        lanes->num_left -= num_batches * lanes->lanes[i].share;
    }
}

/* Counts the full batches until a lane can no longer give its even part; each has the shares of the first. */
static uint64_t count_even_batches(struct ph__lanes *lanes, size_t batch_size)
{
    uint64_t count = UINT64_MAX;
    for (size_t i = 0; i < lanes->num_lanes; i++) {
        size_t part = ph__range_start(batch_size, i + 1, lanes->num_lanes) -
                      ph__range_start(batch_size, i, lanes->num_lanes);
        uint64_t batches = lanes->lanes[i].num_left / part;
        count = batches < count ? batches : count;
    }
    return count;
}

static ph_status seek(struct ph__lanes *lanes, const char *folder, size_t batch_size, uint64_t num_given)
{
    if (num_given > lanes->num_left)
        return ph_fail(
            PH_ERROR_DATA, "%s: has fewer rows than the %" PRIu64 " that were read", folder, num_given);
    uint64_t num_even = count_even_batches(lanes, batch_size);
    if (num_even > num_given / batch_size)
        num_even = num_given / batch_size;
    if (num_even > 0) {
        deal_rows(lanes, batch_size);
        hand_out(lanes, num_even);
        num_given -= num_even * batch_size;
    }
    while (num_given > 0) {
        size_t num_rows = num_given < batch_size ? (size_t)num_given : batch_size;
        deal_rows(lanes, num_rows);
        hand_out(lanes, 1);
        num_given -= num_rows;
    }
    for (size_t i = 0; i < lanes->num_lanes; i++) {
        struct ph__lane *lane = &lanes->lanes[i];
        uint64_t num_skipped;
        PH_TRY(ph__window_skip(&lane->window, lane->num_rows - lane->num_left, &num_skipped));
    }
    return PH_OK;
}

/* ---- lanes: opening ---- */

static ph_status open_all(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options)
{
    struct ph__negatives negatives;
    PH_TRY(ph__negatives_init(
        &negatives, folder, options->seed, options->epoch, options->reading.negative_rate));
    PH_TRY(ph__prepared_source_open(&lanes->blocks, encoder, folder, 0, 0, 0));
    PH_TRY(ph__prepared_source_count(&lanes->blocks, &negatives));
    size_t num_lanes =
        ph__min(ph__min(options->reading.shuffle_lanes, lanes->blocks.end), options->batch_size);
    num_lanes = ph__max(num_lanes, 1);
    lanes->lanes = calloc(num_lanes, sizeof *lanes->lanes);
    if (lanes->lanes == NULL)
        return ph__out_of_memory("%s: %zu lanes", folder, num_lanes);
    lanes->num_lanes = num_lanes;
    PH_TRY(deal_blocks(lanes, options->seed, options->epoch));
    for (size_t i = 0; i < num_lanes; i++)
        PH_TRY(open_lane(lanes, i, encoder, folder, options));
    return PH_OK;
}

ph_status ph__lanes_open(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options, uint64_t num_given)
{
    *lanes = (struct ph__lanes){.num_lanes = 0};
    PH_TRY(open_all(lanes, encoder, folder, options));
    return seek(lanes, folder, options->batch_size, num_given);
}

void ph__lanes_close(struct ph__lanes *lanes)
{
    for (size_t i = 0; i < lanes->num_lanes; i++)
        ph__window_close(&lanes->lanes[i].window);
    ph__prepared_source_close(&lanes->blocks);
    free(lanes->lanes);
    free(lanes->taken);
    memset(lanes, 0, sizeof *lanes);
}

/* ---- lanes: taking ---- */

/* Passes the lane's share, which begins at row `start` of the batch, and appends its rows in [first, end). */
static ph_status take_share(
    struct ph__lanes *lanes, struct ph__lane *lane, size_t start, size_t first, size_t end, size_t *num_taken)
{
    const uint32_t *const *rows;
    size_t num_rows;
    uint64_t num_skipped;
    size_t stop = start + lane->share;
    size_t from = ph__min(ph__max(first, start), stop), to = ph__max(ph__min(end, stop), from);
    PH_TRY(ph__window_skip(&lane->window, from - start, &num_skipped));
    PH_TRY(ph__window_take(&lane->window, to - from, &rows, &num_rows));
    PH_TRY(ph__window_skip(&lane->window, stop - to, &num_skipped));
    for (size_t i = 0; i < num_rows; i++)
        lanes->taken[(*num_taken)++] = rows[i];
    return PH_OK;
}

ph_status ph__lanes_take(
    struct ph__lanes *lanes, size_t num_rows, size_t first, size_t end, const uint32_t *const **rows_out)
{
    size_t start = 0, num_taken = 0;
    PH_TRY(ph__array_reserve(
        (void **)&lanes->taken, &lanes->taken_capacity, end - first, sizeof(const uint32_t *)));
    deal_rows(lanes, num_rows);
    for (size_t i = 0; i < lanes->num_lanes; i++) {
        PH_TRY(take_share(lanes, &lanes->lanes[i], start, first, end, &num_taken));
        start += lanes->lanes[i].share;
    }
    hand_out(lanes, 1);
    *rows_out = lanes->taken;
    return PH_OK;
}

#define GIVEN_WORD (PH_POSITION_WORDS - 1) /* counts the rows given; the other words are the window's */

/* ---- a rank's rows: opening ---- */

static ph_status check_options(
    const char *path, const struct ph_dataset *dataset, const struct ph_batches_options *options)
{
    if (options->world_size <= 1 && options->rank == 0)
        return PH_OK;
    if (options->rank >= options->world_size)
        return ph_fail(PH_ERROR_USAGE, "%s: rank %zu must be below the number of ranks, %zu", path,
            options->rank, options->world_size);
    if (dataset == NULL && ph__file_is_pipe(path))
        return ph_fail(PH_ERROR_USAGE,
            "%s: can be read only once, but each of %zu ranks needs all of it: give a file", path,
            options->world_size);
    return PH_OK;
}

ph_status ph__rank_rows_open(struct ph__rank_rows *rows, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options)
{
    *rows = (struct ph__rank_rows){.rank = options->rank,
        .world_size = ph__max(options->world_size, 1),
        .batch_size = options->batch_size,
        .num_given = options->start != NULL ? options->start->words[GIVEN_WORD] : 0};
    PH_TRY(check_options(path, dataset, options));
    rows->has_lanes = options->reading.shuffle_lanes > 1 && options->reading.is_shuffled && dataset == NULL &&
                      ph__input_is_prepared(path);
    if (rows->has_lanes)
        return ph__lanes_open(&rows->lanes, encoder, path, options, rows->num_given);
    return ph__window_open(&rows->window, encoder, path, dataset, fingerprint, options);
}

void ph__rank_rows_close(struct ph__rank_rows *rows)
{
    if (rows->has_lanes)
        ph__lanes_close(&rows->lanes);
    else
        ph__window_close(&rows->window);
    memset(rows, 0, sizeof *rows);
}

/* ---- a rank's rows: batches ---- */

/* Return the first row of the rank's part in a batch of n rows, and the first row behind that part. */
static size_t part_first(const struct ph__rank_rows *rows, size_t n)
{
    return ph__range_start(n, rows->rank, rows->world_size);
}

static size_t part_end(const struct ph__rank_rows *rows, size_t n)
{
    return ph__range_start(n, rows->rank + 1, rows->world_size);
}

static ph_status take_lanes(struct ph__rank_rows *rows, struct ph__rank_batch *batch)
{
    const uint64_t left = rows->lanes.num_left;
    batch->num_global = left < rows->batch_size ? (size_t)left : rows->batch_size;
    const size_t first = part_first(rows, batch->num_global), end = part_end(rows, batch->num_global);
    batch->num_rows = end - first;
    return ph__lanes_take(&rows->lanes, batch->num_global, first, end, &batch->rows);
}

/* Takes the whole batch and gives the rank's part of it. */
static ph_status take_all(struct ph__rank_rows *rows, struct ph__rank_batch *batch)
{
    PH_TRY(ph__window_take(&rows->window, rows->batch_size, &batch->rows, &batch->num_global));
    const size_t first = part_first(rows, batch->num_global);
    batch->rows += first;
    batch->num_rows = part_end(rows, batch->num_global) - first;
    return PH_OK;
}

/* Takes the rank's part of n rows, skips the others, and counts the rows that were there. With `goes_on` it
 * tries to skip one row more, to find the end if that comes next. */
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
    return ph_fail(PH_ERROR_DATA,
        "%s: none of the %" PRIu64 " rows is kept: raise data.negative_rate, which is %g", window->path,
        num_rows, window->negatives.rate);
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

/* ---- position, memory and bad rows ---- */

static uint64_t window_bytes(const struct ph__window *window)
{
    return window->rows.words_capacity * sizeof *window->rows.words +
           window->rows.starts_capacity * sizeof *window->rows.starts +
           window->order_capacity * sizeof *window->order;
}

uint64_t ph__rank_rows_bytes(const struct ph__rank_rows *rows)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < rows->lanes.num_lanes; i++)
        bytes += window_bytes(&rows->lanes.lanes[i].window);
    return bytes + window_bytes(&rows->window);
}

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
