/* Datatypes without gaps between their items, and operations on them. */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "preload/sim/sim_mpi.h"

void *ph__sim_allocate(size_t bytes)
{
    void *data = malloc(bytes + 1);
    if (data == NULL)
        ph__process_fail(5, "rank %u is out of memory", ph__process()->rank);
    return data;
}

void *ph__sim_copy(const void *data, size_t bytes)
{
    return memcpy(ph__sim_allocate(bytes), data, bytes);
}

/* ---- reductions ---- */

#define EACH(expression)               \
    for (size_t i = 0; i < count; i++) \
        to[i] = (item)(expression);    \
    return true;
#define ARITHMETIC            \
    case PH_OP_SUM:           \
        EACH(from[i] + to[i]) \
    case PH_OP_PROD:          \
        EACH(from[i] * to[i])
#define ORDER                                   \
    case PH_OP_MAX:                             \
        EACH(from[i] > to[i] ? from[i] : to[i]) \
    case PH_OP_MIN:                             \
        EACH(from[i] < to[i] ? from[i] : to[i]) \
    case PH_OP_LAND:                            \
        EACH(from[i] != 0 && to[i] != 0)        \
    case PH_OP_LOR:                             \
        EACH(from[i] != 0 || to[i] != 0)        \
    case PH_OP_LXOR:                            \
        EACH((from[i] != 0) != (to[i] != 0))
#define BITS                  \
    case PH_OP_BAND:          \
        EACH(from[i] & to[i]) \
    case PH_OP_BOR:           \
        EACH(from[i] | to[i]) \
    case PH_OP_BXOR:          \
        EACH(from[i] ^ to[i])
/* Takes the lower index of two equal values. */
#define WINS(less) \
    (from[i].value less to[i].value || (from[i].value == to[i].value && from[i].index < to[i].index))
#define EACH_PAIR(less)                \
    for (size_t i = 0; i < count; i++) \
        if (WINS(less))                \
            to[i] = from[i];           \
    return true;
#define PLACES         \
    case PH_OP_MAXLOC: \
        EACH_PAIR(>)   \
    case PH_OP_MINLOC: \
        EACH_PAIR(<)

#define REDUCE(name, type, cases)                                                                   \
    static bool name(enum ph__sim_op_kind kind, const void *from_data, void *to_data, size_t count) \
    {                                                                                               \
        typedef type item;                                                                          \
        const item *from = from_data;                                                               \
        item *to = to_data;                                                                         \
        switch (kind) {                                                                             \
            cases default : return false;                                                           \
        }                                                                                           \
    }
#define PAIR(type)  \
    struct {        \
        type value; \
        int index;  \
    }

REDUCE(int8, int8_t, ARITHMETIC ORDER BITS)
REDUCE(uint8, uint8_t, ARITHMETIC ORDER BITS)
REDUCE(int16, int16_t, ARITHMETIC ORDER BITS)
REDUCE(uint16, uint16_t, ARITHMETIC ORDER BITS)
REDUCE(int32, int32_t, ARITHMETIC ORDER BITS)
REDUCE(uint32, uint32_t, ARITHMETIC ORDER BITS)
REDUCE(int64, int64_t, ARITHMETIC ORDER BITS)
REDUCE(uint64, uint64_t, ARITHMETIC ORDER BITS)
REDUCE(float32, float, ARITHMETIC ORDER)
REDUCE(float64, double, ARITHMETIC ORDER)
REDUCE(long_float, long double, ARITHMETIC ORDER)
REDUCE(complex64, float complex, ARITHMETIC)
REDUCE(complex128, double complex, ARITHMETIC)
REDUCE(float_int, PAIR(float), PLACES)
REDUCE(double_int, PAIR(double), PLACES)
REDUCE(long_int, PAIR(long), PLACES)
REDUCE(short_int, PAIR(short), PLACES)
REDUCE(two_ints, PAIR(int), PLACES)

/* ---- types ---- */

#define ONE(handle, reduce, type)                  \
    {                                              \
        handle, sizeof(type), sizeof(type), reduce \
    }
#define TWO(handle, reduce, type)                                      \
    {                                                                  \
        handle, sizeof(type) + sizeof(int), sizeof(PAIR(type)), reduce \
    }
static const struct ph__sim_type types[] = {ONE(MPI_CHAR, int8, char), ONE(MPI_SIGNED_CHAR, int8, char),
    ONE(MPI_UNSIGNED_CHAR, uint8, char), ONE(MPI_BYTE, uint8, char), ONE(MPI_PACKED, uint8, char),
    ONE(MPI_SHORT, int16, short), ONE(MPI_UNSIGNED_SHORT, uint16, short), ONE(MPI_INT, int32, int),
    ONE(MPI_UNSIGNED, uint32, int), ONE(MPI_LONG, int64, long), ONE(MPI_UNSIGNED_LONG, uint64, long),
    ONE(MPI_LONG_LONG, int64, long), ONE(MPI_UNSIGNED_LONG_LONG, uint64, long), ONE(MPI_WCHAR, int32, int),
    ONE(MPI_C_BOOL, uint8, char), ONE(MPI_INT8_T, int8, char), ONE(MPI_INT16_T, int16, short),
    ONE(MPI_INT32_T, int32, int), ONE(MPI_INT64_T, int64, long), ONE(MPI_UINT8_T, uint8, char),
    ONE(MPI_UINT16_T, uint16, short), ONE(MPI_UINT32_T, uint32, int), ONE(MPI_UINT64_T, uint64, long),
    ONE(MPI_AINT, int64, long), ONE(MPI_OFFSET, int64, long), ONE(MPI_COUNT, int64, long),
    ONE(MPI_FLOAT, float32, float), ONE(MPI_DOUBLE, float64, double),
    ONE(MPI_LONG_DOUBLE, long_float, long double), ONE(MPI_C_COMPLEX, complex64, float complex),
    ONE(MPI_C_DOUBLE_COMPLEX, complex128, double complex), TWO(MPI_FLOAT_INT, float_int, float),
    TWO(MPI_DOUBLE_INT, double_int, double), TWO(MPI_LONG_INT, long_int, long),
    TWO(MPI_SHORT_INT, short_int, short), TWO(MPI_2INT, two_ints, int)};

