/* NumPy's .npy header, versions 1 to 3 (numpy.lib.format), and the values of an array.
 *
 * Supported are arrays of numbers in C order and little endian, of one dimension (N values) or two (N rows of
 * K). */
#ifndef PH_DATA_NPY_H
#define PH_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_NPY_PREFIX_BYTES 12             /* enough to read the header's size */
#define PH_NPY_MAX_HEADER_BYTES (64 << 10) /* NumPy's headers have about 128 */
#define PH_NPY_MAX_ROW_BYTES (16 << 20)

enum ph__npy_type {
    PH_NPY_BOOL,
    PH_NPY_INT8,
    PH_NPY_INT16,
    PH_NPY_INT32,
    PH_NPY_INT64,
    PH_NPY_UINT8,
    PH_NPY_UINT16,
    PH_NPY_UINT32,
    PH_NPY_UINT64,
    PH_NPY_FLOAT16,
    PH_NPY_FLOAT32,
    PH_NPY_FLOAT64,
};

struct ph__npy {
    enum ph__npy_type type;
    size_t item_bytes;
    uint64_t num_rows;
    size_t num_columns; /* 1 with one dimension */
    size_t row_bytes;
    uint64_t num_bytes; /* bytes of all rows; cannot overflow */
};

/* Gives the size of the header, magic and length included, from an array's first `size` bytes. PH_ERROR_DATA
 * naming `name` when they are not .npy, or the header is beyond PH_NPY_MAX_HEADER_BYTES. */
ph_status ph__npy_header_bytes(
    const char *name, const unsigned char *bytes, size_t size, size_t *header_bytes_out);

/* Parses a whole header of that size. PH_ERROR_DATA naming `name` and what is wrong or not supported. */
ph_status ph__npy_parse(
    const char *name, const unsigned char *bytes, size_t header_bytes, struct ph__npy *npy_out);

static inline bool ph__npy_is_real(const struct ph__npy *npy)
{
    return npy->type >= PH_NPY_FLOAT16;
}

/* Return the value of one item, at any address. */
double ph__npy_real(enum ph__npy_type type, const unsigned char *item);     /* float types */
int64_t ph__npy_integer(enum ph__npy_type type, const unsigned char *item); /* others; uint64: its bits */

#endif
