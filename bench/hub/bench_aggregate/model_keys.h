/* A model's gradients as keys, one a parameter, and the chunks that threads own. Numbers are indices into one
 * flat buffer. */
#ifndef PH_BENCH_MODEL_KEYS_H
#define PH_BENCH_MODEL_KEYS_H

#include <stddef.h>

#include "model_shapes.h"

enum { MAX_KEYS = 2048, MAX_OWNERS = 2 };

struct span {
    size_t first, n; /* numbers */
};

struct model_keys {
    const char *name;
    size_t num_keys, numbers; /* numbers: of all keys */
    struct span keys[MAX_KEYS];
};

/* Returns keys of key_numbers each; the last is shorter. */
struct model_keys equal_keys(const char *name, size_t numbers, size_t key_numbers);
struct model_keys keys_of_model(enum model model);

/* Chunks of keys by owner, spread like the hub's, largest first (hub/layout/spread.h). */
struct chunks {
    size_t count[MAX_OWNERS];
    struct span *of[MAX_OWNERS];
};
struct chunks chunks_create(const struct model_keys *keys, size_t chunk_numbers, size_t num_owners);
void chunks_destroy(struct chunks *chunks);

#endif
