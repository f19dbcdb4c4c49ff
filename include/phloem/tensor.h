/* Types that all rooms share: element types, shapes, views, and the batch.
 *
 * Views borrow their memory. All arrays are row-major and contiguous; (B,F,D) lists dimensions outermost
 * first. B samples in a batch, F features, D embedding dimension, N ids in a batch, T tasks (labels a
 * sample). */
#ifndef PHLOEM_TENSOR_H
#define PHLOEM_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Type of all weights and of all numbers computed with them. The library is built once more with
 * PH_REAL_IS_DOUBLE, with reference kernels only, so that gradients can be checked by finite differences. */
#ifdef PH_REAL_IS_DOUBLE
typedef double ph_real;
#define PH_REAL PH_F64
#else
typedef float ph_real;
#define PH_REAL PH_F32
#endif

/* X(name, C type, safetensors name). BF16: the upper half of a float, in 16 bits. */
#define PH_DTYPE_LIST(X)       \
    X(PH_F32, float, "F32")    \
    X(PH_F64, double, "F64")   \
    X(PH_I32, int32_t, "I32")  \
    X(PH_I64, int64_t, "I64")  \
    X(PH_U32, uint32_t, "U32") \
    X(PH_U8, uint8_t, "U8")    \
    X(PH_F16, uint16_t, "F16") \
    X(PH_BF16, uint16_t, "BF16")

#define PH_DTYPE_ENUM(name, type, text) name,
enum ph_dtype { PH_DTYPE_LIST(PH_DTYPE_ENUM) PH_DTYPE_COUNT };
#undef PH_DTYPE_ENUM

size_t ph_dtype_size(enum ph_dtype dtype);      /* bytes; 0 for an unknown type */
const char *ph_dtype_name(enum ph_dtype dtype); /* as safetensors writes it, otherwise "unknown"; static */

/* Formats of a table's rows. fp32 (ph_real in every build) keeps all of a number; fp16 keeps 11 bits of it
 * and reaches 65504; bf16 keeps 8 bits and the range of fp32; bf16_split stores the other 16 bits beside, for
 * the update alone. int8 has 256 levels between a row's least number and its largest, int4 has 16: these two
 * are for scoring only, the others can be trained as well. X(name, text) */
#define PH_ROW_FORMAT_LIST(X)           \
    X(PH_ROWS_FP32, "fp32")             \
    X(PH_ROWS_FP16, "fp16")             \
    X(PH_ROWS_BF16, "bf16")             \
    X(PH_ROWS_BF16_SPLIT, "bf16_split") \
    X(PH_ROWS_INT8, "int8")             \
    X(PH_ROWS_INT4, "int4")

#define PH_ROW_FORMAT_ENUM(name, text) name,
enum ph_row_format { PH_ROW_FORMAT_LIST(PH_ROW_FORMAT_ENUM) PH_ROW_FORMAT_COUNT };
#undef PH_ROW_FORMAT_ENUM

const char *ph_row_format_name(enum ph_row_format format); /* "int8", otherwise "unknown"; static */

#define PH_MAX_DIMS 4

struct ph_shape {
    size_t num_dims; /* 0: a single number */
    size_t dims[PH_MAX_DIMS];
};

size_t ph_shape_elements(const struct ph_shape *shape); /* product of dims, unchecked; 1 without dims */

/* One batch in the combined format: all features' lengths in one array, all ids in another, feature-major.
 * The ids of feature f of sample b are ids[offsets[f * B + b] .. offsets[f * B + b + 1]). Every pointer is
 * borrowed from the batch's maker until the batch is given back. */
struct ph_batch {
    size_t num_samples;          /* B */
    size_t num_dense;            /* dense features a sample */
    size_t num_sparse;           /* F, sparse features a sample */
    size_t num_tasks;            /* T */
    size_t num_ids;              /* N */
    uint64_t first_sample;       /* position of sample 0 in the epoch's order: a key of the rng */
    const ph_real *dense;        /* (B, num_dense) */
    const ph_real *labels;       /* (B,T), in [0,1] */
    const ph_real *label_mask;   /* (B,T), 1 where the label is known; NULL: all are known */
    const ph_real *teacher;      /* (B,T) probabilities by a teacher, in (0,1); NULL: none */
    const ph_real *teacher_mask; /* (B,T), 1 where the teacher's is known; NULL: all are known */
    const ph_real *weights;      /* (B) sample weights; NULL: all 1 */
    const int32_t *lengths;      /* (F,B) ids in each bag */
    const uint32_t *offsets;     /* (F*B + 1) running sum of lengths */
    const int64_t *ids;          /* (N) encoded ids, in [0, rows of the feature's table) */
    const ph_real *id_weights;   /* (N) for weighted pooling; NULL: all 1 */
    const int64_t *groups;       /* (B) ids that grouped AUC groups by; NULL: none */
    size_t num_global_samples;   /* samples of the batch on all ranks together; 0: the batch is whole */
};

#ifdef __cplusplus
}
#endif
#endif
