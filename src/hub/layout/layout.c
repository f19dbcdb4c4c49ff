#include "hub/layout/layout.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

_Static_assert(PH_LAYOUT_MAX_CHUNKS <= SIZE_MAX / (4 * (size_t)PH_HUB_MAX_CHUNK_BYTES),
    "no sum of sizes below can overflow");

static ph_status check_request(size_t num_keys, size_t chunk_bytes)
{
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys: a job must have 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    if (chunk_bytes == 0 || chunk_bytes > PH_HUB_MAX_CHUNK_BYTES || chunk_bytes % PH_ALIGNMENT != 0)
        return ph_fail(PH_ERROR_USAGE, "chunks of %zu bytes: must be a multiple of %d up to %u", chunk_bytes,
            PH_ALIGNMENT, PH_HUB_MAX_CHUNK_BYTES);
    return PH_OK;
}

static ph_status check_key(const struct ph__layout_key *key, size_t index)
{
    if (key->dtype != PH_F32 && key->dtype != PH_F16 && key->dtype != PH_BF16)
        return ph_fail(
            PH_ERROR_USAGE, "key %zu is of %s: must be F32, F16 or BF16", index, ph_dtype_name(key->dtype));
    if (key->num_elements == 0)
        return ph_fail(PH_ERROR_USAGE, "key %zu has no elements", index);
    return PH_OK;
}

/* Sets a key's place behind the keys before it, and adds the key to `sizes`. */
static ph_status place_key(const struct ph__layout_key *key, size_t index, size_t chunk_bytes,
    struct ph__layout_sizes *sizes, struct ph__key_place *place_out)
{
    PH_TRY(check_key(key, index));
    const size_t elements_per_chunk = chunk_bytes / ph_dtype_size(key->dtype);
    const size_t num_chunks =
        key->num_elements / elements_per_chunk + (key->num_elements % elements_per_chunk != 0);
    if (num_chunks > PH_LAYOUT_MAX_CHUNKS - sizes->num_chunks)
        return ph_fail(PH_ERROR_USAGE,
            "key %zu, of %zu elements: the job would have more than %zu chunks of %zu bytes", index,
            key->num_elements, PH_LAYOUT_MAX_CHUNKS, chunk_bytes);
    *place_out = (struct ph__key_place){.num_elements = key->num_elements,
        .gradient_offset = sizes->gradient_bytes,
        .first_weight = sizes->num_weights,
        .first_chunk = (uint32_t)sizes->num_chunks,
        .num_chunks = (uint32_t)num_chunks,
        .dtype = key->dtype};
    sizes->num_keys++;
    sizes->num_narrow_keys += key->dtype != PH_F32;
    sizes->num_chunks += num_chunks;
    sizes->num_here += num_chunks;
    sizes->gradient_bytes += ph__size_align(key->num_elements * ph_dtype_size(key->dtype));
    sizes->num_weights += ph__round_up(key->num_elements, PH_ALIGNMENT / sizeof(float));
    return PH_OK;
}

ph_status ph__layout_measure(const struct ph__layout_key *keys, size_t num_keys, size_t chunk_bytes,
    struct ph__layout_sizes *sizes_out)
{
    struct ph__layout_sizes sizes = {0};
    struct ph__key_place place;
    PH_TRY(check_request(num_keys, chunk_bytes));
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(place_key(&keys[i], i, chunk_bytes, &sizes, &place));
    *sizes_out = sizes;
    return PH_OK;
}

size_t ph__layout_bytes(const struct ph__layout_sizes *sizes)
{
    return sizeof(struct ph__layout) + sizes->num_keys * sizeof(struct ph__key_place) +
           sizes->num_chunks * sizeof(struct ph__chunk_place);
}

static void cut_key(const struct ph__layout *layout, uint32_t index)
{
    const struct ph__key_place *key = &layout->keys[index];
    const size_t element_bytes = ph_dtype_size(key->dtype);
    const size_t elements_per_chunk = layout->chunk_bytes / element_bytes;
    for (size_t i = 0; i < key->num_chunks; i++) {
        const size_t first = i * elements_per_chunk;
        const size_t num_elements = ph__min(elements_per_chunk, key->num_elements - first);
        layout->chunks[key->first_chunk + i] =
            (struct ph__chunk_place){.gradient_offset = key->gradient_offset + i * layout->chunk_bytes,
                .first_weight = key->first_weight + first,
                .key = index,
                .num_elements = (uint32_t)num_elements,
                .gradient_bytes = (uint32_t)(num_elements * element_bytes),
                .dtype = key->dtype};
    }
}

