/* Element types and shapes. */
#include "phloem/tensor.h"

#include <assert.h>

size_t ph_dtype_size(enum ph_dtype dtype)
{
#define DTYPE_SIZE(name, type, text) sizeof(type),
    static const size_t sizes[PH_DTYPE_COUNT] = {PH_DTYPE_LIST(DTYPE_SIZE)};
#undef DTYPE_SIZE
    return (unsigned)dtype < PH_DTYPE_COUNT ? sizes[dtype] : 0;
}

const char *ph_dtype_name(enum ph_dtype dtype)
{
#define DTYPE_NAME(name, type, text) text,
    static const char *const names[PH_DTYPE_COUNT] = {PH_DTYPE_LIST(DTYPE_NAME)};
#undef DTYPE_NAME
    return (unsigned)dtype < PH_DTYPE_COUNT ? names[dtype] : "unknown";
}

size_t ph_shape_elements(const struct ph_shape *shape)
{
    assert(shape->num_dims <= PH_MAX_DIMS);
    size_t product = 1;
    for (size_t i = 0; i < shape->num_dims; i++)
        product *= shape->dims[i];
    return product;
}
