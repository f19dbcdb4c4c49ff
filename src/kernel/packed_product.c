/* Products with packed weights, forward and backward-data, cut into tasks: slices of rows. (The weight
 * gradient: weight_gradient.c.)
 *
 * All sizes below follow from the shape alone. Rows that do not fill a slice are cut into powers of two down
 * to PH_MIN_PIECE and a rest, so a shape needs a bounded number of primitives for all numbers of rows. */
#include "kernel/gemm.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "kernel/gemm_context.h"
#include "kernel/kernel.h"

/* ---- pieces ---- */

struct ph__cut ph__cut_length(size_t length, size_t full)
{
    struct ph__cut cut = {.full = full, .num_full = length / full};
    size_t rest = length % full;
    for (size_t size = full / 2; size >= PH_MIN_PIECE; size /= 2) {
        if (rest >= size) {
            cut.tail[cut.num_tail++] = size;
            rest -= size;
        }
    }
    if (rest > 0)
        cut.tail[cut.num_tail++] = rest;
    return cut;
}

size_t ph__cut_pieces(const struct ph__cut *cut)
{
    return cut->num_full + cut->num_tail;
}

struct ph__piece ph__cut_piece(const struct ph__cut *cut, size_t index)
{
    if (index < cut->num_full)
        return (struct ph__piece){.first = index * cut->full, .count = cut->full};
    struct ph__piece piece = {.first = cut->num_full * cut->full, .kind = index - cut->num_full + 1};
    for (size_t i = 0; i + 1 < piece.kind; i++)
        piece.first += cut->tail[i];
    piece.count = cut->tail[piece.kind - 1];
    return piece;
}

/* ---- rows of bf16 ---- */

/* Slices of rows on their way through a product of reals whose arrays may be bf16. A slice is widened into a
 * worker's scratch before the product, and its result rounded after it, while both are in the cache. Arrays
 * of reals are read and written in place. */
struct row_stage {
    const struct ph__kernels *kernels;
    const struct ph__gemm_args *args;
    size_t in_columns, out_columns; /* of args->x, of args->y */
    size_t rows;                    /* of the largest slice */
    bool is_bf16;                   /* args->x is bf16 */
    bool is_widened;                /* ... and the product takes reals */
};

/* Reals of a worker's scratch for the result; the widened input follows. */
static size_t output_reals(const struct row_stage *stage)
{
    return stage->args->is_y_bf16 ? stage->rows * stage->out_columns : 0;
}

static size_t widened_reals(const struct row_stage *stage)
{
    const size_t input = stage->is_widened ? stage->rows * stage->in_columns : 0;
    const size_t activated = stage->args->is_activated_bf16 ? stage->rows * stage->out_columns : 0;
    return input > activated ? input : activated;
}

/* Returns the reals of each worker's scratch. A worker's slices follow one another, each through the
 * functions below in order. */
static size_t stage_reals(const struct row_stage *stage)
{
    return output_reals(stage) + widened_reals(stage);
}

static ph_real *stage_scratch(const struct row_stage *stage, size_t worker)
{
    return (ph_real *)stage->args->scratch + worker * stage_reals(stage);
}

/* Returns the input of the product of slice [first, first + rows). */
static const void *stage_input(const struct row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->in_columns;
    if (!stage->is_bf16)
        return (const ph_real *)stage->args->x + first * columns;
    const uint16_t *x = (const uint16_t *)stage->args->x + first * columns;
    if (!stage->is_widened)
        return x;
    ph_real *reals = stage_scratch(stage, worker) + output_reals(stage);
    stage->kernels->bf16_widen(rows * columns, x, reals);
    return reals;
}

/* Returns the array of the slice's finished reals. */
static ph_real *stage_result(const struct row_stage *stage, size_t first, size_t worker)
{
    return stage->args->is_y_bf16 ? stage_scratch(stage, worker)
                                  : (ph_real *)stage->args->y + first * stage->out_columns;
}

/* Returns the array that the slice's product writes. */
static ph_real *stage_output(const struct row_stage *stage, size_t first, size_t worker)
{
    return stage->args->raw != NULL ? stage->args->raw + first * stage->out_columns
                                    : stage_result(stage, first, worker);
}

