/* Checkpoints: the logical tensors of store and state, as a safetensors file and as a digest. */
#include "store/tensor_list.h"
#include "store/tensor_shard.h"

static ph_status list_model(
    struct ph__tensor_list *list, const struct ph_store *store, const struct ph_state *state)
{
    PH_TRY(ph__tensor_list_add_store(list, store));
    return state != NULL ? ph__tensor_list_add_state(list, state) : PH_OK;
}

/* Lists a whole model that was learnt: fails for rows that were rounded for scoring and for parts of
 * tables. */
static ph_status list_whole_model(
    struct ph__tensor_list *list, const struct ph_store *store, const struct ph_state *state)
{
    for (size_t i = 0; i < ph__store_num_parameters(store); i++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, i);
        if (parameter->is_for_scoring)
            return ph_fail(PH_ERROR_USAGE, "table '%s' is held as %s, for scoring: it cannot be saved",
                parameter->name, ph_row_format_name(parameter->row_format));
    }
    PH_TRY(list_model(list, store, state));
    for (size_t i = 0; i < list->count; i++)
        if (ph__tensor_is_shard(&list->tensors[i]))
            return ph_fail(PH_ERROR_USAGE,
                "the store holds only a part of '%s': a checkpoint needs the whole model",
                list->tensors[i].name);
    return PH_OK;
}

ph_status ph_checkpoint_save(
    const char *path, const struct ph_store *store, const struct ph_state *state, const char *const *metadata)
{
    struct ph__tensor_list list = {0};
    ph_status status = list_whole_model(&list, store, state);
    if (status == PH_OK)
        status = ph__safetensors_write(path, list.count, list.tensors, metadata);
    ph__tensor_list_fini(&list);
    return status;
}

ph_status ph_checkpoint_load(const char *path, struct ph_store *store, struct ph_state *state)
{
    struct ph__tensor_list list = {0};
    ph_status status = list_model(&list, store, state);
    if (status == PH_OK)
        status = ph__tensor_list_load(&list, path);
    ph_store_touch(store);
    if (state != NULL)
        ph_state_touch(state);
    ph__tensor_list_fini(&list);
    return status;
}

ph_status ph_checkpoint_digest(const struct ph_store *store, const struct ph_state *state, char hex_out[65])
{
    struct ph__tensor_list list = {0};
    ph_status status = list_whole_model(&list, store, state);
    if (status == PH_OK)
        status = ph__tensor_list_digest(&list, hex_out);
    ph__tensor_list_fini(&list);
    return status;
}
