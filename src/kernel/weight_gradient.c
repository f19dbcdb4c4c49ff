/* Weight gradients: dW = dY^T X by our own kernel, in which each number is one sum over the samples in order.
 * So the bits depend on the instruction set alone, and the work may be cut at will, even by the number of
 * threads. A library sums over blocks of its own choice, which depend on its threads.
 *
 * The product C (rows, columns) = A^T B is dW (N,K), A = dY, B = X, or, where a row of dW is short and
 * shorter than its column, dW^T (K,N), which is then transposed. A task makes one tile of C and goes through
 * the samples in chunks. Each chunk is copied into panels of A and B, sample by sample, so memory is read in
 * order. A panel of B stays in the first cache while all panels of A pass from the second; each makes a block
 * of C with it, held in registers, while the next block of C is fetched. So C passes the caches once per
 * chunk: long chunks make that cheap, and a tile need not fit into the second cache. Tiles in one column copy
 * the same B, tiles in one row the same A; tiles are cut to copy as little as possible.
 *
 * Copying does not pay where C is small: each copied number then serves few sums. There A is read in place,
 * and so is B where its lines spread over all sets of the first cache. C stays in the second cache, so chunks
 * may be short enough for A and B to stay as well. A C of few rows has all of them summed at once: each
 * number of B is read once, from memory. The bias gradient is summed in the same pass over the samples.
 *
 * Arrays of bf16 are widened row by row, on their way into panels where C is large. Products left to a
 * library come first in this file. */
#include <stdatomic.h>
#include <string.h>

#include "base/sizes.h"
#include "kernel/gemm_context.h"

/* ---- by a library ---- */

/* The library makes weight gradients whole, by its own threads, in the fast mode (ph__gemm_create), and those
 * of bf16 where it has instructions for them. For bf16 each product makes some rows of dW, cut by shape
 * alone, so that the bits do not depend on the number of threads. */

/* A gradient left to the library: dw (N,K) = dy (M,N)^T x (M,K); db (N) = column sums of dy, or NULL. */
struct library_gradient {
    const struct ph__gemm *gemm;
    size_t samples, out_features, in_features; /* M, N, K; M > 0 */
    const void *x, *dy;
    ph_real *dw, *db;
};

enum { LIBRARY_ROWS = 64 /* of dW per product */ };

static struct ph__product whole_product(const struct library_gradient *wanted)
{
    return (struct ph__product){.rows = wanted->out_features,
        .columns = wanted->in_features,
        .inner = wanted->samples,
        .a_stride = wanted->out_features,
        .b_stride = wanted->in_features,
        .c_stride = wanted->in_features,
        .flags = PH_PRODUCT_A_TRANSPOSED};
}

static ph_status refused(void)
{
    return ph_fail(PH_ERROR_BUG, "gemm: %s failed to run a product", ph__gemm_library());
}

/* Makes a gradient of reals by the library's own threads: its bits depend on their number. */
static ph_status gradient_by_threads(const struct library_gradient *wanted)
{
    const struct ph__product_operands operands = {.a = wanted->dy, .b = wanted->x, .c = wanted->dw};
    struct ph__product product = whole_product(wanted);
    struct ph__prepared prepared;
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
    const struct library_gradient *wanted;
    struct ph__prepared full, rest; /* LIBRARY_ROWS rows of dW, and fewer */
    _Atomic int status;
};

/* Sums the bias gradient of columns [first, first + width) of dY in bf16; width <= LIBRARY_ROWS. */
static void sum_bias(const struct library_gradient *wanted, size_t first, size_t width)
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
    const struct library_gradient *wanted = library->wanted;
    const size_t first = task * LIBRARY_ROWS, left = wanted->out_features - first;
    const size_t rows = left < LIBRARY_ROWS ? left : LIBRARY_ROWS;
    const struct ph__product_operands operands = {.a = (const uint16_t *)wanted->dy + first,
        .b = wanted->x,
        .c = wanted->dw + first * wanted->in_features};
    const struct ph__prepared *prepared = rows == LIBRARY_ROWS ? &library->full : &library->rest;
    const ph_status status = ph__gemm_library_run(prepared, worker, &operands);
    if (status != PH_OK)
        atomic_store(&library->status, status);
    if (wanted->db != NULL)
        sum_bias(wanted, first, rows);
}

