/* A map from 64-bit keys to 32-bit numbers, for keys that are hashes already: of many rows, where an entry is
 * 12 bytes. One thread at a time. */
#ifndef PH_BASE_KEY_MAP_H
#define PH_BASE_KEY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_NO_NUMBER UINT32_MAX

struct ph__key_map { /* zero-initialised is empty */
    uint64_t *keys;
    uint32_t *numbers; /* PH_NO_NUMBER: the slot is empty */
    size_t count, capacity;
};

/* Adds a key with its number (not PH_NO_NUMBER) unless it is there. PH_ERROR_MEMORY. */
ph_status ph__key_map_add(struct ph__key_map *map, uint64_t key, uint32_t number);
/* Removes a key, if it is there. */
void ph__key_map_remove(struct ph__key_map *map, uint64_t key);
/* Returns the key's number; PH_NO_NUMBER: it is not there. */
uint32_t ph__key_map_find(const struct ph__key_map *map, uint64_t key);
void ph__key_map_fini(struct ph__key_map *map);

#endif
