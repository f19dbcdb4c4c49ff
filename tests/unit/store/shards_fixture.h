/* One small model, held whole by one store and cut at random over the stores of several ranks.
 *
 * Logical tensors: dense "deep.weight" and "deep.bias", which every rank holds, and slices of tables of two
 * widths, which are cut into strips of columns and these into runs of rows; each piece goes to one rank. A
 * rank's pieces of one width lie in one physical table. */
#ifndef PH_TEST_PARTS_FIXTURE_H
#define PH_TEST_PARTS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "store/checkpoint_folder.h"
#include "store/store.h"
#include "store/tensor_list.h"
#include "store/tensor_shard.h"
#include "support/test_support.h"
#include "tensor/row_format.h"

enum { MAX_RANKS = 8, MAX_PIECES = 128, NUM_SLICES = 4, MAX_STRIPS = 3, MAX_RUNS = 4 };

static const struct {
    struct ph_table_slice slice;
    size_t dim;
} logical_slices[NUM_SLICES] = {{{"embedding.user", 67}, 20}, {{"embedding.item", 9}, 20},
    {{"wide.page", 13}, 76}, {{"wide.one", 1}, 76}};

struct piece {
    struct ph_table_slice slice; /* its rows */
    struct ph__slice_shard shard;
    size_t num_columns, rank;
};

struct cut_model {
    struct ph__rng_sequence random;
    struct ph_init init;
    enum ph_row_format format;
    size_t num_ranks, num_pieces;
    struct piece pieces[MAX_PIECES];
    struct ph_store *ranks[MAX_RANKS];
};

static inline struct ph_store *shards_new_store(enum ph_row_format format)
{
    struct ph_store *store;
    assert_ok(ph_store_create(test_seed(), &store));
    ph__store_learn_rows(store, format);
    return store;
}

static inline void shards_add_slots(struct ph_store *store, struct ph_parameter *parameter)
{
    struct ph__slot *slot;
    assert_ok(ph__store_add_slot(store, parameter, "m", false, &slot));
    assert_ok(ph__store_add_slot(store, parameter, "s", parameter->is_table, &slot));
}

static inline void shards_add_dense(struct ph_store *store, struct ph_init init)
{
    const struct ph__declaration dense[] = {
        {.name = "deep.weight", .shape = {2, {5, 7}}, .init = init},
        {.name = "deep.bias", .shape = {1, {7}}, .init = init},
    };
    for (size_t i = 0; i < 2; i++) {
        struct ph_parameter *parameter;
        assert_ok(ph__store_add(store, &dense[i], NULL, &parameter));
        shards_add_slots(store, parameter);
    }
}

/* A table of these slices; shards NULL: whole ones. */
static inline void shards_add_table(struct ph_store *store, const char *name, struct ph_init init, size_t dim,
    size_t num_slices, const struct ph_table_slice *slices, const struct ph__slice_shard *shards)
{
    struct ph__declaration table = {.name = name,
        .family = "embedding.table",
        .is_table = true,
        .shape = {2, {0, dim}},
        .init = init,
        .num_slices = num_slices,
        .slices = slices,
        .shards = shards};
    struct ph_parameter *parameter;
    for (size_t i = 0; i < num_slices; i++)
        table.shape.dims[0] += slices[i].num_rows;
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    assert_string_equal(parameter->family, "embedding.table");
    shards_add_slots(store, parameter);
}

static inline struct ph_store *shards_whole_store(struct ph_init init, enum ph_row_format format)
{
    struct ph_store *store = shards_new_store(format);
    shards_add_dense(store, init);
    for (size_t i = 0; i < NUM_SLICES; i += 2) {
        const struct ph_table_slice slices[] = {logical_slices[i].slice, logical_slices[i + 1].slice};
        shards_add_table(store, i == 0 ? "embedding" : "wide", init, logical_slices[i].dim, 2, slices, NULL);
    }
    return store;
}

