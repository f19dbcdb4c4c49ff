/* Initial values of learnt parameters: pure functions of seed, logical name, row and column. */
#ifndef PH_STORE_INIT_H
#define PH_STORE_INIT_H

#include "base/thread/parallel.h"
#include "phloem/store.h"

/* A logical tensor, which is a dense parameter seen as a matrix or one slice of a table; or a shard of
 * one. */
struct ph__init_target {
    const char *name;
    size_t rows, columns;
    size_t first_row, first_column;   /* of the shard; first_column a multiple of 4 */
    size_t whole_rows, whole_columns; /* dimensions for the fans */
    enum ph_row_format row_format;    /* a learnt one */
    void *data;                       /* (rows, columns) in this format, zeroed */
    uint16_t *low;                    /* the low words of bf16_split */
    const volatile int *stop_signal;  /* NULL, or once it is not 0, further rows are not filled */
};

/* Fills the target; team NULL: serially. The values do not depend on the team. */
void ph__init_fill(
    const struct ph_init *init, uint64_t seed, const struct ph__init_target *target, struct ph__team *team);

/* Gives a shape as a matrix: none or one dimension is one row, two stay, more are joined into columns. */
void ph__init_matrix(const struct ph_shape *shape, size_t *rows_out, size_t *columns_out);

#endif