/* Returns the slice of args->activated, as reals. Overwrites the widened input. */
static const ph_real *stage_activated(const struct row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->out_columns;
    if (!stage->args->is_activated_bf16)
        return (const ph_real *)stage->args->activated + first * columns;
    ph_real *reals = stage_scratch(stage, worker) + output_reals(stage);
    stage->kernels->bf16_widen(
        rows * columns, (const uint16_t *)stage->args->activated + first * columns, reals);
    return reals;
}

/* Rounds the slice's result into args->y where that is bf16. */
static void stage_finish(const struct row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->out_columns;
    if (stage->args->is_y_bf16)
        stage->kernels->bf16_narrow(
            rows * columns, stage_scratch(stage, worker), (uint16_t *)stage->args->y + first * columns);
}

/* ---- the context ---- */

#define NARROW 4              /* columns of a product up to which it is done column by column */
#define SHORT 32              /* terms of a sum up to which our own kernel beats a library */
#define MAX_SLICE 512         /* rows */
#define SLICE_REALS 65536     /* of one slice's output: 256 KiB, still in cache for its activation */
#define STAGE_REALS (1 << 17) /* of a widened slice's input and output together: half of a second cache */
#define LINE_BYTES 64         /* of the processor's cache */
#define ROW_WISE_BLOCK 96     /* rows of a row-wise product: its x and y stay in the second cache */
#define WANTED_TASKS 8        /* of one product, before slices get smaller or the batch is cut */

ph_status ph__gemm_create(struct ph__team *team, bool is_fast, struct ph__gemm **gemm_out)
{
    enum ph__isa isa;
    PH_TRY(ph__cpu_isa(&isa));
    struct ph__gemm *gemm = malloc(sizeof *gemm);
    if (gemm == NULL)
        return ph__out_of_memory("gemm: the context");
    *gemm = (struct ph__gemm){.team = team,
        .is_fast = is_fast,
        .has_bf16 = isa == PH_ISA_AVX512 && ph__gemm_library_has_bf16(),
        .has_int8_dot = isa == PH_ISA_AVX512 && ph__cpu_has_int8_dot(),
        .kernels = ph__kernels_for(isa)};
    const ph_status status =
        ph__gemm_library_create(ph__team_num_threads(team), ph__team_library_threads(team), &gemm->library);
    if (status != PH_OK) {
        free(gemm);
        return status;
    }
    *gemm_out = gemm;
    return PH_OK;
}

void ph__gemm_destroy(struct ph__gemm *gemm)
{
    if (gemm == NULL)
        return;
    ph__gemm_library_destroy(gemm->library);
    free(gemm);
}

uint64_t ph__gemm_creations(const struct ph__gemm *gemm)
{
    return ph__gemm_library_creations(gemm->library);
}

static ph_status run(
    const struct ph__prepared *prepared, size_t worker, const struct ph__product_operands *operands)
{
    if (prepared->entry != NULL)
        return ph__gemm_library_run(prepared, worker, operands);
    ph__plain_product(&prepared->product, operands);
    return PH_OK;
}

static ph_status finish(int status)
{
    return status == PH_OK ? PH_OK
                           : ph_fail(PH_ERROR_BUG, "gemm: %s failed to run a product", ph__gemm_library());
}

/* ---- packing ---- */

/* Inner size of the packed matrix: W (N,K) is B (N,K) of dX = dY W, and, transposed, B (K,N) of Y = X W^T. */
static size_t packed_inner(const struct ph__gemm_weight_shape *shape)
{
    return shape->is_transposed ? shape->out_features : shape->in_features;
}

static size_t packed_columns(const struct ph__gemm_weight_shape *shape)
{
    return shape->is_transposed ? shape->in_features : shape->out_features;
}

/* Returns true for layers of few outputs; their rows do not depend on each other either. */
static bool is_narrow(const struct ph__gemm_weight_shape *shape)
{
    return packed_columns(shape) <= NARROW;
}

