#include "sim/heap.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

ph_status ph__heap_items_add(struct ph__heap_items *items)
{
    PH_TRY(ph__array_reserve(
        (void **)&items->keys, &items->keys_capacity, items->count + 1, sizeof *items->keys));
    PH_TRY(ph__array_reserve(
        (void **)&items->places, &items->places_capacity, items->count + 1, sizeof *items->places));
    items->places[items->count++] = PH_HEAP_NOWHERE;
    return PH_OK;
}

void ph__heap_items_fini(struct ph__heap_items *items)
{
    free(items->keys);
    free(items->places);
}

ph_status ph__heap_reserve(struct ph__heap *heap, size_t count)
{
    return ph__array_reserve((void **)&heap->entries, &heap->capacity, count, sizeof *heap->entries);
}

void ph__heap_fini(struct ph__heap *heap)
{
    free(heap->entries);
}

enum { CHILDREN = 4 };

static bool is_before(struct ph__heap_entry a, struct ph__heap_entry b)
{
    return a.key < b.key || (a.key <= b.key && a.item < b.item);
}

static void set(
    struct ph__heap *heap, struct ph__heap_items *items, size_t place, struct ph__heap_entry entry)
{
    heap->entries[place] = entry;
    items->places[entry.item] = (uint32_t)place;
}

static size_t parent_of(size_t place)
{
    return (place - 1) / CHILDREN;
}

static void rise(
    struct ph__heap *heap, struct ph__heap_items *items, size_t place, struct ph__heap_entry entry)
{
    while (place > 0 && is_before(entry, heap->entries[parent_of(place)])) {
        set(heap, items, place, heap->entries[parent_of(place)]);
        place = parent_of(place);
    }
    set(heap, items, place, entry);
}

/* Returns the place of the first child in order; count: there is none. */
static size_t first_child(const struct ph__heap *heap, size_t place)
{
    const size_t begin = ph__min(CHILDREN * place + 1, heap->count);
    const size_t end = ph__min(begin + CHILDREN, heap->count);
    size_t first = begin;
    for (size_t child = begin + 1; child < end; child++)
        if (is_before(heap->entries[child], heap->entries[first]))
            first = child;
    return first;
}

static void sink(
    struct ph__heap *heap, struct ph__heap_items *items, size_t place, struct ph__heap_entry entry)
{
    for (size_t child; (child = first_child(heap, place)) < heap->count; place = child) {
        if (!is_before(heap->entries[child], entry))
            break;
        set(heap, items, place, heap->entries[child]);
    }
    set(heap, items, place, entry);
}

static void move(
    struct ph__heap *heap, struct ph__heap_items *items, size_t place, struct ph__heap_entry entry)
{
    if (place > 0 && is_before(entry, heap->entries[parent_of(place)]))
        rise(heap, items, place, entry);
    else
        sink(heap, items, place, entry);
}

void ph__heap_put(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item, double key)
{
    const uint32_t place = items->places[item];
    items->keys[item] = key;
    move(heap, items, place != PH_HEAP_NOWHERE ? place : heap->count++, (struct ph__heap_entry){key, item});
}

void ph__heap_take(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item)
{
    const size_t place = items->places[item];
    const struct ph__heap_entry last = heap->entries[--heap->count];
    items->places[item] = PH_HEAP_NOWHERE;
    if (place < heap->count)
        move(heap, items, place, last);
}
