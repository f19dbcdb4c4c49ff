#include "data/prepared/prepared_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* ---- the order ------------------------------------------------------------------------------------------- */

/* Whether a window over the text would take all rows at once: it reads on while what it has is less than its bytes.
 * All but the last row must be less; where the last block decides, it is decoded to know its last row. */
static ph_status fits_as_a_whole(struct ph__prepared_source *source, bool *does_fit_out)
{
    size_t num_blocks = ph__prepared_set_num_blocks(source->set);
    const struct ph__manifest *manifest = ph__prepared_set_manifest(source->set);
    *does_fit_out = ph__rows_bytes(manifest->num_rows, manifest->num_words) < source->window_bytes;
    if (*does_fit_out || num_blocks == 0)
        return PH_OK;
    const struct ph__set_block *last = ph__prepared_set_block(source->set, num_blocks - 1);
    if (ph__rows_bytes(last->first_row, manifest->num_words - last->num_words) >= source->window_bytes)
        return PH_OK;
    struct ph__rows rows = {0};
    ph_status status = ph__prepared_set_decode(source->set, num_blocks - 1, &source->decoder, &rows);
    if (status == PH_OK) {
        size_t last_words = rows.starts[rows.num_rows] - rows.starts[rows.num_rows - 1];
        uint64_t bytes = ph__rows_bytes(manifest->num_rows - 1, manifest->num_words - last_words);
        *does_fit_out = bytes < source->window_bytes;
    }
    ph__rows_fini(&rows);
    return status;
}

static ph_status make_order(struct ph__prepared_source *source, uint64_t seed, uint64_t epoch)
{
    size_t num_blocks = ph__prepared_set_num_blocks(source->set);
    source->order = malloc((num_blocks + 1) * sizeof *source->order);
    if (source->order == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the order of %zu blocks", num_blocks);
    for (size_t i = 0; i < num_blocks; i++)
        source->order[i] = (uint32_t)i;
    if (source->window_bytes == 0)
        return PH_OK;
    bool does_fit = false;
    PH_TRY(fits_as_a_whole(source, &does_fit));
    struct ph_rng_sequence random = {.key = {seed, epoch, ph__hash_name("data.shuffle.blocks")}};
    if (does_fit)
        source->window_bytes = SIZE_MAX;
    else
        ph__rng_shuffle(&random, source->order, num_blocks);
    return PH_OK;
}

ph_status ph__prepared_source_open(struct ph__prepared_source *source, const struct ph_encoder *encoder,
    const char *folder, size_t window_bytes, uint64_t seed, uint64_t epoch)
{
    *source = (struct ph__prepared_source){.window_bytes = window_bytes};
    PH_TRY(ph__prepared_set_open(folder, encoder, &source->set));
    source->decoder.layout = ph__prepared_set_layout(source->set);
    source->end = ph__prepared_set_num_blocks(source->set);
    return make_order(source, seed, epoch);
}

void ph__prepared_source_view(struct ph__prepared_source *view, const struct ph__prepared_source *of,
    size_t first, size_t end, size_t window_bytes)
{
    *view = (struct ph__prepared_source){.set = of->set,
        .decoder.layout = of->decoder.layout,
        .order = of->order,
        .kept = of->kept,
        .is_view = true,
        .next = first,
        .end = end,
        .window_bytes = window_bytes};
}

void ph__prepared_source_close(struct ph__prepared_source *source)
{
    ph__block_decoder_fini(&source->decoder);
    if (!source->is_view) {
        ph__prepared_set_close(source->set);
        free(source->order);
        free(source->kept);
    }
    memset(source, 0, sizeof *source);
}

/* ---- rows that take part --------------------------------------------------------------------------------- */

static ph_status count_block(
    struct ph__prepared_source *source, const struct ph__negatives *negatives, size_t block)
{
    uint32_t labels[PH_BLOCK_MAX_ROWS];
    const struct ph__set_block *counted = ph__prepared_set_block(source->set, block);
    PH_TRY(ph__prepared_set_decode_labels(source->set, block, &source->decoder, labels));
    for (size_t i = 0; i < counted->num_rows; i++)
        source->kept[block] += ph__negatives_keep(negatives, labels[i], counted->first_row + i);
    return PH_OK;
}

ph_status ph__prepared_source_count(struct ph__prepared_source *source, const struct ph__negatives *negatives)
{
    size_t num_blocks = ph__prepared_set_num_blocks(source->set);
    if (ph__negatives_are_all_kept(negatives))
        return PH_OK;
    source->kept = calloc(num_blocks + 1, sizeof *source->kept);
    if (source->kept == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to count the rows of %zu blocks", num_blocks);
    for (size_t block = 0; block < num_blocks; block++)
        PH_TRY(count_block(source, negatives, block));
    return PH_OK;
}

uint64_t ph__prepared_source_num_kept(const struct ph__prepared_source *source, size_t first, size_t end)
{
    uint64_t num_kept = 0;
    for (size_t place = first; place < end; place++) {
        size_t block = source->order[place];
        num_kept +=
            source->kept != NULL ? source->kept[block] : ph__prepared_set_block(source->set, block)->num_rows;
    }
    return num_kept;
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

void ph__prepared_source_choose(struct ph__prepared_source *source)
{
    uint64_t num_rows = 0, num_words = 0;
    for (; source->next < source->end; source->next++) {
        const struct ph__set_block *block = ph__prepared_set_block(source->set, source->order[source->next]);
        bool is_first = num_rows == 0;
        num_rows += block->num_rows;
        num_words += block->num_words;
        if (!is_first &&
            (num_rows > UINT32_MAX || ph__rows_bytes(num_rows, num_words) > source->window_bytes))
            return;
    }
}

ph_status ph__prepared_source_read(
    struct ph__prepared_source *source, size_t place, struct ph__rows *rows, uint64_t *first_row_out)
{
    size_t block = source->order[place];
    if (place + 1 < source->end)
        ph__prepared_set_expect(source->set, source->order[place + 1]);
    *first_row_out = ph__prepared_set_block(source->set, block)->first_row;
    source->num_decoded++;
    return ph__prepared_set_decode(source->set, block, &source->decoder, rows);
}

ph_status ph__prepared_source_seek(struct ph__prepared_source *source, uint64_t next)
{
    if (next > source->end)
        return ph_fail(PH_ERROR_DATA,
            "the prepared data has %zu blocks, fewer than the %" PRIu64 " that were read", source->end, next);
    source->next = (size_t)next;
    return PH_OK;
}
