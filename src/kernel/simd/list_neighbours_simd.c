/* Lists of chosen neighbours. Where they are a node's first ones, their ids are narrowed a vector at a time.
 * Else the block's items are chosen first, by strides a vector at a time, and then looked up all at once, so
 * that no node waits for its own stores. Ids are checked at the end of the block: the bits beyond the 32 that
 * a slot keeps, and the largest slot. */
#include <string.h>

#include "kernel/neighbour_list.h"
#include "kernel/simd/simd.h"

enum { NODES_AHEAD = 16 };

/* Narrows ids; adds their bits to `bits`. All but the last vector's slots are stored in whole vectors, and
 * the last one's, too, where there is room. */
PH_INLINE vu copy_ids(const int64_t *ids, size_t count, size_t room, uint32_t *slots, vu bits)
{
    size_t s = 0;
    for (; s + VI_WIDTH <= room && s < count; s += VI_WIDTH)
        bits = vu_narrow_ids(ids + s, ph__min(VI_WIDTH, count - s), slots + s, bits);
    if (s < count) {
        uint32_t last[VI_WIDTH];
        bits = vu_narrow_ids(ids + s, count - s, last, bits);
        memcpy(slots + s, last, (count - s) * sizeof *last);
    }
    return bits;
}

enum { EXACT = 1 << 24 /* whole numbers up to here are floats */ };

/* Writes begin + s stride mod d, s < c, in whole vectors; d and all s stride are below EXACT. */
PH_INLINE void place_by_stride(uint32_t stride, uint32_t begin, size_t d, size_t c, uint32_t *items)
{
    static const float lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const float below_one = 1 - 0x1p-22f; /* so that no quotient is too large; it may be too small by 1 */
    const vf size = vf_set1((float)d), inverse = vf_set1(below_one / (float)d);
    const vf step = vf_set1((float)(VF_WIDTH * stride));
    vf product = vf_mul(vf_load(lanes), vf_set1((float)stride));
    for (size_t s = 0; s < c; s += VF_WIDTH) {
        const vf quotient = vf_from_signed(vu_truncated(vf_mul(product, inverse)));
        const vu rest = vu_truncated(vf_fnma(quotient, size, product));
        const vu item = vu_add(vu_set1(begin), vu_less(rest, vu_sub(rest, vu_set1((uint32_t)d))));
        memcpy(items + s, &item, sizeof item);
        product = vf_add(product, step);
    }
}

/* Ways to choose: the first ones, by strides, or by a rule without vectors. */
enum way { PREFIX, STRIDE, RULE };

static enum way way_of(const struct ph_sampling *sampling)
{
    switch (sampling->strategy) {
    case PH_SAMPLING_BUCKET:
        return PREFIX;
    case PH_SAMPLING_STRIDE:
    case PH_SAMPLING_RATE:
        return STRIDE;
    default:
        return sampling->width > 0 ? RULE : PREFIX;
    }
}

/* Tells whether place_by_stride can choose c of d neighbours, with room for the last vector. */
PH_INLINE bool can_stride(size_t d, size_t c, size_t room)
{
    return d < EXACT && (c + VF_WIDTH) * PH_LARGEST_STRIDE < EXACT && c + VF_WIDTH <= room;
}

/* Writes the items of c of a node's d neighbours; by strides of 1 where they are all. */
PH_INLINE void place(const struct ph_sampling *sampling, enum way way, uint32_t prime, uint32_t begin,
    size_t d, size_t c, size_t room, uint32_t *items)
{
    if (way == STRIDE && can_stride(d, c, room)) {
        const uint32_t stride = d < PH_LEAST_STRIDE ? prime : ph__neighbour_stride(sampling->seed, d);
        place_by_stride(c < d ? stride : 1, begin, d, c, items);
        return;
    }
    ph__place_neighbours(sampling, d, c, items);
    for (size_t s = 0; s < c; s++)
        items[s] += begin;
}

/* Turns items into ids; returns the ids' bits. */
static uint64_t look_up_ids(const int64_t *ids, size_t count, uint32_t *slots)
{
    uint64_t bits = 0;
    for (size_t s = 0; s < count; s++) {
        const uint64_t id = (uint64_t)ids[slots[s]];
        bits |= id;
        slots[s] = (uint32_t)id;
    }
    return bits;
}

