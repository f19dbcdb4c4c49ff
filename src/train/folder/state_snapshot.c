#include "train/folder/state_snapshot.h"

#include <stdlib.h>
#include <string.h>

static size_t tensor_bytes(const struct ph_tensor *tensor)
{
    return ph_shape_elements(&tensor->shape) * ph_dtype_size(tensor->dtype);
}

static size_t state_bytes(const struct ph_state *state)
{
    size_t size = 0;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        size += tensor_bytes(&tensor);
    }
    return size;
}

ph_status ph__state_snapshot_take(struct ph__state_snapshot *snapshot, const struct ph_state *state)
{
    size_t size = state_bytes(state);
    if (snapshot->size != size || snapshot->bytes == NULL) {
        unsigned char *bytes = realloc(snapshot->bytes, size + 1);
        if (bytes == NULL)
            return ph_fail(PH_ERROR_MEMORY, "no memory to keep %zu bytes of state", size);
        *snapshot = (struct ph__state_snapshot){size, bytes};
    }
    unsigned char *to = snapshot->bytes;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        memcpy(to, tensor.data, tensor_bytes(&tensor));
        to += tensor_bytes(&tensor);
    }
    return PH_OK;
}

void ph__state_snapshot_restore(const struct ph__state_snapshot *snapshot, struct ph_state *state)
{
    const unsigned char *from = snapshot->bytes;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        memcpy(tensor.data, from, tensor_bytes(&tensor));
        from += tensor_bytes(&tensor);
    }
    ph_state_touch(state);
}

void ph__state_snapshot_fini(struct ph__state_snapshot *snapshot)
{
    free(snapshot->bytes);
    *snapshot = (struct ph__state_snapshot){0};
}
