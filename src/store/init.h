/* Initial values of what is learnt: pure functions of seed, logical name, row and column. */
#ifndef PH_STORE_INIT_H
#define PH_STORE_INIT_H

#include "base/thread/parallel.h"
#include "phloem/store.h"

/* One logical tensor, a dense parameter seen as a matrix or one slice of a table; or a shard of it. */
struct ph__init_target {
    const char *name;
    size_t rows, columns;
    size_t first_row, first_column;   /* of the shard; first_column a multiple of 4 */
    size_t whole_rows, whole_columns; /* what the fans are counted in */
    enum ph_row_format row_format;    /* one that is learnt */
    void *data;                       /* (rows, columns) in this format, zeroed */
    uint16_t *low;                    /* the low words of bf16_split */
    const volatile int *stop_signal;  /* NULL, or rows are left as they are once it is not 0 */
};

/* Fills the target; team NULL: serially. The values do not depend on the team. */
void ph__init_fill(
    const struct ph_init *init, uint64_t seed, const struct ph__init_target *target, struct ph__team *team);

/* Sees a shape as a matrix: no dims and one are one row, two are itself, more dimensions are joined into
 * columns. */
void ph__init_matrix(const struct ph_shape *shape, size_t *rows_out, size_t *columns_out);

#endif