enum { MOST_MADE = 1024 };
static struct ph__sim_type made_types[MOST_MADE];
static struct ph__sim_op made_ops[MOST_MADE];
static size_t num_types, num_ops;

const struct ph__sim_type *ph__sim_type(MPI_Datatype handle)
{
    const intptr_t number = PH_HANDLE_NUMBER(handle);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].handle == handle)
            return &types[i];
    if (number < 0 || number >= (intptr_t)num_types)
        ph__process_fail(2, "a datatype is not simulated (rank %u)", ph__process()->rank);
    return &made_types[number];
}

static bool reduces_nothing(enum ph__sim_op_kind kind, const void *from, void *to, size_t count)
{
    (void)kind;
    (void)from;
    (void)to;
    (void)count;
    return false;
}

PH_MPI(Type_contiguous, int count, MPI_Datatype type, MPI_Datatype *made_out)
{
    const struct ph__sim_type *base = ph__sim_type(type);
    if (num_types == MOST_MADE)
        ph__process_fail(2, "more than %d datatypes are not simulated", MOST_MADE);
    *made_out = PH_HANDLE(MPI_Datatype, num_types);
    made_types[num_types++] = (struct ph__sim_type){
        *made_out, base->bytes * (size_t)count, base->extent * (size_t)count, reduces_nothing};
    return MPI_SUCCESS;
}

PH_MPI(Type_commit, MPI_Datatype *type)
{
    (void)ph__sim_type(*type);
    return MPI_SUCCESS;
}

PH_MPI(Type_free, MPI_Datatype *type)
{
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

PH_MPI(Type_size, MPI_Datatype type, int *bytes_out)
{
    *bytes_out = (int)ph__sim_type(type)->bytes;
    return MPI_SUCCESS;
}

PH_MPI(Type_get_extent, MPI_Datatype type, MPI_Aint *lower_out, MPI_Aint *extent_out)
{
    *lower_out = 0;
    *extent_out = (MPI_Aint)ph__sim_type(type)->extent;
    return MPI_SUCCESS;
}

/* ---- operations ---- */

static const struct ph__sim_op ops[] = {{MPI_SUM, PH_OP_SUM, true, NULL}, {MPI_PROD, PH_OP_PROD, true, NULL},
    {MPI_MAX, PH_OP_MAX, true, NULL}, {MPI_MIN, PH_OP_MIN, true, NULL}, {MPI_LAND, PH_OP_LAND, true, NULL},
    {MPI_LOR, PH_OP_LOR, true, NULL}, {MPI_LXOR, PH_OP_LXOR, true, NULL}, {MPI_BAND, PH_OP_BAND, true, NULL},
    {MPI_BOR, PH_OP_BOR, true, NULL}, {MPI_BXOR, PH_OP_BXOR, true, NULL},
    {MPI_MAXLOC, PH_OP_MAXLOC, true, NULL}, {MPI_MINLOC, PH_OP_MINLOC, true, NULL}};

const struct ph__sim_op *ph__sim_op(MPI_Op handle)
{
    const intptr_t number = PH_HANDLE_NUMBER(handle);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].handle == handle)
            return &ops[i];
    if (number < 0 || number >= (intptr_t)num_ops)
        ph__process_fail(2, "an operation is not simulated (rank %u)", ph__process()->rank);
    return &made_ops[number];
}

PH_MPI(Op_create, MPI_User_function *user, int commutes, MPI_Op *made_out)
{
    if (num_ops == MOST_MADE)
        ph__process_fail(2, "more than %d operations are not simulated", MOST_MADE);
    *made_out = PH_HANDLE(MPI_Op, num_ops);
    made_ops[num_ops++] = (struct ph__sim_op){*made_out, PH_OP_USER, commutes != 0, user};
    return MPI_SUCCESS;
}

PH_MPI(Op_free, MPI_Op *op)
{
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

void ph__sim_reduce(const struct ph__sim_reduction *reduction, const void *from, void *to, size_t count)
{
    MPI_Datatype type = reduction->type->handle;
    int length = (int)count;
    bool is_done = true;
    ph__process_begin_sum();
    if (reduction->op->kind == PH_OP_USER)
        reduction->op->user((void *)(uintptr_t)from, to, &length, &type);
    else
        is_done = reduction->type->reduce(reduction->op->kind, from, to, count);
    ph__process_end_sum();
    if (!is_done)
        ph__process_fail(2, "an operation on a datatype that has none such (rank %u)", ph__process()->rank);
}
