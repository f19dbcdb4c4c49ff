/* Tensors of a request: typed arrays of values, from JSON, from the lists of protobuf or from raw bytes.
 * Everything is checked: type, shape, and that there are as many values. Pure functions; any thread. */
#ifndef PH_SERVE_WIRE_TENSOR_H
#define PH_SERVE_WIRE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "serve/wire/oip_messages.h"

/* X(NAME, bytes of a value, list of protobuf that holds its values). The order is that of protobuf's
 * DataType. */
#define PH_TENSOR_TYPES(X)                                      \
    X(BOOL, 1, bools)                                           \
    X(UINT8, 1, uint32s)                                        \
    X(UINT16, 2, uint32s)                                       \
    X(UINT32, 4, uint32s)                                       \
    X(UINT64, 8, uint64s)                                       \
    X(INT8, 1, int32s)                                          \
    X(INT16, 2, int32s)                                         \
    X(INT32, 4, int32s)                                         \
    X(INT64, 8, int64s)                                         \
    X(FP16, 2, fp32s) /* but FP16 and BF16 are always binary */ \
    X(FP32, 4, fp32s)                                           \
    X(FP64, 8, fp64s)                                           \
    X(BYTES, 0, texts)                                          \
    X(BF16, 2, fp32s)

enum ph__tensor_type {
    PH_TENSOR_NONE,
#define X(name, bytes, list) PH_TENSOR_##name,
    PH_TENSOR_TYPES(X)
#undef X
};

#define PH_TENSOR_MAX_DIMS 8

struct ph__tensor {
    struct ph__bytes name;
    enum ph__tensor_type type; /* as the request says */
    size_t num_dims;
    int64_t dims[PH_TENSOR_MAX_DIMS];
    size_t count;              /* values: the product of the dimensions */
    enum ph__tensor_type held; /* type of the values in memory: JSON's and protobuf's are INT64 or FP64 */
    const void *values;        /* (count), little-endian, of any alignment; BYTES: struct ph__bytes */
};

const char *ph__tensor_type_name(enum ph__tensor_type type);

/* Reads a tensor. raw: its bytes, where they stand apart from the message; NULL: they do not. What is
 * borrowed from the message stays borrowed; arrays are in the arena. PH_ERROR_DATA names the tensor. */
ph_status ph__tensor_read(const struct ph__oip_tensor *message, const struct ph__bytes *raw,
    struct ph__arena *arena, struct ph__tensor *tensor_out);

static inline bool ph__tensor_is_text(const struct ph__tensor *tensor)
{
    return tensor->type == PH_TENSOR_BYTES;
}
/* Tells whether values are whole numbers; BOOL is 0 and 1. */
bool ph__tensor_is_integer(const struct ph__tensor *tensor);

/* Return value i < count. */
struct ph__bytes ph__tensor_text(const struct ph__tensor *tensor, size_t i); /* of a BYTES tensor */
int64_t ph__tensor_integer(const struct ph__tensor *tensor, size_t i); /* where they are integers; a UINT64
                                                                          beyond int64 wraps */
double ph__tensor_real(const struct ph__tensor *tensor, size_t i);     /* of any other than a BYTES tensor */

#endif
