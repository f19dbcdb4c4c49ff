/* The store: parameters and their slots by name, and the logical tensors of checkpoints.
 *
 * A parameter and its memory never move once added, because programs, packed copies and logical tensors point
 * into it. */
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "base/thread/stop.h"
#include "store/init.h"
#include "store/tensor_shard.h"
#include "tensor/row_format.h"

struct ph_store {
    uint64_t seed;
    enum ph_row_format row_format; /* of tables that will be added */
    bool is_for_scoring;           /* those tables are for scoring */
    bool will_be_loaded;           /* parameters that will be added begin as zeros */
    struct ph__arena arena;        /* parameters, names and slices */
    struct ph_parameter **parameters;
    size_t num_parameters, parameters_capacity;
    struct ph__name_index parameter_names;
    struct ph_tensor *tensors; /* logical: a dense parameter or a slice of a table */
    size_t num_tensors, tensors_capacity;
    struct ph__name_index tensor_names; /* shards of one logical tensor share its name */
    const volatile int *stop_signal;    /* NULL: none */
};

ph_status ph_store_create(uint64_t seed, struct ph_store **store_out)
{
    struct ph_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return ph__out_of_memory("a store");
    store->seed = seed;
    *store_out = store;
    return PH_OK;
}

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER; /* guards owners of all stores */

/* Frees the values, unless another store has them, too. */
static void release_values(struct ph_parameter *parameter)
{
    pthread_mutex_lock(&sharing);
    const bool is_last = parameter->owners == NULL || --*parameter->owners == 0;
    pthread_mutex_unlock(&sharing);
    if (!is_last)
        return;
    free(parameter->owners);
    ph__numbers_free(parameter->memory, parameter->bytes);
}

static void release_parameter(struct ph_parameter *parameter)
{
    for (size_t i = 0; i < parameter->num_slots; i++)
        ph__numbers_free(parameter->slots[i].data, parameter->slots[i].elements * sizeof(ph_real));
    release_values(parameter);
}

void ph_store_destroy(struct ph_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->num_parameters; i++)
        release_parameter(store->parameters[i]);
    free(store->parameters);
    free(store->tensors);
    ph__name_index_fini(&store->parameter_names);
    ph__name_index_fini(&store->tensor_names);
    ph__arena_fini(&store->arena);
    free(store);
}

void ph__store_set_row_format(struct ph_store *store, enum ph_row_format format)
{
    store->row_format = format;
    store->is_for_scoring = format != PH_ROWS_FP32;
}

void ph__store_will_be_loaded(struct ph_store *store)
{
    store->will_be_loaded = true;
}

void ph__store_learn_rows(struct ph_store *store, enum ph_row_format format)
{
    assert(ph__row_format_is_learnt(format));
    store->row_format = format;
    store->is_for_scoring = false;
}

void ph__store_stop_by(struct ph_store *store, const volatile int *stop_signal)
{
    store->stop_signal = stop_signal;
}

/* ---- looking ---- */

size_t ph_store_num_tensors(const struct ph_store *store)
{
    return store->num_tensors;
}

struct ph_tensor ph_store_tensor(const struct ph_store *store, size_t index)
{
    assert(index < store->num_tensors);
    return store->tensors[index];
}

/* Finds the first logical tensor of a name, or the next one of the same name, which is another shard of it.
 * Returns its index for ph_store_tensor; SIZE_MAX when there is none. */
static size_t find_tensor(const struct ph_store *store, const char *name)
{
    return ph__name_index_find(&store->tensor_names, name);
}

static size_t next_tensor(const struct ph_store *store, size_t index)
{
    return ph__name_index_next(&store->tensor_names, index);
}

size_t ph__store_num_parameters(const struct ph_store *store)
{
    return store->num_parameters;
}

const struct ph_parameter *ph__store_parameter(const struct ph_store *store, size_t index)
{
    assert(index < store->num_parameters);
    return store->parameters[index];
}

ph_status ph_store_find(const struct ph_store *store, const char *name, struct ph_tensor *tensor_out)
{
    const size_t index = find_tensor(store, name);
    if (index == PH_NO_NAME)
        return ph_fail(PH_ERROR_USAGE, "the store has no tensor '%s'", name);
    *tensor_out = store->tensors[index];
    return PH_OK;
}

void ph_store_touch(struct ph_store *store)
{
    for (size_t i = 0; i < store->num_parameters; i++)
        store->parameters[i]->version++;
}

uint64_t ph_store_parameter_count(const struct ph_store *store)
{
    uint64_t count = 0;
    for (size_t i = 0; i < store->num_parameters; i++)
        count += store->parameters[i]->elements;
    return count;
}

