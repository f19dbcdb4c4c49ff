/* Open addressing with linear probing. A slot leads to the first number of its name, and each number to the
 * next number of the same name. */
#include "base/text/name_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"

enum { FIRST_SLOTS = 64 };

struct ph__indexed_name {
    const char *text;
    uint64_t hash;
    size_t next; /* next number of the same name; PH_NO_NAME: none */
    size_t last; /* last number of the same name; only in the first */
};

/* Returns the slot of the name, or the free slot where the name belongs. Needs a free slot. */
static size_t *find_slot(const struct ph__name_index *index, const char *name, size_t length, uint64_t hash)
{
    size_t at = (size_t)hash & (index->num_slots - 1);
    for (; index->slots[at] != 0; at = (at + 1) & (index->num_slots - 1)) {
        const struct ph__indexed_name *first = &index->names[index->slots[at] - 1];
        if (first->hash == hash && strlen(first->text) == length && memcmp(first->text, name, length) == 0)
            break;
    }
    return &index->slots[at];
}

ph_status ph__name_index_reserve(struct ph__name_index *index, size_t count)
{
    PH_TRY(ph__array_reserve((void **)&index->names, &index->capacity, count, sizeof *index->names));
    if (count <= index->num_slots / 2)
        return PH_OK;
    struct ph__name_index larger = *index;
    larger.num_slots = index->num_slots > 0 ? index->num_slots : FIRST_SLOTS;
    while (count > larger.num_slots / 2)
        larger.num_slots *= 2;
    larger.slots = calloc(larger.num_slots, sizeof *larger.slots);
    if (larger.slots == NULL)
        return ph__out_of_memory("an index of %zu names", count);
    for (size_t i = 0; i < index->num_slots; i++)
        if (index->slots[i] != 0) {
            const struct ph__indexed_name *first = &index->names[index->slots[i] - 1];
            *find_slot(&larger, first->text, strlen(first->text), first->hash) = index->slots[i];
        }
    free(index->slots);
    *index = larger;
    return PH_OK;
}

ph_status ph__name_index_add(struct ph__name_index *index, const char *name)
{
    const size_t number = index->count;
    PH_TRY(ph__name_index_reserve(index, number + 1));
    const size_t length = strlen(name);
    const uint64_t hash = ph__hash_bytes(name, length);
    size_t *slot = find_slot(index, name, length, hash);
    index->names[number] =
        (struct ph__indexed_name){.text = name, .hash = hash, .next = PH_NO_NAME, .last = number};
    if (*slot == 0) {
        *slot = number + 1;
    } else {
        struct ph__indexed_name *first = &index->names[*slot - 1];
        index->names[first->last].next = number;
        first->last = number;
    }
    index->count++;
    return PH_OK;
}

void ph__name_index_fini(struct ph__name_index *index)
{
    free(index->names);
    free(index->slots);
    *index = (struct ph__name_index){0};
}

size_t ph__name_index_find_bytes(const struct ph__name_index *index, const char *name, size_t length)
{
    if (index->count == 0)
        return PH_NO_NAME;
    const size_t slot = *find_slot(index, name, length, ph__hash_bytes(name, length));
    return slot != 0 ? slot - 1 : PH_NO_NAME;
}

size_t ph__name_index_find(const struct ph__name_index *index, const char *name)
{
    return ph__name_index_find_bytes(index, name, strlen(name));
}

size_t ph__name_index_next(const struct ph__name_index *index, size_t number)
{
    assert(number < index->count);
    return index->names[number].next;
}

const char *ph__name_index_text(const struct ph__name_index *index, size_t number)
{
    assert(number < index->count);
    return index->names[number].text;
}
