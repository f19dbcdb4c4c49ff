/* Weight gradients that a library makes: all at once by its own threads in the fast mode (ph__gemm_create), and those of bf16
 * where it has instructions for them. Of bf16 some rows of dW at a time are one product, cut by shape alone, so that the
 * bits do not follow the number of threads. */
#include <stdatomic.h>
#include <string.h>

#include "kernel/gemm_context.h"

enum { LIBRARY_ROWS = 64 /* of dW for one product */ };

static struct ph_product whole_product(const struct ph_weight_gradient *wanted)
{
    return (struct ph_product){.rows = wanted->out_features,
        .columns = wanted->in_features,
        .inner = wanted->samples,
        .a_stride = wanted->out_features,
        .b_stride = wanted->in_features,
        .c_stride = wanted->in_features,
        .flags = PH_PRODUCT_A_TRANSPOSED};
}

static ph_status refused(void)
{
    return ph_fail(PH_ERROR_BUG, "gemm: %s refused to run a product", ph__gemm_library());
}

ph_status ph__weight_gradient_threaded(const struct ph_weight_gradient *wanted)
{
    const struct ph_product_operands operands = {.a = wanted->dy, .b = wanted->x, .c = wanted->dw};
    struct ph_product product = whole_product(wanted);
    struct ph_prepared prepared;
    product.flags |= PH_PRODUCT_THREADED;
    PH_TRY(ph__gemm_library_prepare(wanted->gemm->library, &product, NULL, &prepared));
    if (prepared.entry == NULL)
        ph__plain_product(&product, &operands);
    else if (ph__gemm_library_run(&prepared, 0, &operands) != PH_OK)
        return refused();
    if (wanted->db != NULL)
        ph__plain_column_sums(
            wanted->samples, wanted->out_features, wanted->out_features, wanted->dy, wanted->db);
    return PH_OK;
}

struct library_job {
    const struct ph_weight_gradient *wanted;
    struct ph_prepared full, rest; /* LIBRARY_ROWS rows of dW, and fewer */
    _Atomic int status;
};

/* The bias gradient of columns [first, first + width) of a dY of bf16; width <= LIBRARY_ROWS. */
static void sum_bias(const struct ph_weight_gradient *wanted, size_t first, size_t width)
{
    ph_real row[LIBRARY_ROWS];
    memset(wanted->db + first, 0, width * sizeof *wanted->db);
    for (size_t m = 0; m < wanted->samples; m++) {
        const uint16_t *dy = (const uint16_t *)wanted->dy + m * wanted->out_features + first;
        wanted->gemm->kernels->bf16_widen(width, dy, row);
        wanted->gemm->kernels->add_rows(1, width, row, wanted->db + first);
    }
}

static void library_task(void *argument, size_t task, size_t worker)
{
    struct library_job *library = argument;
    const struct ph_weight_gradient *wanted = library->wanted;
    const size_t first = task * LIBRARY_ROWS, left = wanted->out_features - first;
    const size_t rows = left < LIBRARY_ROWS ? left : LIBRARY_ROWS;
    const struct ph_product_operands operands = {.a = (const uint16_t *)wanted->dy + first,
        .b = wanted->x,
        .c = wanted->dw + first * wanted->in_features};
    const struct ph_prepared *prepared = rows == LIBRARY_ROWS ? &library->full : &library->rest;
    const ph_status status = ph__gemm_library_run(prepared, worker, &operands);
    if (status != PH_OK)
        atomic_store(&library->status, status);
    if (wanted->db != NULL)
        sum_bias(wanted, first, rows);
}

ph_status ph__weight_gradient_in_bf16(const struct ph_weight_gradient *wanted)
{
    struct library_job library = {.wanted = wanted};
    struct ph_product product = whole_product(wanted);
    product.flags |= PH_PRODUCT_BF16;
    product.rows = LIBRARY_ROWS;
    if (wanted->out_features >= LIBRARY_ROWS)
        PH_TRY(ph__gemm_library_prepare(wanted->gemm->library, &product, NULL, &library.full));
    product.rows = wanted->out_features % LIBRARY_ROWS;
    if (product.rows > 0)
        PH_TRY(ph__gemm_library_prepare(wanted->gemm->library, &product, NULL, &library.rest));
    const size_t num_tasks = (wanted->out_features + LIBRARY_ROWS - 1) / LIBRARY_ROWS;
    ph__parallel_for(wanted->gemm->team, num_tasks, library_task, &library);
    return atomic_load(&library.status) == PH_OK ? PH_OK : refused();
}
