#include "graph/node_names.h"

#include <stdlib.h>

#include "base/memory/memory.h"

void ph__node_names_fini(struct ph__node_names *names)
{
    ph__name_index_fini(&names->index);
    free(names->next_numbers);
    *names = (struct ph__node_names){0};
}

ph_status ph__node_names_take(
    struct ph__node_names *names, struct ph__arena *arena, const char *name, const char **taken_out)
{
    const size_t count = names->index.count, known = ph__name_index_find(&names->index, name);
    const char *text = name;
    PH_TRY(ph__array_reserve(
        (void **)&names->next_numbers, &names->capacity, count + 1, sizeof *names->next_numbers));
    while (ph__name_index_find(&names->index, text) != PH_NO_NAME) {
        text = ph__arena_printf(arena, "%s.%zu", name, names->next_numbers[known]++);
        if (text == NULL)
            return PH_ERROR_MEMORY;
    }
    PH_TRY(ph__name_index_add(&names->index, text));
    names->next_numbers[count] = 2;
    *taken_out = text;
    return PH_OK;
}
