/* Checkpoints: the logical tensors of store and state, as a safetensors file and as a digest. */
#include "base/sum/checksum.h"
#include "store/checkpoint_folder.h"
#include "store/tensor_list.h"
#include "store/tensor_shard.h"

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
    PH_TRY(ph__tensor_list_add_model(list, store, state));
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

/* ---- loading ---- */

/* Adds a slice to a table's checksum: its bytes, and the dtype that says what they mean. Returns false when
 * the file does not have the checksum of the whole slice. */
static bool add_slice(
    const struct ph__folder *folder, const struct ph_parameter *table, size_t slice, uint64_t *sum)
{
    uint64_t parts[3] = {*sum};
    const size_t index = ph__folder_find(folder, table->slices[slice].name);
    if (index == ph__folder_num_tensors(folder) || !ph__folder_checksum(folder, index, &parts[1]))
        return false;
    const struct ph_tensor tensor = ph__folder_tensor(folder, index);
    const struct ph_shape shape = {2, {table->slices[slice].num_rows, table->shape.dims[1]}};
    parts[2] = tensor.dtype;
    *sum = ph__checksum(parts, sizeof parts);
    return ph__shape_equal(&tensor.shape, &shape);
}

/* Gives the checksum of what the file has of a table; false without it. */
static bool table_checksum(
    const struct ph__folder *folder, const struct ph_parameter *parameter, uint64_t *checksum_out)
{
    bool is_known = parameter->is_table;
    *checksum_out = 0;
    for (size_t i = 0; i < parameter->num_slices && is_known; i++)
        is_known = add_slice(folder, parameter, i, checksum_out);
    return is_known;
}

static bool has_all_checksums(const struct ph__folder *folder)
{
    uint64_t checksum;
    size_t index = 0;
    while (index < ph__folder_num_tensors(folder) && ph__folder_checksum(folder, index, &checksum))
        index++;
    return index == ph__folder_num_tensors(folder);
}

static void share_tables(
    const struct ph__folder *folder, struct ph_store *store, const struct ph_store *donor)
{
    uint64_t checksum;
    for (size_t i = 0; i < ph__store_num_parameters(donor); i++) {
        const struct ph_parameter *table = ph__store_parameter(donor, i);
        const bool is_known = table->checksum != 0 && table->checksum_version == table->version;
        if (is_known && table_checksum(folder, table, &checksum) && checksum == table->checksum)
            (void)ph__store_share(store, table);
    }
}

/* Lists the tensors that are to be read. Those of a store stand in the order of its parameters. */
static ph_status list_unshared(
    struct ph__tensor_list *list, const struct ph_store *store, const struct ph_state *state)
{
    for (size_t i = 0, tensor = 0; i < ph__store_num_parameters(store); i++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, i);
        const size_t end = tensor + (parameter->is_table ? parameter->num_slices : 1);
        const bool is_shared = ph__parameter_is_shared(parameter);
        for (; tensor < end; tensor++) {
            const struct ph_tensor wanted = ph_store_tensor(store, tensor);
            if (!is_shared)
                PH_TRY(ph__tensor_list_add(list, &wanted));
        }
    }
    return state != NULL ? ph__tensor_list_add_state(list, state) : PH_OK;
}

/* Loads beside a donor without the seal, for which all tables would have to be read: the checksums of what is
 * read take its place. `all` is a whole model. */
static ph_status load_beside(const struct ph__folder *folder, struct ph_store *store, struct ph_state *state,
    const struct ph_store *donor, const struct ph__tensor_list *all)
{
    struct ph__tensor_list left = {0};
    PH_TRY(ph__tensor_list_check(all, folder));
    share_tables(folder, store, donor);
    ph_status status = list_unshared(&left, store, state);
    if (status == PH_OK)
        status = ph__folder_load(folder, left.count, left.tensors);
    ph__tensor_list_fini(&left);
    return status;
}

static void note_checksums(const struct ph__folder *folder, struct ph_store *store)
{
    uint64_t checksum;
    for (size_t i = 0; i < ph__store_num_parameters(store); i++)
        if (table_checksum(folder, ph__store_parameter(store, i), &checksum))
            ph__store_set_checksum(store, i, checksum);
}

static ph_status load(const struct ph__folder *folder, struct ph_store *store, struct ph_state *state,
    const struct ph_store *donor)
{
    struct ph__tensor_list all = {0};
    ph_status status = ph__tensor_list_add_model(&all, store, state);
    if (status == PH_OK)
        status = donor != NULL && has_all_checksums(folder) ? load_beside(folder, store, state, donor, &all)
                                                            : ph__tensor_list_load_from(&all, folder);
    ph__tensor_list_fini(&all);
    return status;
}

ph_status ph__checkpoint_load_beside(
    const char *path, struct ph_store *store, struct ph_state *state, const struct ph_store *donor)
{
    struct ph__folder *folder = NULL;
    ph_status status = ph__folder_open(path, &folder);
    if (status == PH_OK)
        status = load(folder, store, state, donor);
    ph_store_touch(store);
    if (state != NULL)
        ph_state_touch(state);
    if (status == PH_OK)
        note_checksums(folder, store);
    ph__folder_close(folder);
    return status;
}

ph_status ph_checkpoint_load(const char *path, struct ph_store *store, struct ph_state *state)
{
    return ph__checkpoint_load_beside(path, store, state, NULL);
}

/* ---- digest ---- */

ph_status ph_checkpoint_digest(const struct ph_store *store, const struct ph_state *state, char hex_out[65])
{
    struct ph__tensor_list list = {0};
    ph_status status = list_whole_model(&list, store, state);
    if (status == PH_OK)
        status = ph__tensor_list_digest(&list, hex_out);
    ph__tensor_list_fini(&list);
    return status;
}
