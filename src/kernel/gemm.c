/* How products with packed weights, forward and backward-data, are cut into tasks: slices of rows. (The weight gradient:
 * weight_gradient.c.)
 *
 * All sizes below follow from the shape alone. Rows that do not fill a slice are cut into powers of two down to
 * MIN_SLICE and a rest, so that a shape needs a bounded number of primitives whatever the numbers of rows. */
#include "kernel/gemm.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/gemm_context.h"

#define NARROW 4          /* out_features up to which plain loops beat a library */
#define SHORT 32          /* in_features up to which our own kernel does */
#define MIN_SLICE 16      /* rows */
#define MAX_SLICE 512     /* rows */
#define SLICE_REALS 65536 /* of the output of one slice: 256 KiB, so that its activation finds it in cache */
#define ROW_WISE_BLOCK 96 /* rows of a row-wise product: its x and y stay in the second cache */
#define WANTED_TASKS 8    /* of one product, before slices get smaller or the batch is cut */
#define MAX_TAIL 7        /* of a piece of 1024: 512, 256, 128, 64, 32, 16 and a rest */

ph_status ph__gemm_create(struct ph_team *team, bool is_fast, struct ph_gemm **gemm_out)
{
    enum ph_isa isa;
    PH_TRY(ph__cpu_isa(&isa));
    struct ph_gemm *gemm = malloc(sizeof *gemm);
    if (gemm == NULL)
        return ph_fail(PH_ERROR_MEMORY, "gemm: cannot allocate the context");
    *gemm = (struct ph_gemm){.team = team, .is_fast = is_fast, .kernels = ph__kernels_for(isa)};
    const ph_status status = ph__gemm_library_create(ph__team_num_threads(team), &gemm->library);
    if (status != PH_OK) {
        free(gemm);
        return status;
    }
    *gemm_out = gemm;
    return PH_OK;
}

void ph__gemm_destroy(struct ph_gemm *gemm)
{
    if (gemm == NULL)
        return;
    ph__gemm_library_destroy(gemm->library);
    free(gemm);
}