/* Returns true where the row-wise kernel makes the product: where the shape says so, and where sums are
 * short, since a library spends more on its start. */
static bool is_row_wise(const struct ph__gemm_weight_shape *shape)
{
    return (shape->is_row_wise || packed_inner(shape) <= SHORT) && !is_narrow(shape);
}

/* Returns true where our own kernels make the product, not a library. */
static bool is_own(const struct ph__gemm_weight_shape *shape)
{
    return shape->is_int8 || is_row_wise(shape) || is_narrow(shape);
}

bool ph__gemm_takes_int8(size_t out_features, size_t in_features, bool is_transposed)
{
    const struct ph__gemm_weight_shape shape = {
        .out_features = out_features, .in_features = in_features, .is_transposed = is_transposed};
    return !is_narrow(&shape) && packed_inner(&shape) <= PH_INT8_MOST_TERMS;
}

/* Returns true when the weight is packed as bf16; otherwise it is packed as reals, which for bf16 are rounded
 * in place. */
static bool is_packed_bf16(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    return shape->is_bf16 && gemm->has_bf16 && !is_own(shape);
}

static struct ph__packing packing_of(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    return (struct ph__packing){.inner = packed_inner(shape),
        .columns = packed_columns(shape),
        .is_transposed = !shape->is_transposed,
        .is_bf16 = is_packed_bf16(gemm, shape)};
}

ph_status ph__gemm_packed_bytes(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, size_t *bytes_out)
{
    const struct ph__packing packing = packing_of(gemm, shape);
    const size_t weights = shape->out_features * shape->in_features;
    if (shape->is_int8)
        *bytes_out = ph__int8_packed_bytes(packing.columns, packing.inner);
    else if (is_row_wise(shape))
        *bytes_out = ph__row_product_packed_bytes(packing.columns, packing.inner, shape->is_bf16);
    else if (is_narrow(shape))
        *bytes_out = weights * sizeof(ph_real);
    else
        PH_TRY(ph__gemm_library_packed_bytes(gemm->library, &packing, bytes_out));
    return PH_OK;
}

/* Packs one column after the other, each as long as the sums. */
static void pack_narrow(const struct ph__packing *packing, const ph_real *weight, ph_real *packed)
{
    const size_t column_step = packing->is_transposed ? packing->inner : 1,
                 inner_step = packing->is_transposed ? 1 : packing->columns;
    for (size_t column = 0; column < packing->columns; column++)
        for (size_t l = 0; l < packing->inner; l++)
            *packed++ = weight[column * column_step + l * inner_step];
}

/* Rounds reals of any layout to bf16 in place. */
static void round_to_bf16(const struct ph__kernels *kernels, size_t n, ph_real *reals)
{
    uint16_t words[1024];
    for (size_t i = 0; i < n; i += 1024) {
        const size_t count = ph__min(1024, n - i);
        kernels->bf16_narrow(count, reals + i, words);
        kernels->bf16_widen(count, words, reals + i);
    }
}

ph_status ph__gemm_pack(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const ph_real *weight, void *packed)
{
    const struct ph__packing packing = packing_of(gemm, shape);
    size_t bytes;
    PH_TRY(ph__gemm_packed_bytes(gemm, shape, &bytes));
    if (shape->is_int8)
        gemm->kernels->int8_pack(&(struct ph__int8_pack_args){
            packing.columns, packing.inner, weight, shape->is_transposed, packed});
    else if (is_row_wise(shape))
        ph__row_product_pack(
            packing.columns, packing.inner, shape->is_transposed, shape->is_bf16, weight, packed);
    else if (is_narrow(shape))
        pack_narrow(&packing, weight, packed);
    else
        PH_TRY(ph__gemm_library_pack(gemm->library, &packing, weight, packed));
    if (shape->is_bf16 && !packing.is_bf16 && !is_row_wise(shape))
        round_to_bf16(gemm->kernels, bytes / sizeof *weight, packed);
    return PH_OK;
}

/* ---- forward and backward-data: slices of rows ---- */

