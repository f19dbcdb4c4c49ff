/* Types: constructors, comparison, text, and shapes once the symbols have values. */
#include <assert.h>
#include <stdio.h>

#include "graph/graph.h"

struct ph_dim ph__dim(size_t extent)
{
    return (struct ph_dim){.extent = extent};
}

struct ph_dim ph__dim_of(size_t extent, uint32_t symbol)
{
    return (struct ph_dim){.extent = extent, .symbol = symbol};
}

struct ph_type ph__dense_type(uint32_t num_dims, const struct ph_dim *dims)
{
    struct ph_type type = {.kind = PH_DENSE, .dtype = PH_REAL, .num_dims = num_dims};
    for (uint32_t i = 0; i < num_dims; i++)
        type.dims[i] = dims[i];
    return type;
}

struct ph_type ph__scalar_type(void)
{
    return (struct ph_type){.kind = PH_SCALAR, .dtype = PH_F64};
}

struct ph_type ph__token_type(void)
{
    return (struct ph_type){.kind = PH_TOKEN};
}

bool ph__dim_equal(struct ph_dim a, struct ph_dim b)
{
    return a.extent == b.extent && a.symbol == b.symbol;
}

bool ph__type_equal(const struct ph_type *a, const struct ph_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->num_dims != b->num_dims)
        return false;
    for (uint32_t i = 0; i < a->num_dims; i++)
        if (!ph__dim_equal(a->dims[i], b->dims[i]))
            return false;
    return true;
}

size_t ph__type_elements_from(const struct ph_type *type, uint32_t first)
{
    size_t elements = 1;
    for (uint32_t i = first; i < type->num_dims; i++) {
        assert(type->dims[i].symbol == 0);
        elements *= type->dims[i].extent;
    }
    return elements;
}

void ph__type_shape(const struct ph_type *type, const uint64_t *extents, struct ph_shape *shape_out)
{
    shape_out->num_dims = type->num_dims;
    for (uint32_t i = 0; i < type->num_dims; i++) {
        struct ph_dim dim = type->dims[i];
        shape_out->dims[i] = dim.symbol == 0 ? dim.extent : dim.extent * (size_t)extents[dim.symbol];
    }
}

size_t ph__type_index_elements(const struct ph_type *type, const struct ph_shape *shape)
{
    switch (type->kind) {
    case PH_JAGGED:
        return shape->dims[0] + 1;
    case PH_SPARSE_ROWS:
        return shape->dims[0];
    default:
        return 0;
    }
}

/* Names a symbol: "B", "N" and so on for the batch's, "U1", "U2" for those that operators have added, so that
 * two histories do not look equally long. */
static void name_symbol(uint32_t symbol, char name[16])
{
    static const char of_batch[] = {' ', 'B', 'N', 'G', 'R', 'M'};
    if (symbol < PH_NUM_BATCH_SYMBOLS)
        snprintf(name, 16, "%c", of_batch[symbol]);
    else
        snprintf(name, 16, "U%u", (unsigned)(symbol - PH_NUM_BATCH_SYMBOLS + 1));
}

/* Prints "8", "B" or "26B". */
static int print_dim(struct ph_dim dim, char *buffer, size_t size)
{
    char name[16];
    if (dim.symbol == 0)
        return snprintf(buffer, size, "%zu", dim.extent);
    name_symbol(dim.symbol, name);
    return dim.extent == 1 ? snprintf(buffer, size, "%s", name)
                           : snprintf(buffer, size, "%zu%s", dim.extent, name);
}

const char *ph__type_text(const struct ph_type *type, char buffer[96])
{
    static const char *const kinds[] = {"", "jagged", "sparse_rows", "scalar", "token"};
    size_t used = (size_t)snprintf(buffer, 96, "%s", kinds[type->kind]);
    if (type->num_dims == 0)
        return buffer;
    for (uint32_t i = 0; i < type->num_dims && used < 80; i++) {
        buffer[used++] = i == 0 ? '(' : ',';
        used += (size_t)print_dim(type->dims[i], buffer + used, 96 - used);
    }
    if (used < 95)
        snprintf(buffer + used, 96 - used, ")");
    return buffer;
}