uint64_t ph_store_parameter_bytes(const struct ph_store *store)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < store->num_parameters; i++)
        bytes += store->parameters[i]->bytes;
    return bytes;
}

uint64_t ph_store_slot_bytes(const struct ph_store *store)
{
    uint64_t count = 0;
    for (size_t i = 0; i < store->num_parameters; i++)
        for (size_t j = 0; j < store->parameters[i]->num_slots; j++)
            count += store->parameters[i]->slots[j].elements;
    return count * sizeof(ph_real);
}

static struct ph_parameter *find_parameter(const struct ph_store *store, const char *name)
{
    const size_t index = ph__name_index_find(&store->parameter_names, name);
    return index != PH_NO_NAME ? store->parameters[index] : NULL;
}

/* ---- adding ---- */

static bool count_elements(const struct ph_shape *shape, size_t *elements_out)
{
    size_t elements = 1, bytes;
    for (size_t i = 0; i < shape->num_dims; i++)
        if (!ph__size_mul(elements, shape->dims[i], &elements))
            return false;
    if (!ph__size_mul(elements, sizeof(ph_real), &bytes))
        return false;
    *elements_out = elements;
    return true;
}

/* Chooses a parameter's row format and its bytes, never more than the elements as numbers, whose size
 * count_elements has checked. */
static enum ph_row_format row_format_of(const struct ph_store *store,
    const struct ph__declaration *declaration, size_t elements, size_t *bytes_out)
{
    *bytes_out = elements * sizeof(ph_real);
    if (!declaration->is_table)
        return PH_ROWS_FP32;
    const size_t rows = declaration->shape.dims[0], dim = declaration->shape.dims[1];
    const enum ph_row_format format = ph__row_format_fitting(store->row_format, dim);
    *bytes_out = ph__table_bytes(format, rows, dim);
    return format;
}

static enum ph_dtype dtype_of(enum ph_row_format format)
{
    return format == PH_ROWS_FP16 ? PH_F16 : format == PH_ROWS_BF16 ? PH_BF16 : PH_REAL;
}

static void list_tensor(struct ph_store *store, const struct ph_tensor *tensor)
{
    (void)ph__name_index_add(&store->tensor_names, tensor->name); /* has room */
    store->tensors[store->num_tensors++] = *tensor;
}

/* Lists the logical tensors of a parameter; space has been reserved. */
static void list_tensors(struct ph_store *store, const struct ph_parameter *parameter)
{
    if (!parameter->is_table) {
        struct ph_tensor tensor = ph__dense_tensor(parameter);
        tensor.data = parameter->memory;
        if (parameter->elements > 0 || !ph__tensor_is_shard(&tensor))
            list_tensor(store, &tensor);
        return;
    }
    const size_t dim = parameter->shape.dims[1], row_bytes = ph__row_bytes(parameter->row_format, dim);
    char *data = parameter->memory;
    uint16_t *low = parameter->low;
    for (size_t i = 0; i < parameter->num_slices; i++) {
        struct ph_tensor tensor = ph__slice_tensor(&parameter->slices[i], &parameter->shards[i], dim);
        tensor.dtype = dtype_of(parameter->row_format);
        tensor.data = data;
        tensor.row_format = parameter->row_format;
        tensor.low = low;
        list_tensor(store, &tensor);
        data += parameter->slices[i].num_rows * row_bytes;
        if (low != NULL)
            low += parameter->slices[i].num_rows * dim;
    }
}

static void initialise(const struct ph_store *store, const struct ph_parameter *parameter,
    size_t first_tensor, struct ph__team *team)
{
    if (parameter->is_for_scoring || store->will_be_loaded || ph__memory_is_absent(parameter->memory))
        return; /* memory is zeroed, which means rows of zeros, or has no values */
    for (size_t i = first_tensor; i < store->num_tensors; i++) {
        const struct ph_tensor *tensor = &store->tensors[i];
        const struct ph_shape whole = ph__tensor_whole(tensor);
        struct ph__init_target target = {.name = tensor->name,
            .first_row = tensor->first_row,
            .first_column = tensor->first_column,
            .row_format = tensor->row_format,
            .data = tensor->data,
            .low = tensor->low,
            .stop_signal = store->stop_signal};
        ph__init_matrix(&tensor->shape, &target.rows, &target.columns);
        ph__init_matrix(&whole, &target.whole_rows, &target.whole_columns);
        if (whole.num_dims == 1) { /* a vector is one row */
            target.first_row = 0;
            target.first_column = tensor->first_row;
        }
        ph__init_fill(&parameter->init, store->seed, &target, team);
    }
}

