#include "data/prepared/prepared_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "data/source/input_file.h"

/* ---- blocks ---- */

struct ph__prepared_set {
    struct ph__row_layout layout;
    struct ph__manifest manifest;
    struct ph__part_reader **parts; /* (manifest.num_parts) */
    struct ph__set_block *blocks;
    size_t num_blocks;
};

static const char *manifest_path(struct ph__arena *arena, const char *folder)
{
    return ph__path_join(arena, folder, PH_MANIFEST_NAME);
}

static ph_status open_part(struct ph__prepared_set *set, struct ph__arena *arena, const char *folder,
    size_t number, const unsigned char digest[PH_ENCODER_DIGEST_BYTES])
{
    const struct ph__manifest_part *part = &set->manifest.parts[number];
    const char *path = ph__path_join(arena, folder, part->name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__part_reader_open(path, &set->layout, digest, &set->parts[number]));
    const struct ph__part_footer *footer = ph__part_reader_footer(set->parts[number]);
    char checksum[17];
    ph__checksum_text(footer->checksum, checksum);
    if (footer->num_rows != part->num_rows || footer->num_words != part->num_words ||
        ph__part_reader_num_bytes(set->parts[number]) != part->num_bytes ||
        strcmp(checksum, part->checksum) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: the part does not match %s of its folder", path, PH_MANIFEST_NAME);
    set->num_blocks += (size_t)footer->num_blocks;
    return PH_OK;
}

static ph_status list_blocks(struct ph__prepared_set *set, const char *folder)
{
    set->blocks = calloc(set->num_blocks + 1, sizeof *set->blocks);
    if (set->blocks == NULL)
        return ph__out_of_memory("%s: %zu blocks", folder, set->num_blocks);
    struct ph__set_block *block = set->blocks;
    uint64_t num_rows = 0, num_words = 0;
    for (size_t part = 0; part < set->manifest.num_parts; part++) {
        const struct ph__part_entry *entries = ph__part_reader_entries(set->parts[part]);
        for (size_t i = 0; i < ph__part_reader_footer(set->parts[part])->num_blocks; i++) {
            *block++ = (struct ph__set_block){.first_row = num_rows,
                .part = (uint32_t)part,
                .block = (uint32_t)i,
                .num_rows = entries[i].num_rows,
                .num_words = (size_t)entries[i].num_words};
            num_rows += entries[i].num_rows;
            num_words += entries[i].num_words;
        }
    }
    if (num_rows != set->manifest.num_rows || num_words != set->manifest.num_words)
        return ph_fail(
            PH_ERROR_DATA, "%s: the parts do not add up to the totals in %s", folder, PH_MANIFEST_NAME);
    return PH_OK;
}

static ph_status open_all(struct ph__prepared_set *set, struct ph__arena *arena, const char *folder,
    const struct ph_encoder *encoder)
{
    char digest[65];
    unsigned char short_digest[PH_ENCODER_DIGEST_BYTES];
    const char *path = manifest_path(arena, folder);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__row_layout_init(&set->layout, encoder));
    PH_TRY(ph__encoder_digest(encoder, digest));
    ph__part_digest(digest, short_digest);
    PH_TRY(ph__manifest_read(path, &set->manifest));
    if (strcmp(set->manifest.encoder, digest) != 0)
        return ph_fail(
            PH_ERROR_DATA, "%s: was prepared with another encoder than the one that reads it", folder);
    set->parts = calloc(set->manifest.num_parts + 1, sizeof(struct ph__part_reader *));
    if (set->parts == NULL)
        return ph__out_of_memory("%s: %zu parts", folder, set->manifest.num_parts);
    for (size_t i = 0; i < set->manifest.num_parts; i++)
        PH_TRY(open_part(set, arena, folder, i, short_digest));
    return list_blocks(set, folder);
}

ph_status ph__prepared_set_open(
    const char *folder, const struct ph_encoder *encoder, struct ph__prepared_set **set_out)
{
    struct ph__arena arena = {0};
    struct ph__prepared_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return ph__out_of_memory("cannot read %s", folder);
    ph_status status = open_all(set, &arena, folder, encoder);
    ph__arena_fini(&arena);
    if (status != PH_OK) {
        ph__prepared_set_close(set);
        return status;
    }
    *set_out = set;
    return PH_OK;
}

void ph__prepared_set_close(struct ph__prepared_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; set->parts != NULL && i < set->manifest.num_parts; i++)
        ph__part_reader_close(set->parts[i]);
    free(set->parts);
    free(set->blocks);
    ph__manifest_fini(&set->manifest);
    ph__row_layout_fini(&set->layout);
    free(set);
}

const struct ph__manifest *ph__prepared_set_manifest(const struct ph__prepared_set *set)
{
    return &set->manifest;
}

const struct ph__row_layout *ph__prepared_set_layout(const struct ph__prepared_set *set)
{
    return &set->layout;
}

size_t ph__prepared_set_num_blocks(const struct ph__prepared_set *set)
{
    return set->num_blocks;
}

const struct ph__set_block *ph__prepared_set_block(const struct ph__prepared_set *set, size_t block)
{
    return &set->blocks[block];
}

ph_status ph__prepared_set_decode(
    struct ph__prepared_set *set, size_t block, struct ph__block_decoder *decoder, struct ph__rows *rows)
{
    const struct ph__set_block *found = &set->blocks[block];
    return ph__part_reader_decode(set->parts[found->part], found->block, decoder, rows);
}

/* Decodes the first label of each row, as a word: labels_out (the block's rows). */
static ph_status decode_labels(const struct ph__prepared_set *set, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out)
{
    const struct ph__set_block *found = &set->blocks[block];
    return ph__part_reader_decode_labels(set->parts[found->part], found->block, decoder, labels_out);
}

static void expect(const struct ph__prepared_set *set, size_t block)
{
    ph__part_reader_expect(set->parts[set->blocks[block].part], set->blocks[block].block);
}

/* ---- the order ---- */

/* Finds out whether a window over the text would take all rows at once. Such a window reads on while its rows
 * take less than window_bytes, so all rows but the last must take less. Where the last block decides, it is
 * decoded to get the size of its last row. */
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
        return ph__out_of_memory("the order of %zu blocks", num_blocks);
    for (size_t i = 0; i < num_blocks; i++)
        source->order[i] = (uint32_t)i;
    if (source->window_bytes == 0)
        return PH_OK;
    bool does_fit = false;
    PH_TRY(fits_as_a_whole(source, &does_fit));
    struct ph__rng_sequence random = {.key = {seed, epoch, ph__hash_name("data.shuffle.blocks")}};
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

/* ---- rows that take part ---- */

static ph_status count_block(
    struct ph__prepared_source *source, const struct ph__negatives *negatives, size_t block)
{
    uint32_t labels[PH_BLOCK_MAX_ROWS];
    const struct ph__set_block *counted = ph__prepared_set_block(source->set, block);
    PH_TRY(decode_labels(source->set, block, &source->decoder, labels));
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
        return ph__out_of_memory("cannot count the rows of %zu blocks", num_blocks);
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

/* ---- windows ---- */

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
        expect(source->set, source->order[place + 1]);
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