struct row_job {
    struct ph__gemm *gemm;
    struct row_stage stage;
    enum ph_activation activation;           /* left to do after the product */
    bool is_narrow, is_weight_bf16, is_int8; /* of a product by our own kernels */
    struct ph__cut cut;
    struct ph__prepared prepared[PH_MAX_TAIL + 2]; /* by kind of piece */
    _Atomic int status;
};

/* Returns the power of two that gives WANTED_TASKS slices, none too small to be fast or too large to
 * cache. */
static size_t slice_rows(size_t rows, size_t columns, size_t most)
{
    size_t slice = 2 * PH_MIN_PIECE;
    while (
        slice < MAX_SLICE && 2 * slice * WANTED_TASKS <= rows && (slice < 128 || 2 * slice * columns <= most))
        slice *= 2;
    return slice;
}

static size_t stage_rows(const struct row_stage *stage)
{
    return stage->is_bf16 ? slice_rows(stage->args->rows, stage->in_columns + stage->out_columns, STAGE_REALS)
                          : slice_rows(stage->args->rows, stage->out_columns, SLICE_REALS);
}

/* y = activation(x), of a block norm of x where that is wanted. y may be x. */
static void activate(const struct row_job *job, size_t rows, const ph_real *x, ph_real *y)
{
    const struct ph__kernels *kernels = job->gemm->kernels;
    const size_t columns = job->stage.out_columns, n = rows * columns;
    const bool is_normed = job->stage.args->is_block_normed;
    if (is_normed)
        kernels->block_norm(rows, columns, job->activation == PH_HARD_SWISH, x, y);
    else if (job->activation == PH_HARD_SWISH)
        kernels->hard_swish(n, x, y);
    if (job->activation == PH_RELU)
        kernels->relu(n, is_normed ? y : x, y);
    else if (job->activation == PH_SIGMOID)
        kernels->sigmoid(n, is_normed ? y : x, y);
}

/* Passes dx back through the activation, and the block norm, that `activated` tells of. */
static void activate_backward(const struct row_job *job, size_t rows, const ph_real *activated, ph_real *dx)
{
    const struct ph__kernels *kernels = job->gemm->kernels;
    const size_t columns = job->stage.out_columns, n = rows * columns;
    if (job->stage.args->is_block_normed)
        kernels->block_norm_backward(rows, columns, job->activation == PH_HARD_SWISH, activated, dx, dx);
    else if (job->activation == PH_HARD_SWISH)
        kernels->hard_swish_backward(n, activated, dx, dx);
    else if (job->activation == PH_RELU)
        kernels->relu_backward(n, activated, dx, dx);
    else if (job->activation == PH_SIGMOID)
        kernels->sigmoid_backward(n, activated, dx, dx);
}

/* Returns true where something follows the product. */
static bool has_epilogue(const struct row_job *job)
{
    return job->activation != PH_IDENTITY || job->stage.args->is_block_normed;
}

/* Finishes a slice of C: applies norm and activation, or their derivatives, and puts the result into place.
 */
static void finish_slice(const struct row_job *job, const struct ph__piece *piece, size_t worker)
{
    const struct row_stage *stage = &job->stage;
    ph_real *result = stage_result(stage, piece->first, worker);
    if (stage->args->activated == NULL)
        activate(job, piece->count, stage_output(stage, piece->first, worker), result);
    else if (has_epilogue(job))
        activate_backward(
            job, piece->count, stage_activated(stage, piece->first, piece->count, worker), result);
    stage_finish(stage, piece->first, piece->count, worker);
}

static void row_task(void *argument, size_t task, size_t worker)
{
    struct row_job *job = argument;
    const struct ph__piece piece = ph__cut_piece(&job->cut, task);
    const struct ph__product_operands operands = {
        .a = stage_input(&job->stage, piece.first, piece.count, worker),
        .b = job->stage.args->packed,
        .bias = job->stage.args->bias,
        .c = stage_output(&job->stage, piece.first, worker)};
    const ph_status status = run(&job->prepared[piece.kind], worker, &operands);
    if (status != PH_OK)
        atomic_store(&job->status, status);
    finish_slice(job, &piece, worker);
}

