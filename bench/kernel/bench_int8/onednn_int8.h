/* oneDNN's product of bytes, serial, with weights packed into the layout that the library prefers for the
 * number of rows. Functions end the program where the library fails. */
#ifndef PH_BENCH_ONEDNN_INT8_H
#define PH_BENCH_ONEDNN_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operands, borrowed until the product is destroyed; the weights are copied when it is made. */
struct onednn_int8_args {
    size_t rows, in_features, out_features;
    const void *x;              /* (rows, in_features), s8 or u8 */
    const int8_t *weight;       /* (in_features, out_features) */
    const float *column_scales; /* (out_features) */
    void *y;                    /* (rows, out_features), s32 or f32 */
    bool is_unsigned;           /* x is u8 */
    bool is_scaled;             /* y is f32, the sums times a scale a column; else s32, the sums */
};

struct onednn_int8 *onednn_int8_create(const struct onednn_int8_args *args);
void onednn_int8_destroy(struct onednn_int8 *product);
void onednn_int8_run(const struct onednn_int8 *product);

#endif
