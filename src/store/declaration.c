#include "store/declaration.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"

/* Returns the shard that the slice is; a whole slice is all of its rows and columns. */
static struct ph__slice_shard shard_of(const struct ph__declaration *declaration, size_t slice)
{
    if (declaration->shards != NULL)
        return declaration->shards[slice];
    return (struct ph__slice_shard){
        .whole_rows = declaration->slices[slice].num_rows, .whole_columns = declaration->shape.dims[1]};
}

/* Tells whether the parameter's slice is the declaration's, and the same shard of it. */
static bool is_same_slice(
    const struct ph_parameter *parameter, const struct ph__declaration *declaration, size_t slice)
{
    const struct ph__slice_shard *a = &parameter->shards[slice], b = shard_of(declaration, slice);
    return strcmp(parameter->slices[slice].name, declaration->slices[slice].name) == 0 &&
           parameter->slices[slice].num_rows == declaration->slices[slice].num_rows &&
           a->first_row == b.first_row && a->whole_rows == b.whole_rows &&
           a->first_column == b.first_column && a->whole_columns == b.whole_columns;
}

ph_status ph__declaration_check_same(
    const struct ph__declaration *declaration, const struct ph_parameter *parameter)
{
    bool is_same = parameter->is_table == declaration->is_table &&
                   ph__shape_equal(&parameter->shape, &declaration->shape) &&
                   parameter->first_row == declaration->first_row &&
                   ph__shape_equal(&parameter->whole, &declaration->whole) &&
                   parameter->num_slices == declaration->num_slices;
    for (size_t i = 0; is_same && i < parameter->num_slices; i++)
        is_same = is_same_slice(parameter, declaration, i);
    if (is_same)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "parameter '%s' is in the store already with another shape or other slices", declaration->name);
}

/* ---- new ones ---- */

static ph_status check_shard(const struct ph__declaration *declaration, size_t slice)
{
    const struct ph__slice_shard shard = shard_of(declaration, slice);
    const size_t rows = declaration->slices[slice].num_rows, columns = declaration->shape.dims[1];
    if (shard.first_row > shard.whole_rows || rows > shard.whole_rows - shard.first_row ||
        shard.first_column > shard.whole_columns || columns > shard.whole_columns - shard.first_column ||
        shard.first_column % PH_SHARD_COLUMN_STEP != 0)
        return ph_fail(PH_ERROR_BUG, "table '%s': slice '%s' does not lie within its whole table",
            declaration->name, declaration->slices[slice].name);
    if (shard.whole_rows > UINT32_MAX)
        return ph_fail(
            PH_ERROR_CONFIG, "slice '%s' has more than 2^32 - 1 rows", declaration->slices[slice].name);
    return PH_OK;
}

struct ph_tensor ph__declaration_tensor(const struct ph__declaration *declaration, size_t slice)
{
    const struct ph__slice_shard shard = shard_of(declaration, slice);
    return ph__slice_tensor(&declaration->slices[slice], &shard, declaration->shape.dims[1]);
}

struct ph_tensor ph__dense_tensor(const struct ph_parameter *parameter)
{
    return (struct ph_tensor){.name = parameter->name,
        .dtype = PH_REAL,
        .shape = parameter->shape,
        .first_row = parameter->first_row,
        .whole = parameter->whole};
}

ph_status ph__declaration_check_slices(const struct ph__declaration *declaration)
{
    size_t rows = 0;
    for (size_t i = 0; i < declaration->num_slices; i++) {
        const struct ph_table_slice *slice = &declaration->slices[i];
        PH_TRY(check_shard(declaration, i));
        if (!ph__size_add(rows, slice->num_rows, &rows) || rows > UINT32_MAX)
            return ph_fail(PH_ERROR_CONFIG, "table '%s' has more than 2^32 - 1 rows", declaration->name);
    }
    if (declaration->shape.num_dims != 2 || declaration->shape.dims[0] != rows)
        return ph_fail(PH_ERROR_BUG, "table '%s' is not the sum of its slices", declaration->name);
    return PH_OK;
}

/* ---- rows ---- */

uint64_t *ph__declaration_first_rows(const struct ph__declaration *table, struct ph__arena *arena)
{
    uint64_t *first_rows = ph__arena_alloc_array(arena, table->num_slices + 1, sizeof *first_rows);
    for (size_t i = 0; first_rows != NULL && i < table->num_slices; i++)
        first_rows[i + 1] = first_rows[i] + table->slices[i].num_rows;
    return first_rows;
}

size_t ph__declaration_slice_at(const struct ph__declaration *table, const uint64_t *first_rows, uint64_t row)
{
    size_t begin = 0, end = table->num_slices;
    while (end - begin > 1) {
        const size_t middle = begin + (end - begin) / 2;
        if (first_rows[middle] <= row)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

/* ---- parameters ---- */

/* Makes the slices' random streams for rounding rows, which differ from the streams of initial values. */
static struct ph__row_slice *make_row_slices(
    struct ph__arena *arena, const struct ph__declaration *declaration)
{
    struct ph__row_slice *slices = ph__arena_alloc_array(arena, declaration->num_slices, sizeof *slices);
    size_t end_row = 0;
    for (size_t i = 0; slices != NULL && i < declaration->num_slices; i++) {
        const char *name = ph__arena_printf(arena, "rounding:%s", declaration->slices[i].name);
        if (name == NULL)
            return NULL;
        const struct ph__slice_shard shard = shard_of(declaration, i);
        end_row += declaration->slices[i].num_rows;
        slices[i] = (struct ph__row_slice){ph__hash_name(name), end_row, shard.first_row, shard.first_column};
    }
    return slices;
}

struct ph_parameter *ph__declaration_copy(struct ph__arena *arena, const struct ph__declaration *declaration)
{
    struct ph_parameter *parameter = ph__arena_alloc(arena, sizeof *parameter);
    const char *name = ph__arena_strdup(arena, declaration->name);
    const char *family = declaration->family != NULL ? ph__arena_strdup(arena, declaration->family) : name;
    struct ph_table_slice *slices = ph__arena_alloc_array(arena, declaration->num_slices, sizeof *slices);
    struct ph__slice_shard *shards = ph__arena_alloc_array(arena, declaration->num_slices, sizeof *shards);
    struct ph__row_slice *row_slices = make_row_slices(arena, declaration);
    if (parameter == NULL || name == NULL || family == NULL || slices == NULL || shards == NULL ||
        row_slices == NULL)
        return NULL;
    for (size_t i = 0; i < declaration->num_slices; i++) {
        shards[i] = shard_of(declaration, i);
        slices[i].num_rows = declaration->slices[i].num_rows;
        slices[i].name = ph__arena_strdup(arena, declaration->slices[i].name);
        if (slices[i].name == NULL)
            return NULL;
    }
    *parameter = (struct ph_parameter){
        .name = name,
        .family = family,
        .is_table = declaration->is_table,
        .shape = declaration->shape,
        .first_row = declaration->first_row,
        .whole = declaration->whole,
        .init = declaration->init,
        .num_slices = declaration->num_slices,
        .slices = slices,
        .shards = shards,
        .row_slices = row_slices,
        .version = 1,
    };
    return parameter;
}