static void finish_task(void *argument, size_t task, size_t worker)
{
    const struct row_job *job = argument;
    const struct ph__piece piece = ph__cut_piece(&job->cut, task);
    finish_slice(job, &piece, worker);
}

static ph_status run_rows_threaded(struct row_job *job, struct ph__product product)
{
    const struct ph__gemm_args *args = job->stage.args;
    const struct ph__product_operands operands = {
        .a = args->x, .b = args->packed, .bias = args->bias, .c = stage_output(&job->stage, 0, 0)};
    product.rows = args->rows;
    product.flags |= PH_PRODUCT_THREADED;
    PH_TRY(ph__gemm_library_prepare(job->gemm->library, &product, args->packed, &job->prepared[0]));
    PH_TRY(finish(run(&job->prepared[0], 0, &operands)));
    if (has_epilogue(job))
        ph__parallel_for(job->gemm->team, ph__cut_pieces(&job->cut), finish_task, job);
    return PH_OK;
}

static ph_status run_rows(struct row_job *job, struct ph__product product)
{
    const struct ph__gemm_args *args = job->stage.args;
    job->stage.rows = stage_rows(&job->stage);
    job->cut = ph__cut_length(args->rows, job->stage.rows);
    if (args->rows == 0)
        return PH_OK;
    if (job->gemm->is_fast && !job->stage.is_bf16)
        return run_rows_threaded(job, product);
    for (size_t kind = job->cut.num_full > 0 ? 0 : 1; kind <= job->cut.num_tail; kind++) {
        product.rows = kind == 0 ? job->cut.full : job->cut.tail[kind - 1];
        PH_TRY(ph__gemm_library_prepare(job->gemm->library, &product, args->packed, &job->prepared[kind]));
    }
    ph__parallel_for(job->gemm->team, ph__cut_pieces(&job->cut), row_task, job);
    return finish(atomic_load(&job->status));
}

/* ---- products of our own: blocks of rows ---- */

/* Returns the bytes of a worker's scratch for the levels and scales of a block of rows. */
static size_t levels_bytes(size_t in_columns)
{
    return ph__round_up(ROW_WISE_BLOCK * (ph__int8_stride(in_columns) + sizeof(float)), LINE_BYTES);
}

/* Makes bytes of a block of rows, and multiplies them. */
static void multiply_bytes(const struct row_job *job, const struct ph__piece *piece, size_t worker)
{
    const struct row_stage *stage = &job->stage;
    const struct ph__gemm_args *args = stage->args;
    const struct ph__kernels *kernels = job->gemm->kernels;
    const size_t inner = stage->in_columns, stride = ph__int8_stride(inner);
    float *scales = (float *)(void *)((char *)args->scratch + worker * levels_bytes(inner));
    int8_t *levels = (int8_t *)(scales + ROW_WISE_BLOCK);
    const ph_real *x = stage_input(stage, piece->first, piece->count, worker);
    for (size_t r = 0; r < piece->count; r++)
        scales[r] = kernels->int8_narrow(inner, x + r * inner, levels + r * stride);
    kernels->int8_product(&(struct ph__int8_product_args){.rows = piece->count,
        .in_features = inner,
        .out_features = stage->out_columns,
        .x = levels,
        .x_scales = scales,
        .packed = args->packed,
        .bias = args->bias,
        .y = stage_output(stage, piece->first, worker),
        .is_rectified = job->activation != args->activation,
        .has_dot = job->gemm->has_int8_dot});
    finish_slice(job, piece, worker);
}

static void own_task(void *argument, size_t task, size_t worker)
{
    const struct row_job *job = argument;
    const struct row_stage *stage = &job->stage;
    const struct ph__gemm_args *args = stage->args;
    const size_t first = task * ROW_WISE_BLOCK;
    const struct ph__piece piece = {.first = first, .count = ph__min(ROW_WISE_BLOCK, args->rows - first)};
    if (job->is_int8) {
        multiply_bytes(job, &piece, worker);
        return;
    }
    const struct ph__row_product_args product = {.rows = piece.count,
        .in_features = stage->in_columns,
        .out_features = stage->out_columns,
        .x = stage_input(stage, first, piece.count, worker),
        .packed = args->packed,
        .bias = args->bias,
        .y = stage_output(stage, first, worker),
        .is_rectified = job->activation != args->activation,
        .is_bf16 = job->is_weight_bf16};
    if (job->is_narrow)
        job->gemm->kernels->narrow_product(product.rows, product.in_features, product.out_features, product.x,
            product.packed, product.bias, product.y);
    else
        job->gemm->kernels->row_product(&product);
    finish_slice(job, &piece, worker);
}