uint64_t ph__gemm_creations(const struct ph_gemm *gemm)
{
    return ph__gemm_library_creations(gemm->library);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static bool is_narrow(size_t out_features)
{
    return out_features <= NARROW;
}

static ph_status prepare(struct ph_gemm *gemm, const struct ph_product *product, bool is_plain,
    const void *packed, struct ph_prepared *prepared_out)
{
    if (!is_plain)
        return ph__gemm_library_prepare(gemm->library, product, packed, prepared_out);
    *prepared_out = (struct ph_prepared){.product = *product};
    return PH_OK;
}

static ph_status run(
    const struct ph_prepared *prepared, size_t worker, const struct ph_product_operands *operands)
{
    if (prepared->entry != NULL)
        return ph__gemm_library_run(prepared, worker, operands);
    ph__plain_product(&prepared->product, operands);
    return PH_OK;
}

static ph_status finish(int status)
{
    return status == PH_OK ? PH_OK
                           : ph_fail(PH_ERROR_BUG, "gemm: %s refused to run a product", ph__gemm_library());
}

/* ---- packing -------------------------------------------------------------------------------------------------- */

/* Whose product is our own kernel's: what must be row-wise, and what has few inputs, where a library spends more on its
 * start than on the sums. Narrow layers need neither: the plain loops are row-wise as they stand. */
static bool is_own(const struct ph_gemm_weight_shape *shape)
{
    const bool is_short = !shape->is_transposed && shape->in_features <= SHORT;
    return (shape->is_row_wise || is_short) && !is_narrow(shape->out_features);
}

/* W (N,K) is B (N,K) of dX = dY W, and a transposed B (K,N) of Y = X W^T. */
static size_t packed_inner(const struct ph_gemm_weight_shape *shape)
{
    return shape->is_transposed ? shape->out_features : shape->in_features;
}

static size_t packed_columns(const struct ph_gemm_weight_shape *shape)
{
    return shape->is_transposed ? shape->in_features : shape->out_features;
}

ph_status ph__gemm_packed_bytes(
    struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t *bytes_out)
{
    if (is_own(shape)) {
        *bytes_out = ph__row_product_packed_reals(shape->out_features, shape->in_features) * sizeof(ph_real);
        return PH_OK;
    }
    if (!is_narrow(shape->out_features))
        return ph__gemm_library_packed_bytes(
            gemm->library, packed_inner(shape), packed_columns(shape), !shape->is_transposed, bytes_out);
    *bytes_out = shape->out_features * shape->in_features * sizeof(ph_real);
    return PH_OK;
}

ph_status ph__gemm_pack(
    struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, const ph_real *weight, void *packed)
{
    if (is_own(shape)) {
        ph__row_product_pack(shape->out_features, shape->in_features, weight, packed);
        return PH_OK;
    }
    if (!is_narrow(shape->out_features))
        return ph__gemm_library_pack(
            gemm->library, packed_inner(shape), packed_columns(shape), !shape->is_transposed, weight, packed);
    memcpy(packed, weight, shape->out_features * shape->in_features * sizeof *weight);
    return PH_OK;
}

/* ---- cutting a length ----------------------------------------------------------------------------------------- */

/* A length as num_full pieces of `full`, then num_tail shrinking ones. */
struct cut {
    size_t full, num_full, num_tail;
    size_t tail[MAX_TAIL + 1];
};

struct piece {
    size_t first, count;
    size_t kind; /* 0: a full one, else 1 + its place in the tail */
};

/* full is a power of two, at most MIN_SLICE * 2^MAX_TAIL, or the length itself. */
static struct cut cut_length(size_t length, size_t full)
{
    struct cut cut = {.full = full, .num_full = length / full};
    size_t rest = length % full;
    for (size_t size = full / 2; size >= MIN_SLICE; size /= 2) {
        if (rest >= size) {
            cut.tail[cut.num_tail++] = size;
            rest -= size;
        }
    }
    if (rest > 0)
        cut.tail[cut.num_tail++] = rest;
    return cut;
}

static size_t cut_pieces(const struct cut *cut)
{
    return cut->num_full + cut->num_tail;
}

static struct piece cut_piece(const struct cut *cut, size_t index)
{
    if (index < cut->num_full)
        return (struct piece){.first = index * cut->full, .count = cut->full};
    struct piece piece = {.first = cut->num_full * cut->full, .kind = index - cut->num_full + 1};
    for (size_t i = 0; i + 1 < piece.kind; i++)
        piece.first += cut->tail[i];
    piece.count = cut->tail[piece.kind - 1];
    return piece;
}

/* ---- forward and backward-data: slices of rows ------------------------------------------------------------------ */

struct row_job {
    struct ph_gemm *gemm;
    struct cut cut;
    struct ph_prepared prepared[MAX_TAIL + 2]; /* by kind of piece */
    struct ph_product_operands operands;
    enum ph_activation activation;
    const ph_real *activated; /* backward: what the activation made, as large as C; NULL: forward */
    _Atomic int status;
};

/* The power of two that gives WANTED_TASKS slices, none too small to be fast or too large for the cache. */
static size_t slice_rows(size_t rows, size_t columns)
{
    size_t slice = 2 * MIN_SLICE;
    while (slice < MAX_SLICE && 2 * slice * WANTED_TASKS <= rows &&
           (slice < 128 || 2 * slice * columns <= SLICE_REALS))
        slice *= 2;
    return slice;
}

static void activate(const struct ph_gemm *gemm, enum ph_activation activation, size_t n, ph_real *y)
{
    if (activation == PH_RELU)
        gemm->kernels->relu(n, y, y);
    else if (activation == PH_SIGMOID)
        gemm->kernels->sigmoid(n, y, y);
}

/* The activation of `rows` rows of C from `first` on, or its derivative's product with them. */
static void activate_rows(const struct row_job *job, size_t columns, size_t first, size_t rows)
{
    const struct ph_kernels *kernels = job->gemm->kernels;
    ph_real *c = job->operands.c + first * columns;
    if (job->activated == NULL)
        activate(job->gemm, job->activation, rows * columns, c);
    else if (job->activation == PH_RELU)
        kernels->relu_backward(rows * columns, job->activated + first * columns, c, c);
    else if (job->activation == PH_SIGMOID)
        kernels->sigmoid_backward(rows * columns, job->activated + first * columns, c, c);
}

static void row_task(void *argument, size_t task, size_t worker)
{
    struct row_job *job = argument;
    const struct piece piece = cut_piece(&job->cut, task);
    const struct ph_prepared *prepared = &job->prepared[piece.kind];
    struct ph_product_operands operands = job->operands;
    operands.a += piece.first * prepared->product.a_stride;
    operands.c += piece.first * prepared->product.c_stride;
    const ph_status status = run(prepared, worker, &operands);
    if (status != PH_OK)
        atomic_store(&job->status, status);
    activate_rows(job, prepared->product.columns, piece.first, piece.count);
}

static void activation_task(void *argument, size_t task, size_t worker)
{
    (void)worker;
    const struct row_job *job = argument;
    const struct piece piece = cut_piece(&job->cut, task);
    activate_rows(job, job->prepared[0].product.columns, piece.first, piece.count);
}

static ph_status run_rows_threaded(struct row_job *job, size_t rows, struct ph_product product)
{
    product.rows = rows;
    product.flags |= PH_PRODUCT_THREADED;
    PH_TRY(prepare(job->gemm, &product, false, job->operands.b, &job->prepared[0]));
    PH_TRY(finish(run(&job->prepared[0], 0, &job->operands)));
    if (job->activation != PH_IDENTITY)
        ph__parallel_for(job->gemm->team, cut_pieces(&job->cut), activation_task, job);
    return PH_OK;
}

static ph_status run_rows(struct row_job *job, size_t rows, struct ph_product product, bool is_plain)
{
    if (rows == 0)
        return PH_OK;
    job->cut = cut_length(rows, slice_rows(rows, product.columns));
    if (job->gemm->is_fast && !is_plain)
        return run_rows_threaded(job, rows, product);
    for (size_t kind = job->cut.num_full > 0 ? 0 : 1; kind <= job->cut.num_tail; kind++) {
        product.rows = kind == 0 ? job->cut.full : job->cut.tail[kind - 1];
        PH_TRY(prepare(job->gemm, &product, is_plain, job->operands.b, &job->prepared[kind]));
    }
    ph__parallel_for(job->gemm->team, cut_pieces(&job->cut), row_task, job);
    return finish(atomic_load(&job->status));
}

/* ---- row-wise products: blocks of rows ------------------------------------------------------------------------- */

struct row_wise_job {
    const struct ph_gemm *gemm;
    struct ph_row_product_args product;
    enum ph_activation activation; /* that the product does not do itself */
};

static void row_wise_task(void *argument, size_t task, size_t worker)
{
    (void)worker;
    const struct row_wise_job *job = argument;
    struct ph_row_product_args product = job->product;
    const size_t first = task * ROW_WISE_BLOCK;
    product.rows = min_size(ROW_WISE_BLOCK, product.rows - first);
    product.x += first * product.in_features;
    product.y += first * product.out_features;
    job->gemm->kernels->row_product(&product);
    activate(job->gemm, job->activation, product.rows * product.out_features, product.y);
}

ph_status ph__gemm_forward(struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t rows,
    const ph_real *x, const void *packed, const ph_real *bias, enum ph_activation activation, ph_real *y)
{
    assert(!shape->is_transposed);
    const size_t n = shape->out_features, k = shape->in_features;
    if (is_own(shape)) {
        const bool is_rectified = activation == PH_RELU;
        struct row_wise_job own = {
            gemm, {rows, k, n, x, packed, bias, y, is_rectified}, is_rectified ? PH_IDENTITY : activation};
        ph__parallel_for(gemm->team, divide_up(rows, ROW_WISE_BLOCK), row_wise_task, &own);
        return PH_OK;
    }
    struct row_job job = {
        .gemm = gemm, .operands = {.a = x, .b = packed, .bias = bias, .c = y}, .activation = activation};
    const struct ph_product product = {.columns = n,
        .inner = k,
        .a_stride = k,
        .c_stride = n,
        .flags = PH_PRODUCT_B_PACKED | PH_PRODUCT_B_TRANSPOSED | (bias != NULL ? PH_PRODUCT_BIAS : 0)};
    return run_rows(&job, rows, product, is_narrow(n));
}

ph_status ph__gemm_backward_data(struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape, size_t rows,
    const ph_real *dy, const void *packed, enum ph_activation activation, const ph_real *x, ph_real *dx)
{
    assert(shape->is_transposed && (activation == PH_IDENTITY || x != NULL));
    const size_t n = shape->out_features, k = shape->in_features;
    struct row_job job = {
        .gemm = gemm, .operands = {.a = dy, .b = packed, .c = dx}, .activation = activation, .activated = x};
    const struct ph_product product = {
        .columns = k, .inner = n, .a_stride = n, .c_stride = k, .flags = PH_PRODUCT_B_PACKED};
    return run_rows(&job, rows, product, is_narrow(n));
}
