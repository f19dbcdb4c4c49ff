/* Checkpoints: the logical tensors of store and state, as a safetensors file and as a digest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "store/safetensors.h"
#include "store/store.h"

/* All tensors of store and state, malloc'ed. */
static ph_status list_tensors(const struct ph_store *store, const struct ph_state *state,
    struct ph_tensor **tensors_out, size_t *num_tensors_out)
{
    const size_t num_learnt = ph_store_num_tensors(store);
    const size_t num_states = state != NULL ? ph_state_num_tensors(state) : 0;
    struct ph_tensor *tensors = calloc(num_learnt + num_states + 1, sizeof *tensors);
    if (tensors == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to list %zu tensors", num_learnt + num_states);
    for (size_t i = 0; i < num_learnt; i++)
        tensors[i] = ph_store_tensor(store, i);
    for (size_t i = 0; i < num_states; i++)
        tensors[num_learnt + i] = ph_state_tensor(state, i);
    *tensors_out = tensors;
    *num_tensors_out = num_learnt + num_states;
    return PH_OK;
}

ph_status ph_checkpoint_save(
    const char *path, const struct ph_store *store, const struct ph_state *state, const char *const *metadata)
{
    struct ph_tensor *tensors;
    size_t num_tensors;
    PH_TRY(list_tensors(store, state, &tensors, &num_tensors));
    const ph_status status = ph__safetensors_write(path, num_tensors, tensors, metadata);
    free(tensors);
    return status;
}

/* ---- loading ------------------------------------------------------------------------------------------- */

static bool same_layout(const struct ph_tensor *a, const struct ph_tensor *b)
{
    bool is_same = a->dtype == b->dtype && a->shape.rank == b->shape.rank;
    for (size_t i = 0; is_same && i < a->shape.rank; i++)
        is_same = a->shape.dims[i] == b->shape.dims[i];
    return is_same;
}

/* "F32 (20,16)" */
static void describe(const struct ph_tensor *tensor, char text[128])
{
    int length = snprintf(text, 128, "%s (", ph_dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->shape.rank; i++)
        length +=
            snprintf(text + length, 128 - (size_t)length, "%s%zu", i > 0 ? "," : "", tensor->shape.dims[i]);
    snprintf(text + length, 128 - (size_t)length, ")");
}

static ph_status check_tensor(
    const char *path, const struct ph_safetensors *file, const struct ph_tensor *wanted, size_t *index_out)
{
    const size_t index = ph__safetensors_find(file, wanted->name);
    if (index == ph__safetensors_num_tensors(file))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model's tensor '%s' is missing", path, wanted->name);
    const struct ph_tensor found = ph__safetensors_tensor(file, index);
    if (!same_layout(&found, wanted)) {
        char found_text[128], wanted_text[128];
        describe(&found, found_text);
        describe(wanted, wanted_text);
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is %s, but the model's is %s", path,
            wanted->name, found_text, wanted_text);
    }
    *index_out = index;
    return PH_OK;
}

/* Every tensor of the model is in the file and as many as there; then the first one that is the file's alone.
 */
static ph_status check_surplus(
    const char *path, const struct ph_safetensors *file, const size_t *indices, size_t count)
{
    const size_t num_in_file = ph__safetensors_num_tensors(file);
    for (size_t i = 0; num_in_file > count && i < num_in_file; i++) {
        bool is_known = false;
        for (size_t j = 0; !is_known && j < count; j++)
            is_known = indices[j] == i;
        if (!is_known)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model has no tensor '%s'", path,
                ph__safetensors_tensor(file, i).name);
    }
    return PH_OK;
}

static ph_status load_tensors(const char *path, const struct ph_safetensors *file,
    const struct ph_tensor *tensors, size_t count, size_t *indices)
{
    PH_TRY(ph__safetensors_check_seal(file));
    for (size_t i = 0; i < count; i++)
        PH_TRY(check_tensor(path, file, &tensors[i], &indices[i]));
    PH_TRY(check_surplus(path, file, indices, count));
    for (size_t i = 0; i < count; i++)
        PH_TRY(ph__safetensors_read(file, indices[i], tensors[i].data));
    return PH_OK;
}

ph_status ph_checkpoint_load(const char *path, struct ph_store *store, struct ph_state *state)
{
    struct ph_safetensors *file = NULL;
    struct ph_tensor *tensors = NULL;
    size_t *indices = NULL;
    size_t count;
    ph_status status = list_tensors(store, state, &tensors, &count);
    if (status == PH_OK)
        status = ph__safetensors_open(path, &file);
    if (status == PH_OK && (indices = calloc(count + 1, sizeof *indices)) == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory to load %s", path);
    if (status == PH_OK) {
        status = load_tensors(path, file, tensors, count, indices);
        ph_store_touch(store);
    }
    free(indices);
    ph__safetensors_close(file);
    free(tensors);
    return status;
}

/* ---- digest -------------------------------------------------------------------------------------------- */

static int compare_name(const void *a, const void *b)
{
    const struct ph_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* "name\nF32 2 20 16\n", then the bytes */
static ph_status digest_tensor(struct ph_digest *digest, const struct ph_tensor *tensor)
{
    char head[128];
    int length = snprintf(head, sizeof head, "\n%s %zu", ph_dtype_name(tensor->dtype), tensor->shape.rank);
    for (size_t i = 0; i < tensor->shape.rank; i++)
        length += snprintf(head + length, sizeof head - (size_t)length, " %zu", tensor->shape.dims[i]);
    length += snprintf(head + length, sizeof head - (size_t)length, "\n");
    PH_TRY(ph__digest_update(digest, tensor->name, strlen(tensor->name)));
    PH_TRY(ph__digest_update(digest, head, (size_t)length));
    return ph__digest_update(
        digest, tensor->data, ph_shape_elements(&tensor->shape) * ph_dtype_size(tensor->dtype));
}

static ph_status digest_tensors(const struct ph_tensor *tensors, size_t count, char hex_out[65])
{
    struct ph_digest *digest;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = PH_OK;
    for (size_t i = 0; status == PH_OK && i < count; i++)
        status = digest_tensor(digest, &tensors[i]);
    if (status == PH_OK)
        status = ph__digest_finish(digest, hex_out);
    ph__digest_destroy(digest);
    return status;
}

ph_status ph_checkpoint_digest(const struct ph_store *store, const struct ph_state *state, char hex_out[65])
{
    struct ph_tensor *tensors;
    size_t count;
    PH_TRY(list_tensors(store, state, &tensors, &count));
    qsort(tensors, count, sizeof *tensors, compare_name);
    const ph_status status = digest_tensors(tensors, count, hex_out);
    free(tensors);
    return status;
}