/* Runs the product by our own kernels. The row-wise kernel applies a ReLU itself. */
static ph_status run_own(struct row_job *job, const struct ph__gemm_weight_shape *shape)
{
    const struct ph__gemm_args *args = job->stage.args;
    job->is_narrow = is_narrow(shape) && !shape->is_int8;
    job->is_int8 = shape->is_int8;
    job->is_weight_bf16 = shape->is_bf16;
    if (!job->is_narrow && args->activated == NULL && args->activation == PH_RELU && !args->is_block_normed)
        job->activation = PH_IDENTITY;
    ph__parallel_for(job->gemm->team, ph__divide_up(args->rows, ROW_WISE_BLOCK), own_task, job);
    return PH_OK;
}

/* ---- the products ---- */

static struct row_stage stage_of(
    const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args)
{
    const bool is_transposed = shape->is_transposed, is_x_bf16 = shape->is_bf16 && !shape->is_row_wise;
    return (struct row_stage){.kernels = gemm->kernels,
        .args = args,
        .in_columns = is_transposed ? shape->out_features : shape->in_features,
        .out_columns = is_transposed ? shape->in_features : shape->out_features,
        .rows = ROW_WISE_BLOCK,
        .is_bf16 = is_x_bf16,
        .is_widened = is_x_bf16 && !is_packed_bf16(gemm, shape)};
}

/* Counts the most rows that a slice can have, with every array that may be bf16. */
size_t ph__gemm_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    const struct ph__gemm_args args = {
        .rows = SIZE_MAX / 2, .is_y_bf16 = true, .is_activated_bf16 = shape->is_transposed};
    struct row_stage stage = stage_of(gemm, shape, &args);
    if (shape->is_int8)
        return ph__team_num_threads(gemm->team) * levels_bytes(stage.in_columns);
    if (!is_own(shape))
        stage.rows = stage_rows(&stage);
    return stage.is_bf16 ? ph__team_num_threads(gemm->team) * stage_reals(&stage) * sizeof(ph_real) : 0;
}

ph_status ph__gemm_forward(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args)
{
    assert(!shape->is_transposed && args->activated == NULL);
    const size_t n = shape->out_features, k = shape->in_features;
    struct row_job job = {.gemm = gemm, .stage = stage_of(gemm, shape, args), .activation = args->activation};
    if (is_own(shape))
        return run_own(&job, shape);
    const struct ph__product product = {.columns = n,
        .inner = k,
        .a_stride = k,
        .c_stride = n,
        .flags = PH_PRODUCT_B_PACKED | PH_PRODUCT_B_TRANSPOSED | (args->bias != NULL ? PH_PRODUCT_BIAS : 0) |
                 (is_packed_bf16(gemm, shape) ? PH_PRODUCT_BF16 : 0)};
    return run_rows(&job, product);
}

ph_status ph__gemm_backward_data(
    struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape, const struct ph__gemm_args *args)
{
    assert(shape->is_transposed &&
           ((args->activation == PH_IDENTITY && !args->is_block_normed) || args->activated != NULL));
    const size_t n = shape->out_features, k = shape->in_features;
    struct row_job job = {.gemm = gemm, .stage = stage_of(gemm, shape, args), .activation = args->activation};
    if (is_own(shape))
        return run_own(&job, shape);
    const struct ph__product product = {.columns = k,
        .inner = n,
        .a_stride = n,
        .c_stride = k,
        .flags = PH_PRODUCT_B_PACKED | (is_packed_bf16(gemm, shape) ? PH_PRODUCT_BF16 : 0)};
    return run_rows(&job, product);
}