/* Makes a gradient of bf16; the library has_bf16. */
static ph_status gradient_in_bf16(const struct library_gradient *wanted)
{
    struct library_job library = {.wanted = wanted};
    struct ph__product product = whole_product(wanted);
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

/* ---- by our own kernel ---- */

enum {
    MAX_TILE_SIDES = 1088, /* rows + columns: a chunk of both, in panels, fills most of the second cache */
    MAX_CUT = 64,          /* tiles in a row or a column of tiles */
    TRANSPOSED_ROWS = 16,  /* of dW per task: one cache line of dW^T */
    LINE_REALS = 64 / sizeof(ph_real),
    GAP_REALS = LINE_REALS, /* between panels, so that they begin in different sets of the first cache */
    CROWDED_REALS = 512,    /* rows of B this far apart, or a multiple, share the sets of the first cache */
    SMALL_REALS = 5 << 14,  /* of C: 320 KiB, which leaves room in the second cache */
};

/* Order of the work on a tile: in blocks of rows x columns, over a chunk of samples at a time. */
struct order {
    size_t chunk, rows, columns;
    size_t fetched_samples; /* prefetch distance of B */
    bool is_c_fetched;      /* set when C is fetched a block ahead */
};
static const struct order large_order = {
    .chunk = 192, .rows = PH_WEIGHT_PANEL_ROWS, .columns = PH_WEIGHT_PANEL_COLUMNS, .is_c_fetched = true};
static const struct order small_order = {
    .chunk = 64, .rows = PH_WEIGHT_FEW_ROWS, .columns = PH_WEIGHT_WIDE_COLUMNS};
static const struct order thin_order = {
    .chunk = 16, .rows = PH_WEIGHT_MOST_ROWS, .columns = PH_WEIGHT_WIDE_COLUMNS, .fetched_samples = 16};

/* The place where blocks read an operand: in its own array, in widened rows, or in panels. */
enum place { IN_PLACE, IN_ROWS, IN_PANELS };

/* A or B: (samples, width) of reals or bf16, of which each tile takes `tile` columns. */
struct operand {
    const void *data;
    size_t width, tile;
    enum place place;
    size_t stride;      /* reals from one sample to the next in `place`; of panels their columns */
    size_t step;        /* reals from one block's columns to the next block's */
    size_t chunk_reals; /* of scratch: a tile's copy of a chunk */
};

struct weight_job {
    const struct ph__gemm *gemm;
    bool is_bf16;
    size_t samples, out_features, in_features;
    const void *x, *dy; /* reals or bf16 */
    ph_real *dw, *db;   /* db NULL: not wanted */
    bool is_transposed; /* C is dW^T */
    bool is_thin;       /* all rows of C are summed at once */
    const struct order *order;
    struct operand a, b;
    size_t row_tiles, column_tiles;
    size_t worker_reals; /* of scratch: a chunk of B, one of A and, of bf16 for panels, a row of either */
    ph_real *copies;     /* (workers, worker_reals) */
    ph_real *c;          /* (rows, columns) = (a.width, b.width) */
};

/* ---- the plan ---- */

static size_t tile_width(size_t width, size_t tiles, size_t unit)
{
    return ph__round_up(ph__divide_up(width, tiles), unit);
}

/* Chooses the number of tiles in each direction, powers of two: the cut that reads least among those with
 * enough tiles that are small enough, or else the finest. Two threads get one tile each, of like size, though
 * one may end with half a panel of A. More threads, which powers of two may not suit, get two each. */
static void cut_tiles(struct weight_job *job)
{
    const size_t num_threads = ph__team_num_threads(job->gemm->team);
    const size_t wanted_tiles = num_threads <= 2 ? num_threads : 2 * num_threads;
    size_t least = SIZE_MAX;
    for (size_t row_tiles = 1; row_tiles <= MAX_CUT; row_tiles *= 2) {
        for (size_t column_tiles = 1; column_tiles <= MAX_CUT; column_tiles *= 2) {
            const size_t rows = tile_width(job->a.width, row_tiles, PH_WEIGHT_FEW_ROWS);
            const size_t columns = tile_width(job->b.width, column_tiles, job->order->columns);
            const size_t read = row_tiles * job->b.width + column_tiles * job->a.width;
            const bool is_finest = row_tiles == MAX_CUT && column_tiles == MAX_CUT;
            const bool is_enough =
                row_tiles * column_tiles >= wanted_tiles && rows + columns <= MAX_TILE_SIDES;
            if ((!is_enough && !is_finest) || read >= least)
                continue;
            least = read;
            job->a.tile = rows;
            job->b.tile = columns;
        }
    }
    job->row_tiles = ph__divide_up(job->a.width, job->a.tile);
    job->column_tiles = ph__divide_up(job->b.width, job->b.tile);
}

/* Lays out blocks of `block` columns in a chunk. Widened rows lie an odd number of lines apart, so that they
 * spread over all sets of the first cache. */
static void lay_out(struct operand *operand, size_t chunk, size_t block)
{
    operand->step = block;
    if (operand->place == IN_PLACE) {
        operand->stride = operand->width;
    } else if (operand->place == IN_ROWS) {
        operand->stride = ph__round_up(operand->tile, 2 * LINE_REALS) + LINE_REALS;
        operand->chunk_reals = chunk * operand->stride;
    } else {
        operand->stride = block;
        operand->step = chunk * block + GAP_REALS;
        operand->chunk_reals = ph__divide_up(operand->tile, block) * operand->step;
    }
}

/* Chooses A and B, and the order in which they are multiplied. */
static void choose_order(struct weight_job *job)
{
    const size_t n = job->out_features, k = job->in_features;
    job->is_transposed = k < PH_WEIGHT_WIDE_COLUMNS && k < n;
    job->a = (struct operand){.data = job->dy, .width = n};
    job->b = (struct operand){.data = job->x, .width = k};
    if (job->is_transposed) {
        const struct operand a = job->a;
        job->a = job->b;
        job->b = a;
    }
    const size_t rows = job->a.width, columns = job->b.width;
    const bool is_small = rows * columns <= SMALL_REALS;
    const bool is_spread = columns % LINE_REALS == 0 && columns % CROWDED_REALS != 0;
    job->is_thin = rows <= PH_WEIGHT_MOST_ROWS && !job->is_bf16;
    if (job->is_thin) {
        job->a.place = job->b.place = IN_PLACE;
    } else if (is_small && job->is_bf16) {
        job->a.place = job->b.place = IN_ROWS;
    } else {
        job->a.place = is_small ? IN_PLACE : IN_PANELS;
        job->b.place = is_small && is_spread ? IN_PLACE : IN_PANELS;
    }
    job->order = job->is_thin ? &thin_order : is_small ? &small_order : &large_order;
}

/* Plans everything but the addresses in the scratch. */
static void plan(struct weight_job *job)
{
    choose_order(job);
    cut_tiles(job);
    lay_out(&job->a, job->order->chunk, job->order->rows);
    lay_out(&job->b, job->order->chunk, job->order->columns);
    job->worker_reals = job->b.chunk_reals + job->a.chunk_reals;
    if (job->is_bf16 && job->order == &large_order)
        job->worker_reals += ph__round_up(ph__max(job->a.tile, job->b.tile), LINE_REALS);
}

static struct weight_job job_of(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    return (struct weight_job){.gemm = gemm,
        .is_bf16 = shape->is_bf16,
        .out_features = shape->out_features,
        .in_features = shape->in_features};
}

size_t ph__gemm_weight_scratch_bytes(const struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    struct weight_job job = job_of(gemm, shape);
    plan(&job);
    const size_t copies = ph__team_num_threads(gemm->team) * job.worker_reals;
    return (copies + (job.is_transposed ? shape->out_features * shape->in_features : 0)) * sizeof(ph_real);
}

/* ---- tiles ---- */

/* A tile's part of A or B: columns [first, first + width) of a chunk's samples. */
struct part {
    const struct operand *operand;
    size_t first, width;
    ph_real *copy;
    ph_real *sums; /* (width) += the column sums; NULL: not wanted */
};

/* Copies a sample's row into panels, a panel's width to each. */
static void copy_to_panels(const struct part *part, const ph_real *row, size_t panel, ph_real *to)
{
    size_t done = 0;
    for (; done + panel <= part->width; done += panel, to += part->operand->step)
        memcpy(to, row + done, panel * sizeof *to); /* constant size: no call */
    memcpy(to, row + done, (part->width - done) * sizeof *to);
}

static void copy_row(const struct part *part, const ph_real *row, ph_real *to)
{
    if (part->operand->stride == PH_WEIGHT_PANEL_ROWS)
        copy_to_panels(part, row, PH_WEIGHT_PANEL_ROWS, to);
    else if (part->operand->stride == PH_WEIGHT_PANEL_COLUMNS)
        copy_to_panels(part, row, PH_WEIGHT_PANEL_COLUMNS, to);
    else
        copy_to_panels(part, row, PH_WEIGHT_WIDE_COLUMNS, to);
}

/* Returns a sample's row as reals: in place, or, of bf16, in `widened`. */
static const ph_real *row_of(
    const struct weight_job *job, const struct part *part, size_t sample, ph_real *widened)
{
    const size_t from = sample * part->operand->width + part->first;
    if (!job->is_bf16)
        return (const ph_real *)part->operand->data + from;
    job->gemm->kernels->bf16_widen(part->width, (const uint16_t *)part->operand->data + from, widened);
    return widened;
}

/* Brings a chunk of samples to where blocks read it, and returns that place: the array itself, or a copy,
 * made row by row. */
static const ph_real *bring_chunk(const struct weight_job *job, const struct part *part, size_t first_sample,
    size_t samples, ph_real *widened)
{
    const struct operand *operand = part->operand;
    const bool is_passed = operand->place != IN_PLACE || part->sums != NULL;
    for (size_t m = 0; is_passed && m < samples; m++) {
        ph_real *to = part->copy + m * operand->stride;
        const ph_real *row = row_of(job, part, first_sample + m, operand->place == IN_ROWS ? to : widened);
        if (part->sums != NULL)
            job->gemm->kernels->add_rows(1, part->width, row, part->sums);
        if (operand->place == IN_PANELS)
            copy_row(part, row, to);
    }
    return operand->place == IN_PLACE ? row_of(job, part, first_sample, NULL) : part->copy;
}

/* Prefetches a block of C that is to be continued. */
static void fetch_block(const ph_real *c, size_t rows, size_t columns, size_t stride)
{
    for (size_t n = 0; n < rows; n++)
        for (size_t k = 0; k < columns; k += LINE_REALS)
            __builtin_prefetch(c + n * stride + k, 1, 3);
}

/* Makes the chunk's A^T B in blocks, one panel of B after the other. */
static void multiply_chunk(const struct weight_job *job, struct ph__weight_product_args all)
{
    const size_t rows = job->order->rows, columns = job->order->columns;
    struct ph__weight_product_args block = all;
    for (size_t k = 0; k < all.columns; k += columns, block.b += job->b.step) {
        block.columns = ph__min(columns, all.columns - k);
        block.a = all.a;
        block.c = all.c + k;
        for (size_t n = 0; n < all.rows; n += rows, block.a += job->a.step) {
            block.rows = ph__min(rows, all.rows - n);
            ph_real *next = block.c + block.rows * block.c_stride;
            if (job->order->is_c_fetched)
                fetch_block(next, ph__min(rows, all.rows - n - block.rows), block.columns, block.c_stride);
            job->gemm->kernels->weight_product(&block);
            block.c = next;
        }
    }
}

struct tile {
    struct part a, b;
    ph_real *widened; /* a row of A or B */
};

static struct tile tile_of(const struct weight_job *job, size_t task, size_t worker)
{
    const size_t row = task / job->column_tiles * job->a.tile,
                 column = task % job->column_tiles * job->b.tile;
    const bool is_first = job->is_transposed ? row == 0 : column == 0; /* among readers of the same dY */
    ph_real *copies = job->copies + worker * job->worker_reals;
    struct tile tile = {.a = {.operand = &job->a,
                            .first = row,
                            .width = ph__min(job->a.tile, job->a.width - row),
                            .copy = copies + job->b.chunk_reals},
        .b = {.operand = &job->b,
            .first = column,
            .width = ph__min(job->b.tile, job->b.width - column),
            .copy = copies},
        .widened = copies + job->b.chunk_reals + job->a.chunk_reals};
    struct part *dy = job->is_transposed ? &tile.b : &tile.a;
    if (job->db != NULL && is_first) {
        dy->sums = job->db + dy->first;
        memset(dy->sums, 0, dy->width * sizeof *dy->sums);
    }
    return tile;
}

static void tile_task(void *argument, size_t task, size_t worker)
{
    const struct weight_job *job = argument;
    const struct tile tile = tile_of(job, task, worker);
    struct ph__weight_product_args args = {.rows = tile.a.width,
        .columns = tile.b.width,
        .a_stride = job->a.stride,
        .b_stride = job->b.stride,
        .fetched_samples = job->order->fetched_samples,
        .c = job->c + tile.a.first * job->b.width + tile.b.first,
        .c_stride = job->b.width};
    for (size_t m = 0; m < job->samples; m += job->order->chunk) {
        args.inner = ph__min(job->order->chunk, job->samples - m);
        args.is_added = m > 0;
        args.b = bring_chunk(job, &tile.b, m, args.inner, tile.widened);
        args.a = bring_chunk(job, &tile.a, m, args.inner, tile.widened);
        if (job->is_thin)
            job->gemm->kernels->weight_product(&args);
        else
            multiply_chunk(job, args);
    }
}

static void transpose_task(void *argument, size_t task, size_t worker)
{
    const struct weight_job *job = argument;
    const size_t n = job->out_features, k = job->in_features;
    const size_t first = task * TRANSPOSED_ROWS, last = ph__min(first + TRANSPOSED_ROWS, n);
    (void)worker;
    for (size_t row = first; row < last; row++)
        for (size_t column = 0; column < k; column++)
            job->dw[row * k + column] = job->c[column * n + row];
}

static ph_status run_tiles(struct weight_job *job, ph_real *scratch)
{
    struct ph__team *team = job->gemm->team;
    job->copies = scratch;
    job->c = job->is_transposed ? scratch + ph__team_num_threads(team) * job->worker_reals : job->dw;
    ph__parallel_for(team, job->row_tiles * job->column_tiles, tile_task, job);
    if (job->is_transposed)
        ph__parallel_for(team, ph__divide_up(job->out_features, TRANSPOSED_ROWS), transpose_task, job);
    return PH_OK;
}

/* ---- the choice ---- */

static bool is_for_library(const struct weight_job *job)
{
    if (job->is_bf16)
        return job->gemm->has_bf16 && job->out_features > PH_WEIGHT_MOST_ROWS && !job->is_transposed;
    return job->gemm->is_fast && !job->is_thin;
}

ph_status ph__gemm_backward_weight(struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape,
    size_t rows, const void *x, const void *dy, ph_real *dw, ph_real *db, void *scratch)
{
    const size_t out_features = shape->out_features, in_features = shape->in_features;
    if (rows == 0) {
        memset(dw, 0, out_features * in_features * sizeof *dw);
        if (db != NULL)
            memset(db, 0, out_features * sizeof *db);
        return PH_OK;
    }
    struct weight_job job = job_of(gemm, shape);
    job.samples = rows;
    job.x = x;
    job.dy = dy;
    job.dw = dw;
    job.db = db;
    plan(&job);
    if (!is_for_library(&job))
        return run_tiles(&job, scratch);
    const struct library_gradient wanted = {gemm, rows, out_features, in_features, x, dy, dw, db};
    return job.is_bf16 ? gradient_in_bf16(&wanted) : gradient_by_threads(&wanted);
}
