/* State that entries carry from step to step: arrays of reals by name, which never move once added. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "store/store.h"

struct ph_state {
    struct ph__arena arena; /* names, values and arrays: a few numbers for a batch norm */
    struct ph_tensor *tensors;
    size_t num_tensors, tensors_capacity;
    struct ph__state_array **arrays; /* parallel to tensors */
    size_t arrays_capacity;
};

ph_status ph_state_create(struct ph_state **state_out)
{
    struct ph_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph__out_of_memory("a state");
    *state_out = state;
    return PH_OK;
}

void ph_state_destroy(struct ph_state *state)
{
    if (state == NULL)
        return;
    free(state->tensors);
    free(state->arrays);
    ph__arena_fini(&state->arena);
    free(state);
}

size_t ph_state_num_tensors(const struct ph_state *state)
{
    return state->num_tensors;
}

struct ph_tensor ph_state_tensor(const struct ph_state *state, size_t index)
{
    assert(index < state->num_tensors);
    return state->tensors[index];
}

void ph_state_touch(struct ph_state *state)
{
    for (size_t i = 0; i < state->num_tensors; i++)
        state->arrays[i]->version++;
}

static ph_status add_tensor(
    struct ph_state *state, const char *name, size_t n, ph_real initial, struct ph__state_array **array_out)
{
    const size_t count = state->num_tensors + 1;
    PH_TRY(
        ph__array_reserve((void **)&state->tensors, &state->tensors_capacity, count, sizeof *state->tensors));
    PH_TRY(ph__array_reserve((void **)&state->arrays, &state->arrays_capacity, count, sizeof *state->arrays));
    const char *owned_name = ph__arena_strdup(&state->arena, name);
    struct ph__state_array *array = ph__arena_alloc(&state->arena, sizeof *array);
    ph_real *data = ph__arena_alloc_array(&state->arena, n, sizeof *data);
    if (owned_name == NULL || array == NULL || data == NULL)
        return ph__out_of_memory("state '%s'", name);
    for (size_t i = 0; i < n; i++)
        data[i] = initial;
    *array = (struct ph__state_array){.data = data};
    state->arrays[state->num_tensors] = array;
    state->tensors[state->num_tensors++] = (struct ph_tensor){
        .name = owned_name, .dtype = PH_REAL, .shape = {.num_dims = 1, .dims = {n}}, .data = data};
    *array_out = array;
    return PH_OK;
}

ph_status ph__state_add(
    struct ph_state *state, const char *name, size_t n, ph_real initial, struct ph__state_array **array_out)
{
    for (size_t i = 0; i < state->num_tensors; i++) {
        const struct ph_tensor *tensor = &state->tensors[i];
        if (strcmp(tensor->name, name) != 0)
            continue;
        if (tensor->shape.dims[0] != n)
            return ph_fail(PH_ERROR_CONFIG, "state '%s' has %zu numbers already, not %zu", name,
                tensor->shape.dims[0], n);
        *array_out = state->arrays[i];
        return PH_OK;
    }
    return add_tensor(state, name, n, initial, array_out);
}