/* Ascending cuts 0 .. extent, in steps of `unit`; some runs may be empty. Returns the runs. */
static inline size_t shards_cut(
    struct ph__rng_sequence *random, size_t extent, size_t unit, size_t max_runs, size_t cuts_out[])
{
    const size_t num_runs = 1 + ph__rng_below(random, max_runs);
    for (size_t i = 0; i <= num_runs; i++)
        cuts_out[i] = i == 0 ? 0 : i == num_runs ? extent : ph__rng_below(random, extent / unit + 1) * unit;
    for (size_t i = 1; i < num_runs; i++)
        for (size_t j = i; j > 1 && cuts_out[j - 1] > cuts_out[j]; j--) {
            const size_t larger = cuts_out[j - 1];
            cuts_out[j - 1] = cuts_out[j];
            cuts_out[j] = larger;
        }
    return num_runs;
}

/* A strip of a slice's columns, cut into runs of rows. */
static inline void shards_cut_strip(
    struct cut_model *model, size_t slice, size_t first_column, size_t num_columns)
{
    const size_t rows = logical_slices[slice].slice.num_rows;
    size_t cuts[MAX_RUNS + 1];
    const size_t num_runs = shards_cut(&model->random, rows, 1, MAX_RUNS, cuts);
    for (size_t i = 0; i < num_runs && num_columns > 0; i++) {
        assert_true(model->num_pieces < MAX_PIECES);
        model->pieces[model->num_pieces++] =
            (struct piece){.slice = {logical_slices[slice].slice.name, cuts[i + 1] - cuts[i]},
                .shard = {cuts[i], rows, first_column, logical_slices[slice].dim},
                .num_columns = num_columns,
                .rank = ph__rng_below(&model->random, model->num_ranks)};
    }
}

/* The rank's pieces of this width as one table. */
static inline void shards_add_width(struct cut_model *model, size_t rank, size_t num_columns)
{
    struct ph_table_slice slices[MAX_PIECES];
    struct ph__slice_shard shards[MAX_PIECES];
    char name[64];
    size_t count = 0;
    for (size_t i = 0; i < model->num_pieces; i++)
        if (model->pieces[i].rank == rank && model->pieces[i].num_columns == num_columns) {
            slices[count] = model->pieces[i].slice;
            shards[count++] = model->pieces[i].shard;
        }
    snprintf(name, sizeof name, "table.%zu", num_columns);
    if (count > 0)
        shards_add_table(model->ranks[rank], name, model->init, num_columns, count, slices, shards);
}

static inline void cut_model_init(struct cut_model *model, size_t num_ranks, struct ph_init init,
    enum ph_row_format format, uint64_t number)
{
    *model = (struct cut_model){.random = {.key = {.seed = test_seed(), .stream = number}},
        .init = init,
        .format = format,
        .num_ranks = num_ranks};
    for (size_t slice = 0; slice < NUM_SLICES; slice++) {
        size_t cuts[MAX_STRIPS + 1];
        const size_t num_strips =
            shards_cut(&model->random, logical_slices[slice].dim, PH_SHARD_COLUMN_STEP, MAX_STRIPS, cuts);
        for (size_t i = 0; i < num_strips; i++)
            shards_cut_strip(model, slice, cuts[i], cuts[i + 1] - cuts[i]);
    }
    for (size_t rank = 0; rank < num_ranks; rank++) {
        model->ranks[rank] = shards_new_store(format);
        shards_add_dense(model->ranks[rank], init);
        for (size_t num_columns = 1; num_columns <= 76; num_columns++)
            shards_add_width(model, rank, num_columns);
    }
}

static inline void cut_model_fini(struct cut_model *model)
{
    for (size_t rank = 0; rank < model->num_ranks; rank++)
        ph_store_destroy(model->ranks[rank]);
}

/* ---- values ---- */

/* All that a checkpoint of a store holds. */
static inline struct ph__tensor_list shards_list(const struct ph_store *store)
{
    struct ph__tensor_list list = {0};
    assert_ok(ph__tensor_list_add_store(&list, store));
    assert_ok(ph__tensor_list_add_slots(&list, store));
    return list;
}

static inline bool is_slot(const char *name)
{
    return strncmp(name, "slot.", 5) == 0;
}

static inline bool is_dense(const char *name)
{
    return strstr(name, "deep.") != NULL;
}