static ph_status add_parameter(struct ph_store *store, const struct ph__declaration *declaration,
    struct ph__team *team, struct ph_parameter **parameter_out)
{
    size_t elements;
    const size_t num_tensors = declaration->is_table ? declaration->num_slices : 1;
    if (!count_elements(&declaration->shape, &elements))
        return ph_fail(
            PH_ERROR_MEMORY, "parameter '%s' is too large: its size in bytes overflows", declaration->name);
    PH_TRY(ph__array_reserve((void **)&store->parameters, &store->parameters_capacity,
        store->num_parameters + 1, sizeof(struct ph_parameter *)));
    PH_TRY(ph__name_index_reserve(&store->parameter_names, store->num_parameters + 1));
    PH_TRY(ph__array_reserve((void **)&store->tensors, &store->tensors_capacity,
        store->num_tensors + num_tensors, sizeof *store->tensors));
    PH_TRY(ph__name_index_reserve(&store->tensor_names, store->num_tensors + num_tensors));
    struct ph_parameter *parameter = ph__declaration_copy(&store->arena, declaration);
    if (parameter == NULL)
        return ph__out_of_memory("parameter '%s'", declaration->name);
    parameter->elements = elements;
    parameter->row_format = row_format_of(store, declaration, elements, &parameter->bytes);
    parameter->is_for_scoring = store->is_for_scoring && parameter->row_format != PH_ROWS_FP32;
    PH_TRY(ph__numbers_alloc(parameter->bytes, declaration->name, &parameter->memory));
    if (parameter->row_format == PH_ROWS_FP32)
        parameter->data = parameter->memory;
    if (parameter->row_format == PH_ROWS_BF16_SPLIT)
        parameter->low = (uint16_t *)parameter->memory + elements;

    const size_t first_tensor = store->num_tensors;
    store->parameters[store->num_parameters++] = parameter;
    (void)ph__name_index_add(&store->parameter_names, parameter->name); /* has room */
    list_tensors(store, parameter);
    initialise(store, parameter, first_tensor, team);
    if (ph__is_stopped(store->stop_signal))
        return ph_fail(
            ph__stop_status(store->stop_signal), "stopped by a signal while parameters were filled");
    *parameter_out = parameter;
    return PH_OK;
}

/* Fails when the name is another tensor's, unless both are disjoint shards of one whole. */
static ph_status check_name(const struct ph_store *store, const struct ph_tensor *tensor)
{
    for (size_t i = find_tensor(store, tensor->name); i != SIZE_MAX; i = next_tensor(store, i)) {
        const struct ph_tensor other = ph_store_tensor(store, i);
        if (ph__tensor_excludes(tensor, &other))
            return ph_fail(PH_ERROR_CONFIG, "the store has two tensors with the name '%s'", tensor->name);
    }
    return PH_OK;
}

/* Checks a slice's name. `earlier` holds the names of the slices before this one, and then also this
 * one's. */
static ph_status check_slice_name(const struct ph_store *store, const struct ph__declaration *declaration,
    size_t slice, struct ph__name_index *earlier)
{
    const struct ph_tensor tensor = ph__declaration_tensor(declaration, slice);
    PH_TRY(check_name(store, &tensor));
    for (size_t i = ph__name_index_find(earlier, tensor.name); i != PH_NO_NAME;
         i = ph__name_index_next(earlier, i)) {
        const struct ph_tensor other = ph__declaration_tensor(declaration, i);
        if (ph__tensor_excludes(&tensor, &other))
            return ph_fail(PH_ERROR_CONFIG, "table '%s' has two slices with the name '%s'", declaration->name,
                tensor.name);
    }
    return ph__name_index_add(earlier, tensor.name);
}

static ph_status check_slice_names(const struct ph_store *store, const struct ph__declaration *declaration)
{
    struct ph__name_index names = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < declaration->num_slices && status == PH_OK; i++)
        status = check_slice_name(store, declaration, i, &names);
    ph__name_index_fini(&names);
    return status;
}

/* Fails with PH_ERROR_CONFIG when a name is taken. */
static ph_status check_new(const struct ph_store *store, const struct ph__declaration *declaration)
{
    if (!declaration->is_table)
        return check_name(store, &(struct ph_tensor){.name = declaration->name,
                                     .shape = declaration->shape,
                                     .first_row = declaration->first_row,
                                     .whole = declaration->whole});
    PH_TRY(ph__declaration_check_slices(declaration));
    return check_slice_names(store, declaration);
}

ph_status ph__store_add(struct ph_store *store, const struct ph__declaration *declaration,
    struct ph__team *team, struct ph_parameter **parameter_out)
{
    struct ph_parameter *parameter = find_parameter(store, declaration->name);
    if (parameter == NULL) {
        PH_TRY(check_new(store, declaration));
        return add_parameter(store, declaration, team, parameter_out);
    }
    PH_TRY(ph__declaration_check_same(declaration, parameter));
    *parameter_out = parameter;
    return PH_OK;
}

