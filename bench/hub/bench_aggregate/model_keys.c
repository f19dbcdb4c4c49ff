#include "model_keys.h"

#include <assert.h>
#include <stdlib.h>

#include "figures.h"

static void add_key(struct model_keys *keys, size_t n)
{
    assert(keys->num_keys < MAX_KEYS);
    keys->keys[keys->num_keys++] = (struct span){keys->numbers, n};
    keys->numbers += n;
}

struct model_keys equal_keys(const char *name, size_t numbers, size_t key_numbers)
{
    struct model_keys keys = {.name = name};
    while (keys.numbers < numbers)
        add_key(&keys, numbers - keys.numbers < key_numbers ? numbers - keys.numbers : key_numbers);
    return keys;
}

/* A convolution without bias, and its batch norm. */
static void add_convolution(struct model_keys *keys, size_t outputs, size_t inputs, size_t width)
{
    add_key(keys, outputs * inputs * width * width);
    add_key(keys, outputs);
    add_key(keys, outputs);
}

struct model_keys resnet50_keys(void)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    enum { STAGES = sizeof blocks / sizeof *blocks, CLASSES = 1000, EXPANSION = 4 };
    struct model_keys keys = {.name = "resnet50"};
    size_t inputs = 64;
    add_convolution(&keys, inputs, 3, 7);
    for (size_t stage = 0; stage < STAGES; stage++) {
        const size_t width = (size_t)64 << stage;
        for (size_t block = 0; block < blocks[stage]; block++) {
            add_convolution(&keys, width, inputs, 1);
            add_convolution(&keys, width, width, 3);
            add_convolution(&keys, EXPANSION * width, width, 1);
            if (block == 0)
                add_convolution(&keys, EXPANSION * width, inputs, 1);
            inputs = EXPANSION * width;
        }
    }
    add_key(&keys, CLASSES * inputs);
    add_key(&keys, CLASSES);
    return keys;
}

static size_t least_loaded(const size_t *numbers, size_t count)
{
    size_t least = 0;
    for (size_t i = 1; i < count; i++)
        if (numbers[i] < numbers[least])
            least = i;
    return least;
}

struct chunks chunks_create(const struct model_keys *keys, size_t chunk_numbers, size_t num_owners)
{
    const size_t most = keys->numbers / chunk_numbers + keys->num_keys;
    size_t numbers[MAX_OWNERS] = {0};
    struct chunks chunks = {0};
    for (size_t owner = 0; owner < num_owners; owner++) {
        chunks.of[owner] = malloc(most * sizeof *chunks.of[owner]);
        if (chunks.of[owner] == NULL)
            bench_check(ph_fail(PH_ERROR_MEMORY, "no memory for %zu chunks", most));
    }
    for (size_t k = 0; k < keys->num_keys; k++) {
        const struct span key = keys->keys[k];
        for (size_t done = 0; done < key.n; done += chunk_numbers) {
            const size_t rest = key.n - done, owner = least_loaded(numbers, num_owners);
            const struct span chunk = {key.first + done, rest < chunk_numbers ? rest : chunk_numbers};
            chunks.of[owner][chunks.count[owner]++] = chunk;
            numbers[owner] += chunk.n;
        }
    }
    return chunks;
}

void chunks_destroy(struct chunks *chunks)
{
    for (size_t owner = 0; owner < MAX_OWNERS; owner++)
        free(chunks->of[owner]);
}