/* Optimizer slots as a function of name, row and column of the whole. */
static inline void shards_fill_slots(const struct ph_store *store)
{
    struct ph__tensor_list list = {0};
    assert_ok(ph__tensor_list_add_slots(&list, store));
    for (size_t i = 0; i < list.count; i++) {
        const struct ph__area area = ph__tensor_area(&list.tensors[i]);
        const uint64_t name = ph__hash_name(list.tensors[i].name) % 100;
        ph_real *data = list.tensors[i].data;
        for (size_t row = 0; row < area.num_rows; row++)
            for (size_t column = 0; column < area.num_columns; column++)
                *data++ =
                    (ph_real)(100000 * name + 1000 * (area.first_row + row) + area.first_column + column);
    }
    ph__tensor_list_fini(&list);
}

/* Other numbers than any that are loaded. */
static inline void shards_clear(const struct ph__tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct ph_tensor *tensor = &list->tensors[i];
        const size_t elements = ph_shape_elements(&tensor->shape);
        memset(tensor->data, 0x11, elements * (tensor->low != NULL ? 2 : ph_dtype_size(tensor->dtype)));
        if (tensor->low != NULL)
            memset(tensor->low, 0x11, elements * sizeof *tensor->low);
    }
}

/* The numbers of the shard are those of the whole tensor there, bit for bit. */
static inline void assert_same_numbers(const struct ph_tensor *shard, const struct ph_tensor *whole)
{
    const size_t bytes = shard->row_format == PH_ROWS_FP32 ? ph_dtype_size(shard->dtype) : sizeof(uint16_t);
    const bool is_matrix = shard->shape.num_dims == 2;
    const size_t rows = is_matrix ? shard->shape.dims[0] : 1;
    const size_t columns = shard->shape.dims[is_matrix ? 1 : 0],
                 stride = whole->shape.dims[is_matrix ? 1 : 0];
    for (size_t row = 0; row < rows; row++) {
        const size_t place =
            is_matrix ? (shard->first_row + row) * stride + shard->first_column : shard->first_row;
        assert_memory_equal((const char *)shard->data + row * columns * bytes,
            (const char *)whole->data + place * bytes, columns * bytes);
        if (shard->low != NULL)
            assert_memory_equal(shard->low + row * columns, whole->low + place, columns * sizeof *shard->low);
    }
}

/* All of the list are shards of the whole store's tensors. */
static inline void assert_same_parts(const struct ph__tensor_list *list, const struct ph_store *whole)
{
    struct ph__tensor_list wanted = shards_list(whole);
    for (size_t i = 0; i < list->count; i++) {
        size_t k = 0;
        while (k < wanted.count && strcmp(wanted.tensors[k].name, list->tensors[i].name) != 0)
            k++;
        assert_true(k < wanted.count);
        assert_same_numbers(&list->tensors[i], &wanted.tensors[k]);
    }
    ph__tensor_list_fini(&wanted);
}

/* ---- folders ---- */

/* What rank `rank` writes: its shards, and of what all have the first one alone. */
static inline char *shards_write(
    const struct ph_store *store, const char *folder, size_t rank, size_t num_ranks)
{
    struct ph__tensor_list all = shards_list(store), written = {0};
    char *description;
    for (size_t i = 0; i < all.count; i++)
        if (rank == 0 || !is_dense(all.tensors[i].name))
            assert_ok(ph__tensor_list_add(&written, &all.tensors[i]));
    assert_ok(ph__folder_write_part(folder, rank, num_ranks, written.count, written.tensors, &description));
    ph__tensor_list_fini(&written);
    ph__tensor_list_fini(&all);
    return description;
}

static inline void shards_save(const struct cut_model *model, const char *folder)
{
    static const char *const metadata[] = {"format", "pt", "step", "7", NULL};
    char *descriptions[MAX_RANKS];
    for (size_t rank = model->num_ranks; rank-- > 0;)
        descriptions[rank] = shards_write(model->ranks[rank], folder, rank, model->num_ranks);
    assert_ok(
        ph__folder_commit(folder, model->num_ranks, (const char *const *)(uintptr_t)descriptions, metadata));
    for (size_t rank = 0; rank < model->num_ranks; rank++)
        free(descriptions[rank]);
}

#endif
