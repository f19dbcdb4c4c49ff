/* The keys that a model's gradients are, one a parameter, and the chunks that threads own. Numbers are those of one flat buffer. */
#ifndef PH_BENCH_MODEL_KEYS_H
#define PH_BENCH_MODEL_KEYS_H

#include <stddef.h>

enum { MAX_KEYS = 2048, MAX_OWNERS = 2 };

struct span {
    size_t first, n; /* numbers */
};

struct model_keys {
    const char *name;
    size_t num_keys, numbers; /* all keys' */
    struct span keys[MAX_KEYS];
};

/* Keys of key_numbers each, the last one of what is left. */
struct model_keys equal_keys(const char *name, size_t numbers, size_t key_numbers);
/* ResNet-50's parameters in their order (He et al., arXiv:1512.03385; 161 keys, 25,557,032 numbers). */
struct model_keys resnet50_keys(void);

/* The chunks of keys by their owner: each goes to whoever has the fewest numbers so far. */
struct chunks {
    size_t count[MAX_OWNERS];
    struct span *of[MAX_OWNERS];
};
struct chunks chunks_create(const struct model_keys *keys, size_t chunk_numbers, size_t num_owners);
void chunks_destroy(struct chunks *chunks);

#endif
