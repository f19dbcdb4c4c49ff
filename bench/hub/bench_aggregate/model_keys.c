#include "model_keys.h"

#include <assert.h>
#include <stdlib.h>

#include "figures.h"
#include "hub/layout/spread.h"

static void add_key(struct model_keys *keys, size_t n)
{
    assert(keys->num_keys < MAX_KEYS);
    keys->keys[keys->num_keys++] = (struct span){keys->numbers, n};
    keys->numbers += n;
}

struct model_keys equal_keys(const char *name, size_t numbers, size_t key_numbers)
{
    struct model_keys keys = {.name = name};
    while (keys.numbers < numbers)
        add_key(&keys, numbers - keys.numbers < key_numbers ? numbers - keys.numbers : key_numbers);
    return keys;
}

struct model_keys keys_of_model(enum model model)
{
    struct model_shapes shapes;
    model_shapes_init(&shapes, model);
    struct model_keys keys = {.name = shapes.figure};
    for (size_t i = 0; i < shapes.num_tensors; i++)
        add_key(&keys, shapes.elements[i]);
    return keys;
}

static struct ph__layout *layout_of(const struct model_keys *keys, size_t chunk_numbers)
{
    struct ph__layout_key of[MAX_KEYS];
    struct ph__layout *layout;
    for (size_t k = 0; k < keys->num_keys; k++)
        of[k] = (struct ph__layout_key){keys->keys[k].n, PH_F32};
    bench_check(ph__layout_create(of, keys->num_keys, chunk_numbers * sizeof(float), &layout));
    return layout;
}

/* Returns the place of a chunk in the keys' flat buffer, which has no padding. */
static struct span span_of(const struct model_keys *keys, const struct ph__layout *layout, size_t index)
{
    const struct ph__chunk_place *chunk = &layout->chunks[index];
    const size_t in_key = chunk->first_weight - layout->keys[chunk->key].first_weight;
    return (struct span){keys->keys[chunk->key].first + in_key, chunk->num_elements};
}

struct chunks chunks_create(const struct model_keys *keys, size_t chunk_numbers, size_t num_owners)
{
    struct ph__layout *layout = layout_of(keys, chunk_numbers);
    const size_t num_chunks = layout->sizes.num_chunks;
    uint16_t *owners = calloc(num_chunks, sizeof *owners);
    struct chunks chunks = {0};
    for (size_t owner = 0; owner < num_owners; owner++)
        chunks.of[owner] = malloc(num_chunks * sizeof *chunks.of[owner]);
    for (size_t owner = 0; owner < num_owners; owner++)
        if (owners == NULL || chunks.of[owner] == NULL)
            bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu chunks", num_chunks));
    bench_check(ph__spread_chunks(layout, NULL, 0, (uint16_t)num_owners, owners));
    for (size_t i = 0; i < num_chunks; i++)
        chunks.of[owners[i]][chunks.count[owners[i]]++] = span_of(keys, layout, i);
    ph__layout_destroy(layout);
    free(owners);
    return chunks;
}

void chunks_destroy(struct chunks *chunks)
{
    for (size_t owner = 0; owner < MAX_OWNERS; owner++)
        free(chunks->of[owner]);
}