static void look_up_weights(const float *weights, size_t count, const uint32_t *items, float *weights_out)
{
    for (size_t s = 0; s < count; s++)
        weights_out[s] = weights == NULL ? 1 : weights[items[s]];
}

static void copy_weights(const float *weights, size_t count, float *weights_out)
{
    for (size_t s = 0; s < count; s++)
        weights_out[s] = weights == NULL ? 1 : weights[s];
}

/* Multiplies the weights of a block by its neighbours' roots. */
static void multiply_by_roots(const float *roots, size_t count, const uint32_t *slots, float *weights)
{
    for (size_t s = 0; s < count; s++)
        weights[s] *= roots[slots[s]];
}

static bool are_nodes(
    const struct ph__neighbours *neighbours, const uint32_t *slots, size_t count, uint64_t bits)
{
    uint32_t largest = 0;
    for (size_t s = 0; s < count; s++)
        largest = slots[s] > largest ? slots[s] : largest;
    return count == 0 || (bits >> 32 == 0 && largest < neighbours->num_nodes);
}

static uint64_t bits_of(vu bits)
{
    uint64_t lanes[sizeof(vu) / sizeof(uint64_t)], all = 0;
    memcpy(lanes, &bits, sizeof bits);
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        all |= lanes[i];
    return all;
}

/* Fills the list; returns the bits of all ids. way and has_weights are constants. */
PH_INLINE uint64_t list_block(const struct ph__neighbours *given, size_t first, size_t last,
    const struct ph__neighbour_list *given_list, enum way way, bool has_weights)
{
    const struct ph__neighbours neighbours = *given; /* no store to the list can change it */
    const struct ph__neighbour_list list = *given_list;
    const uint32_t prime = ph__neighbour_stride(neighbours.sampling.seed, UINT32_MAX);
    const uint32_t *offsets = neighbours.offsets;
    vu copied = vu_set1(0);
    size_t used = 0;
    for (size_t node = first; node < last; node++) {
        const size_t begin = offsets[node], d = offsets[node + 1] - begin;
        const size_t c = ph__sample_size(&neighbours.sampling, d), room = list.num_slots - used;
        uint32_t *slots = list.slots + used;
        list.offsets[node - first] = (uint32_t)used;
        list.scales[node - first] = ph__list_scale(&neighbours, node, d, c);
        __builtin_prefetch(neighbours.ids + offsets[ph__min(node + NODES_AHEAD, last)]);
        if (way != PREFIX && c > 0)
            place(&neighbours.sampling, way, prime, (uint32_t)begin, d, c, room, slots);
        if (way == PREFIX)
            copied = copy_ids(neighbours.ids + begin, c, room, slots, copied);
        if (way == PREFIX && has_weights)
            copy_weights(
                neighbours.weights != NULL ? neighbours.weights + begin : NULL, c, list.weights + used);
        used += c;
    }
    list.offsets[last - first] = (uint32_t)used;
    if (way == PREFIX)
        return bits_of(copied);
    if (has_weights)
        look_up_weights(neighbours.weights, used, list.slots, list.weights);
    return look_up_ids(neighbours.ids, used, list.slots);
}

#define LIST(way, has_weights)                                              \
    case 2 * (way) + (has_weights):                                         \
        bits = list_block(neighbours, first, last, list, way, has_weights); \
        break

bool PH_SIMD(list_neighbours)(
    const struct ph__neighbours *neighbours, size_t first, size_t last, const struct ph__neighbour_list *list)
{
    uint64_t bits = 0;
    switch (2 * way_of(&neighbours->sampling) + (list->weights != NULL)) {
        LIST(PREFIX, false);
        LIST(PREFIX, true);
        LIST(STRIDE, false);
        LIST(STRIDE, true);
        LIST(RULE, false);
        LIST(RULE, true);
    }
    const size_t used = list->offsets[last - first];
    if (!are_nodes(neighbours, list->slots, used, bits))
        return false;
    if (neighbours->normalisation == PH_NORMALISE_SYMMETRIC)
        multiply_by_roots(neighbours->roots, used, list->slots, list->weights);
    return true;
}
