#include "data/batch/lanes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

/* ---- dealing blocks -------------------------------------------------------------------------------------- */

/* Lane l of L gets the blocks at places l, L + l, 2 L + l … of the permuted order, and has them one after the other. */
static ph_status deal_blocks(struct ph__lanes *lanes, uint64_t seed, uint64_t epoch)
{
    struct ph__prepared_source *blocks = &lanes->blocks;
    struct ph_rng_sequence random = {.key = {seed, epoch, ph__hash_name("data.shuffle.deal")}};
    const size_t num_blocks = blocks->end;
    uint32_t *dealt = malloc((num_blocks + 1) * sizeof *dealt);
    if (dealt == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to deal %zu blocks", num_blocks);
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
    size_t all = options->shuffle_bytes == 0 ? PH_DEFAULT_SHUFFLE_BYTES : options->shuffle_bytes;
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

/* ---- dealing rows ---------------------------------------------------------------------------------------- */

static size_t count_open(const struct ph__lanes *lanes)
{
    size_t num_open = 0;
    for (size_t i = 0; i < lanes->num_lanes; i++)
        num_open += lanes->lanes[i].num_left > lanes->lanes[i].share;
    return num_open;
}

/* Sets each lane's share of the next num_rows rows: even parts, and of what some could not give even parts again. */
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
            size_t wanted = ph__part_start(rest, part + 1, num_open) - ph__part_start(rest, part, num_open);
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

/* How many full batches have the shares of the first one: while every lane can give its even part. */
static uint64_t count_even_batches(struct ph__lanes *lanes, size_t batch_size)
{
    uint64_t count = UINT64_MAX;
    for (size_t i = 0; i < lanes->num_lanes; i++) {
        size_t part = ph__part_start(batch_size, i + 1, lanes->num_lanes) -
                      ph__part_start(batch_size, i, lanes->num_lanes);
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

/* ---- opening --------------------------------------------------------------------------------------------- */

static ph_status open_all(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options)
{
    struct ph__negatives negatives;
    PH_TRY(ph__negatives_init(&negatives, folder, options->seed, options->epoch, options->negative_rate));
    PH_TRY(ph__prepared_source_open(&lanes->blocks, encoder, folder, 0, 0, 0));
    PH_TRY(ph__prepared_source_count(&lanes->blocks, &negatives));
    size_t num_lanes = ph__min(ph__min(options->shuffle_lanes, lanes->blocks.end), options->batch_size);
    num_lanes = ph__max(num_lanes, 1);
    lanes->lanes = calloc(num_lanes, sizeof *lanes->lanes);
    if (lanes->lanes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %zu lanes", folder, num_lanes);
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

/* ---- taking ---------------------------------------------------------------------------------------------- */

/* Goes over the lane's share, which begins at row `start` of the batch, and appends what lies in [first, end) of it. */
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
