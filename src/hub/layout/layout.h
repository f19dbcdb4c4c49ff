/* From keys to chunks: where a job's numbers lie, and in which pieces they travel.
 *
 * A key is a run of elements that is pushed and pulled as one; a chunk is the piece of a key that is sent,
 * summed and stepped as one. There are two spaces of offsets, since gradients have the dtype of their key,
 * but weights and optimizer slots are fp32:
 *
 *     gradients  | key 0                | key 1     |    bytes; each key starts on a multiple of PH_ALIGNMENT
 *     weights    | key 0                | key 1     |    fp32 elements; each key starts on a cache line, too
 *     chunks     | 0     | 1     | 2    | 3     | 4 |    in the order of keys; a key's last may be shorter
 *
 * Where several hubs share the keys, each hub makes the layout of all keys, and then room for its own chunks
 * alone: numbers of keys and chunks are the same on all hubs, offsets are the hub's own.
 *
 * Requests may come from a socket: they are checked before anything is allocated, and the limits below keep
 * every sum of sizes far from overflow. A finished layout is immutable; any number of threads may read it. */
#ifndef PH_HUB_LAYOUT_H
#define PH_HUB_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "phloem/hub.h"
#include "phloem/tensor.h"

#define PH_ELSEWHERE UINT16_MAX /* bin of a chunk that lives on another hub */

#define PH_LAYOUT_MAX_KEYS ((size_t)1 << 16)
/* Most chunks of all keys. A hub's control thread lays out and spreads a job's chunks at a stretch, while
 * other jobs wait. */
#define PH_LAYOUT_MAX_CHUNKS ((size_t)1 << 20)

/* Key as the job requests it. */
struct ph__layout_key {
    size_t num_elements;
    enum ph_dtype dtype; /* dtype of the gradients: PH_F32, PH_F16 or PH_BF16 */
};

struct ph__layout_sizes {
    size_t num_keys, num_chunks;
    size_t num_narrow_keys; /* keys whose gradients are narrower than fp32 */
    size_t num_here;        /* chunks that live here: all, unless ph__layout_keep() removed some */
    size_t gradient_bytes;  /* size of one worker's region */
    size_t num_weights;     /* elements of the weights, and of each optimizer slot */
};

struct ph__key_place {
    size_t num_elements;    /* elements of its chunks that live here, one chunk behind the other */
    size_t gradient_offset; /* bytes, a multiple of PH_ALIGNMENT */
    size_t first_weight;    /* element; a multiple of PH_ALIGNMENT bytes */
    uint32_t first_chunk, num_chunks;
    enum ph_dtype dtype;
};

struct ph__chunk_place {
    size_t gradient_offset; /* bytes, a multiple of PH_ALIGNMENT */
    size_t first_weight;    /* element; a multiple of PH_ALIGNMENT bytes */
    uint32_t key;
    uint32_t num_elements;   /* 0: lives elsewhere */
    uint32_t gradient_bytes; /* num_elements times the size of an element */
    enum ph_dtype dtype;
};

struct ph__layout {
    struct ph__layout_sizes sizes;
    size_t chunk_bytes;
    struct ph__key_place *keys;     /* (num_keys) */
    struct ph__chunk_place *chunks; /* (num_chunks) */
};

/* Gives the sizes of a layout, so that a quota can be applied before it is made; allocates nothing.
 * PH_ERROR_USAGE naming the key: no keys, too many, one without elements or of another dtype, a chunk size
 * that is not a multiple of PH_ALIGNMENT in 1 .. PH_HUB_MAX_CHUNK_BYTES, more than PH_LAYOUT_MAX_CHUNKS. */
ph_status ph__layout_measure(const struct ph__layout_key *keys, size_t num_keys, size_t chunk_bytes,
    struct ph__layout_sizes *sizes_out);

/* Returns the bytes of the layout itself. */
size_t ph__layout_bytes(const struct ph__layout_sizes *sizes);

/* Creates a layout; copies the keys. Errors of ph__layout_measure(), and PH_ERROR_MEMORY. */
ph_status ph__layout_create(
    const struct ph__layout_key *keys, size_t num_keys, size_t chunk_bytes, struct ph__layout **layout_out);
/* Removes the room of chunks whose bin is PH_ELSEWHERE; leaves at least a cache line. bins: (num_chunks). */
void ph__layout_keep(struct ph__layout *layout, const uint16_t *bins);
static inline bool ph__chunk_is_here(const struct ph__chunk_place *chunk)
{
    return chunk->num_elements > 0;
}
size_t ph__layout_count_here(const struct ph__layout *layout, size_t key); /* chunks of the key */

void ph__layout_destroy(struct ph__layout *layout); /* NULL is fine */

/* Allocates an array of the layout's num_weights, zeros. PH_ERROR_MEMORY naming `what`. */
ph_status ph__layout_alloc_weights(const struct ph__layout *layout, const char *what, float **array_out);
void ph__layout_free_weights(const struct ph__layout *layout, float *array); /* NULL is fine */

#endif
