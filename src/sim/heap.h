/* Heaps of numbered items, the least key first; equal keys go by number. An item is in one heap at most, and
 * its key may change while it is there. */
#ifndef PH_SIM_HEAP_H
#define PH_SIM_HEAP_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_HEAP_NOWHERE UINT32_MAX

/* Keys and places of items, which heaps share. */
struct ph__heap_items { /* zero-initialised: no items */
    double *keys;
    uint32_t *places; /* in the heap; PH_HEAP_NOWHERE: in none */
    size_t count, keys_capacity, places_capacity;
};

/* Four children of an entry fill a cache line, and have their keys beside them. */
struct ph__heap_entry {
    double key;
    uint32_t item;
};

struct ph__heap { /* zero-initialised: empty */
    struct ph__heap_entry *entries;
    size_t count, capacity;
};

/* Adds an item that is in no heap. PH_ERROR_MEMORY. */
ph_status ph__heap_items_add(struct ph__heap_items *items);
void ph__heap_items_fini(struct ph__heap_items *items);

/* Makes room for as many items in all. PH_ERROR_MEMORY. */
ph_status ph__heap_reserve(struct ph__heap *heap, size_t count);
void ph__heap_fini(struct ph__heap *heap);

/* Puts an item into the heap, which has room for it, or to its new place there, by this key. */
void ph__heap_put(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item, double key);
/* Takes an item out of the heap that it is in. */
void ph__heap_take(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item);

/* Returns the least key; INFINITY: the heap is empty. */
static inline double ph__heap_least(const struct ph__heap *heap)
{
    return heap->count > 0 ? heap->entries[0].key : (double)INFINITY;
}

/* Returns the item that has it, of a heap that is not empty; of equal keys the least item. */
static inline uint32_t ph__heap_first(const struct ph__heap *heap)
{
    return heap->entries[0].item;
}

#endif
