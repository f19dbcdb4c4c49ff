#include "graph/node_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { FIRST_SLOTS = 64 };

void ph__node_names_fini(struct ph_node_names *names)
{
    free(names->slots);
    *names = (struct ph_node_names){0};
}

/* The slot that has the name, or the free one that is to have it. */
static struct ph_node_name *find(const struct ph_node_names *names, const char *text, uint64_t hash)
{
    size_t i = hash & (names->num_slots - 1);
    while (names->slots[i].text != NULL &&
           (names->slots[i].hash != hash || strcmp(names->slots[i].text, text) != 0))
        i = (i + 1) & (names->num_slots - 1);
    return &names->slots[i];
}

/* For one name more. */
static ph_status make_room(struct ph_node_names *names)
{
    if (2 * (names->count + 1) < names->num_slots)
        return PH_OK;
    struct ph_node_names larger = {
        .num_slots = names->num_slots > 0 ? 2 * names->num_slots : FIRST_SLOTS, .count = names->count};
    larger.slots = calloc(larger.num_slots, sizeof *larger.slots);
    if (larger.slots == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the names of %zu nodes", names->count + 1);
    for (size_t i = 0; i < names->num_slots; i++) {
        const struct ph_node_name *name = &names->slots[i];
        if (name->text != NULL)
            *find(&larger, name->text, name->hash) = *name;
    }
    free(names->slots);
    *names = larger;
    return PH_OK;
}

ph_status ph__node_names_take(
    struct ph_node_names *names, struct ph_arena *arena, const char *name, const char **taken_out)
{
    PH_TRY(make_room(names));
    const char *text = name;
    uint64_t hash = ph__hash_name(text);
    struct ph_node_name *wanted = find(names, text, hash), *slot = wanted;
    while (slot->text != NULL) {
        text = ph__arena_printf(arena, "%s.%zu", name, wanted->next_number++);
        if (text == NULL)
            return PH_ERROR_MEMORY;
        hash = ph__hash_name(text);
        slot = find(names, text, hash);
    }
    *slot = (struct ph_node_name){.text = text, .hash = hash, .next_number = 2};
    names->count++;
    *taken_out = text;
    return PH_OK;
}
