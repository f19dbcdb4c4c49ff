#include "data/prepared/prepared_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/sum/checksum.h"
#include "data/source/input_file.h"

struct ph__prepared_set {
    struct ph__row_layout layout;
    struct ph__manifest manifest;
    struct ph__part_reader **parts; /* (manifest.num_parts) */
    struct ph__set_block *blocks;
    size_t num_blocks;
};

static const char *manifest_path(struct ph_arena *arena, const char *folder)
{
    return ph__path_join(arena, folder, PH_MANIFEST_NAME);
}

static ph_status open_part(struct ph__prepared_set *set, struct ph_arena *arena, const char *folder,
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
        return ph_fail(
            PH_ERROR_DATA, "%s: is not the part that %s of its folder tells of", path, PH_MANIFEST_NAME);
    set->num_blocks += (size_t)footer->num_blocks;
    return PH_OK;
}

static ph_status list_blocks(struct ph__prepared_set *set, const char *folder)
{
    set->blocks = calloc(set->num_blocks + 1, sizeof *set->blocks);
    if (set->blocks == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %zu blocks", folder, set->num_blocks);
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
            PH_ERROR_DATA, "%s: the parts do not add up to what %s says", folder, PH_MANIFEST_NAME);
    return PH_OK;
}

static ph_status open_all(struct ph__prepared_set *set, struct ph_arena *arena, const char *folder,
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
            PH_ERROR_DATA, "%s: was prepared with another encoder than the one that shall read it", folder);
    set->parts = calloc(set->manifest.num_parts + 1, sizeof(struct ph__part_reader *));
    if (set->parts == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %zu parts", folder, set->manifest.num_parts);
    for (size_t i = 0; i < set->manifest.num_parts; i++)
        PH_TRY(open_part(set, arena, folder, i, short_digest));
    return list_blocks(set, folder);
}

ph_status ph__prepared_set_open(
    const char *folder, const struct ph_encoder *encoder, struct ph__prepared_set **set_out)
{
    struct ph_arena arena = {0};
    struct ph__prepared_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to read it", folder);
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

ph_status ph__prepared_set_decode_labels(const struct ph__prepared_set *set, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out)
{
    const struct ph__set_block *found = &set->blocks[block];
    return ph__part_reader_decode_labels(set->parts[found->part], found->block, decoder, labels_out);
}

void ph__prepared_set_expect(const struct ph__prepared_set *set, size_t block)
{
    ph__part_reader_expect(set->parts[set->blocks[block].part], set->blocks[block].block);
}
