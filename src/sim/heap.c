#include "sim/heap.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"

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
    return ph__array_reserve((void **)&heap->items, &heap->capacity, count, sizeof *heap->items);
}

void ph__heap_fini(struct ph__heap *heap)
{
    free(heap->items);
}

static bool is_before(const struct ph__heap_items *items, uint32_t a, uint32_t b)
{
    return items->keys[a] < items->keys[b] || (items->keys[a] == items->keys[b] && a < b);
}

static void set(struct ph__heap *heap, struct ph__heap_items *items, size_t place, uint32_t item)
{
    heap->items[place] = item;
    items->places[item] = (uint32_t)place;
}

static void rise(struct ph__heap *heap, struct ph__heap_items *items, size_t place, uint32_t item)
{
    while (place > 0 && is_before(items, item, heap->items[(place - 1) / 2])) {
        set(heap, items, place, heap->items[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set(heap, items, place, item);
}

static void sink(struct ph__heap *heap, struct ph__heap_items *items, size_t place, uint32_t item)
{
    for (size_t child; (child = 2 * place + 1) < heap->count; place = child) {
        if (child + 1 < heap->count && is_before(items, heap->items[child + 1], heap->items[child]))
            child++;
        if (!is_before(items, heap->items[child], item))
            break;
        set(heap, items, place, heap->items[child]);
    }
    set(heap, items, place, item);
}

static void move(struct ph__heap *heap, struct ph__heap_items *items, size_t place, uint32_t item)
{
    if (place > 0 && is_before(items, item, heap->items[(place - 1) / 2]))
        rise(heap, items, place, item);
    else
        sink(heap, items, place, item);
}

void ph__heap_put(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item, double key)
{
    const uint32_t place = items->places[item];
    items->keys[item] = key;
    move(heap, items, place != PH_HEAP_NOWHERE ? place : heap->count++, item);
}

void ph__heap_take(struct ph__heap *heap, struct ph__heap_items *items, uint32_t item)
{
    const size_t place = items->places[item];
    const uint32_t last = heap->items[--heap->count];
    items->places[item] = PH_HEAP_NOWHERE;
    if (place < heap->count)
        move(heap, items, place, last);
}

double ph__heap_least(const struct ph__heap *heap, const struct ph__heap_items *items)
{
    return heap->count > 0 ? items->keys[heap->items[0]] : (double)INFINITY;
}
