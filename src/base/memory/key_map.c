#include "base/memory/key_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

enum { LEAST_CAPACITY = 1024 };

static size_t home_of(const struct ph__key_map *map, uint64_t key)
{
    return (size_t)(key ^ key >> 32) & (map->capacity - 1); /* a power of two */
}

/* Returns the key's slot, or the empty one where it would be. */
static size_t find_slot(const struct ph__key_map *map, uint64_t key)
{
    size_t slot = home_of(map, key);
    while (map->numbers[slot] != PH_NO_NUMBER && map->keys[slot] != key)
        slot = (slot + 1) & (map->capacity - 1);
    return slot;
}

static void put(struct ph__key_map *map, uint64_t key, uint32_t number)
{
    const size_t slot = find_slot(map, key);
    map->count += map->numbers[slot] == PH_NO_NUMBER;
    if (map->numbers[slot] != PH_NO_NUMBER)
        return;
    map->keys[slot] = key;
    map->numbers[slot] = number;
}

static ph_status grow(struct ph__key_map *map)
{
    struct ph__key_map grown = {.capacity = map->capacity > 0 ? 2 * map->capacity : LEAST_CAPACITY};
    grown.keys = malloc(grown.capacity * sizeof *grown.keys);
    grown.numbers = malloc(grown.capacity * sizeof *grown.numbers);
    if (grown.keys == NULL || grown.numbers == NULL) {
        ph__key_map_fini(&grown);
        return ph__out_of_memory("a map of %zu keys", map->count);
    }
    memset(grown.numbers, 0xff, grown.capacity * sizeof *grown.numbers); /* PH_NO_NUMBER */
    for (size_t slot = 0; slot < map->capacity; slot++)
        if (map->numbers[slot] != PH_NO_NUMBER)
            put(&grown, map->keys[slot], map->numbers[slot]);
    ph__key_map_fini(map);
    *map = grown;
    return PH_OK;
}

ph_status ph__key_map_add(struct ph__key_map *map, uint64_t key, uint32_t number)
{
    if (3 * (map->count + 1) > 2 * map->capacity)
        PH_TRY(grow(map));
    put(map, key, number);
    return PH_OK;
}

/* Moves keys behind the gap into it, so that each is reached from its home without an empty slot between. */
void ph__key_map_remove(struct ph__key_map *map, uint64_t key)
{
    const size_t mask = map->capacity - 1;
    size_t gap = map->capacity > 0 ? find_slot(map, key) : 0;
    if (map->capacity == 0 || map->numbers[gap] == PH_NO_NUMBER)
        return;
    map->count--;
    for (size_t slot = (gap + 1) & mask; map->numbers[slot] != PH_NO_NUMBER; slot = (slot + 1) & mask) {
        if (((slot - home_of(map, map->keys[slot])) & mask) < ((slot - gap) & mask))
            continue;
        map->keys[gap] = map->keys[slot];
        map->numbers[gap] = map->numbers[slot];
        gap = slot;
    }
    map->numbers[gap] = PH_NO_NUMBER;
}

uint32_t ph__key_map_find(const struct ph__key_map *map, uint64_t key)
{
    return map->capacity > 0 ? map->numbers[find_slot(map, key)] : PH_NO_NUMBER;
}

void ph__key_map_fini(struct ph__key_map *map)
{
    free(map->keys);
    free(map->numbers);
    *map = (struct ph__key_map){0};
}
