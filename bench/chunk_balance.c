#include "chunk_balance.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "hub/layout/layout.h"

/* ---- the wrong partition ---- */

struct sized {
    size_t size, index;
};

static int largest_first(const void *left, const void *right)
{
    const struct sized *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static size_t least(const size_t *loads, size_t num_bins)
{
    size_t found = 0;
    for (size_t b = 1; b < num_bins; b++)
        if (loads[b] < loads[found])
            found = b;
    return found;
}

ph_status unsorted_greedy(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out)
{
    struct ph__arena arena = {0};
    struct sized *items = ph__arena_alloc_array(&arena, num_items, sizeof *items);
    size_t *believed = ph__arena_alloc_array(&arena, num_bins, sizeof *believed);
    const bool has_memory = items != NULL && believed != NULL;
    if (has_memory) {
        for (size_t i = 0; i < num_items; i++)
            items[i] = (struct sized){sizes[i], i};
        qsort(items, num_items, sizeof *items, largest_first);
        memset(loads_out, 0, num_bins * sizeof *loads_out);
        for (size_t i = 0; i < num_items; i++) {
            const size_t bin = least(believed, num_bins);
            believed[bin] += sizes[i]; /* the mistake: not items[i].size */
            bins_out[items[i].index] = (uint32_t)bin;
            loads_out[bin] += items[i].size;
        }
    }
    ph__arena_fini(&arena);
    return has_memory ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- balance ---- */

ph_status chunk_sizes(
    const struct model_shapes *shapes, size_t chunk_bytes, size_t **sizes_out, size_t *num_chunks_out)
{
    struct ph__layout_key keys[MODEL_MAX_TENSORS];
    struct ph__layout *layout = NULL;
    for (size_t i = 0; i < shapes->num_tensors; i++)
        keys[i] = (struct ph__layout_key){shapes->elements[i], PH_F32};
    PH_TRY(ph__layout_create(keys, shapes->num_tensors, chunk_bytes, &layout));
    const size_t num_chunks = layout->sizes.num_chunks;
    size_t *sizes = calloc(num_chunks, sizeof *sizes);
    for (size_t i = 0; sizes != NULL && i < num_chunks; i++)
        sizes[i] = layout->chunks[i].gradient_bytes;
    ph__layout_destroy(layout);
    if (sizes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: the sizes of %zu chunks", num_chunks);
    *sizes_out = sizes;
    *num_chunks_out = num_chunks;
    return PH_OK;
}

static size_t largest(const size_t *loads, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found = loads[i] > found ? loads[i] : found;
    return found;
}

static size_t sum(const size_t *sizes, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += sizes[i];
    return total;
}

/* Measures the balance, in the arena's memory. */
static ph_status balance_in(struct ph__arena *arena, const size_t *sizes, size_t num_chunks,
    size_t num_servers, size_t cores_per_server, partition_function partition,
    struct chunk_balance *balance_out)
{
    uint32_t *servers = ph__arena_alloc_array(arena, num_chunks, sizeof *servers);
    uint32_t *cores = ph__arena_alloc_array(arena, num_chunks, sizeof *cores);
    size_t *own_sizes = ph__arena_alloc_array(arena, num_chunks, sizeof *own_sizes);
    size_t *server_loads = ph__arena_alloc_array(arena, num_servers, sizeof *server_loads);
    size_t *core_loads = ph__arena_alloc_array(arena, cores_per_server, sizeof *core_loads);
    size_t largest_core = 0;
    if (servers == NULL || cores == NULL || own_sizes == NULL || server_loads == NULL || core_loads == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(partition(num_chunks, sizes, num_servers, servers, server_loads));
    for (size_t server = 0; server < num_servers; server++) {
        size_t num_own = 0;
        for (size_t i = 0; i < num_chunks; i++)
            if (servers[i] == server)
                own_sizes[num_own++] = sizes[i];
        PH_TRY(partition(num_own, own_sizes, cores_per_server, cores, core_loads));
        const size_t load = largest(core_loads, cores_per_server);
        largest_core = load > largest_core ? load : largest_core;
    }
    const double mean_server = (double)sum(sizes, num_chunks) / (double)num_servers;
    const double mean_core = mean_server / (double)cores_per_server;
    *balance_out = (struct chunk_balance){.servers = (double)largest(server_loads, num_servers) / mean_server,
        .cores = (double)largest_core / mean_core,
        .chunks_per_core = mean_core / (double)largest(sizes, num_chunks)};
    return PH_OK;
}

ph_status chunk_balance(const size_t *sizes, size_t num_chunks, size_t num_servers, size_t cores_per_server,
    partition_function partition, struct chunk_balance *balance_out)
{
    struct ph__arena arena = {0};
    const ph_status status =
        balance_in(&arena, sizes, num_chunks, num_servers, cores_per_server, partition, balance_out);
    ph__arena_fini(&arena);
    return status;
}