/* ---- sharing ---- */

/* Points a table and its logical tensors to memory that has their values. */
static void point_to(struct ph_store *store, struct ph_parameter *parameter, const struct ph_parameter *other)
{
    for (size_t i = 0; i < parameter->num_slices; i++) {
        struct ph_tensor *tensor = &store->tensors[find_tensor(store, parameter->slices[i].name)];
        tensor->data = (char *)other->memory + ((char *)tensor->data - (char *)parameter->memory);
        if (tensor->low != NULL)
            tensor->low = other->low + (tensor->low - parameter->low);
    }
    parameter->memory = other->memory;
    parameter->data = other->data;
    parameter->low = other->low;
    parameter->owners = other->owners;
}

static bool is_like(const struct ph_parameter *parameter, const struct ph_parameter *other)
{
    bool is_alike = parameter->is_table && other->is_table && parameter->num_slices == other->num_slices &&
                    ph__shape_equal(&parameter->shape, &other->shape) &&
                    parameter->row_format == other->row_format;
    for (size_t i = 0; i < parameter->num_slices && is_alike; i++)
        is_alike = strcmp(parameter->slices[i].name, other->slices[i].name) == 0 &&
                   parameter->slices[i].num_rows == other->slices[i].num_rows;
    return is_alike;
}

static bool add_owner(struct ph_parameter *parameter)
{
    pthread_mutex_lock(&sharing);
    if (parameter->owners == NULL && (parameter->owners = malloc(sizeof *parameter->owners)) != NULL)
        *parameter->owners = 1;
    if (parameter->owners != NULL)
        ++*parameter->owners;
    pthread_mutex_unlock(&sharing);
    return parameter->owners != NULL;
}

bool ph__store_share(struct ph_store *store, const struct ph_parameter *table)
{
    struct ph_parameter *other = (struct ph_parameter *)(uintptr_t)table; /* all but its owners stays */
    struct ph_parameter *parameter = find_parameter(store, table->name);
    if (parameter == NULL || parameter->owners != NULL || parameter == other || !is_like(parameter, other) ||
        !add_owner(other))
        return false;
    const struct ph_parameter own = *parameter;
    point_to(store, parameter, other);
    ph__memory_free(own.memory, own.bytes);
    return true;
}

bool ph__parameter_is_shared(const struct ph_parameter *parameter)
{
    pthread_mutex_lock(&sharing);
    const bool is_shared = parameter->owners != NULL && *parameter->owners > 1;
    pthread_mutex_unlock(&sharing);
    return is_shared;
}

void ph__store_set_checksum(struct ph_store *store, size_t index, uint64_t checksum)
{
    store->parameters[index]->checksum = checksum;
    store->parameters[index]->checksum_version = store->parameters[index]->version;
}

ph_status ph__store_add_slot(struct ph_store *store, struct ph_parameter *parameter, const char *name,
    bool is_per_row, struct ph__slot **slot_out)
{
    for (size_t i = 0; i < parameter->num_slots; i++) {
        struct ph__slot *slot = &parameter->slots[i];
        if (strcmp(slot->name, name) != 0)
            continue;
        if (slot->is_per_row != is_per_row)
            return ph_fail(PH_ERROR_CONFIG, "parameter '%s' has a slot '%s' of another optimizer already",
                parameter->name, name);
        *slot_out = slot;
        return PH_OK;
    }
    if (parameter->num_slots == PH_MAX_SLOTS)
        return ph_fail(
            PH_ERROR_BUG, "parameter '%s' has too many slots to add slot '%s'", parameter->name, name);
    const char *owned_name = ph__arena_strdup(&store->arena, name);
    if (owned_name == NULL)
        return ph__out_of_memory("slot '%s'", name);
    size_t rows, columns;
    ph__init_matrix(&parameter->shape, &rows, &columns);
    const size_t elements = is_per_row ? rows : parameter->elements;
    void *data;
    PH_TRY(ph__numbers_alloc(elements * sizeof(ph_real), parameter->name, &data));
    struct ph__slot *slot = &parameter->slots[parameter->num_slots++];
    *slot =
        (struct ph__slot){.name = owned_name, .is_per_row = is_per_row, .elements = elements, .data = data};
    *slot_out = slot;
    return PH_OK;
}

uint64_t ph__store_missing_bytes(const struct ph_store *store, const struct ph__declaration *declaration)
{
    size_t elements, bytes;
    if (find_parameter(store, declaration->name) != NULL)
        return 0;
    if (!count_elements(&declaration->shape, &elements))
        return UINT64_MAX;
    row_format_of(store, declaration, elements, &bytes);
    return bytes;
}