static ph_status fill(struct ph__layout *layout, const struct ph__layout_key *keys, size_t num_keys)
{
    layout->keys = calloc(num_keys, sizeof *layout->keys);
    if (layout->keys == NULL)
        return ph__out_of_memory("the layout of %zu keys", num_keys);
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(place_key(&keys[i], i, layout->chunk_bytes, &layout->sizes, &layout->keys[i]));
    layout->chunks = calloc(layout->sizes.num_chunks, sizeof *layout->chunks);
    if (layout->chunks == NULL)
        return ph__out_of_memory("the layout of %zu chunks", layout->sizes.num_chunks);
    for (size_t i = 0; i < num_keys; i++)
        cut_key(layout, (uint32_t)i);
    return PH_OK;
}

ph_status ph__layout_create(
    const struct ph__layout_key *keys, size_t num_keys, size_t chunk_bytes, struct ph__layout **layout_out)
{
    PH_TRY(check_request(num_keys, chunk_bytes));
    struct ph__layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return ph__out_of_memory("a layout");
    layout->chunk_bytes = chunk_bytes;
    const ph_status status = fill(layout, keys, num_keys);
    if (status != PH_OK) {
        ph__layout_destroy(layout);
        return status;
    }
    *layout_out = layout;
    return PH_OK;
}

/* Places the key's chunks that stay, one behind the other; all but the last are multiples of PH_ALIGNMENT. */
static void keep_key(
    const struct ph__layout *layout, size_t index, const uint16_t *bins, struct ph__layout_sizes *sizes)
{
    struct ph__key_place *key = &layout->keys[index];
    key->gradient_offset = sizes->gradient_bytes;
    key->first_weight = sizes->num_weights;
    key->num_elements = 0;
    for (uint32_t i = key->first_chunk; i < key->first_chunk + key->num_chunks; i++) {
        struct ph__chunk_place *chunk = &layout->chunks[i];
        if (bins[i] == PH_ELSEWHERE) {
            *chunk = (struct ph__chunk_place){.key = chunk->key, .dtype = chunk->dtype};
            continue;
        }
        chunk->gradient_offset = sizes->gradient_bytes;
        chunk->first_weight = sizes->num_weights;
        key->num_elements += chunk->num_elements;
        sizes->num_here++;
        sizes->gradient_bytes += ph__size_align(chunk->gradient_bytes);
        sizes->num_weights += ph__round_up(chunk->num_elements, PH_ALIGNMENT / sizeof(float));
    }
}

void ph__layout_keep(struct ph__layout *layout, const uint16_t *bins)
{
    struct ph__layout_sizes sizes = {.num_keys = layout->sizes.num_keys,
        .num_chunks = layout->sizes.num_chunks,
        .num_narrow_keys = layout->sizes.num_narrow_keys};
    for (size_t i = 0; i < sizes.num_keys; i++)
        keep_key(layout, i, bins, &sizes);
    sizes.gradient_bytes = ph__max(sizes.gradient_bytes, PH_ALIGNMENT);
    sizes.num_weights = ph__max(sizes.num_weights, PH_ALIGNMENT / sizeof(float));
    layout->sizes = sizes;
}

size_t ph__layout_count_here(const struct ph__layout *layout, size_t key)
{
    const struct ph__key_place *place = &layout->keys[key];
    size_t count = 0;
    for (uint32_t i = 0; i < place->num_chunks; i++)
        count += ph__chunk_is_here(&layout->chunks[place->first_chunk + i]);
    return count;
}

void ph__layout_destroy(struct ph__layout *layout)
{
    if (layout == NULL)
        return;
    free(layout->keys);
    free(layout->chunks);
    free(layout);
}

ph_status ph__layout_alloc_weights(const struct ph__layout *layout, const char *what, float **array_out)
{
    void *array;
    PH_TRY(ph__memory_alloc(layout->sizes.num_weights * sizeof(float), what, &array));
    *array_out = array;
    return PH_OK;
}

void ph__layout_free_weights(const struct ph__layout *layout, float *array)
{
    if (array != NULL)
        ph__memory_free(array, layout->sizes.num_weights * sizeof(float));
}
