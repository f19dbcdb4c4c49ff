/* Weight gradients: dW = dY^T X by our own kernel, in which each number is one sum over the samples in order. So the bits
 * follow from nothing but the instruction set, and the work may be cut at will, even by the number of threads; a library
 * sums over blocks of its own choice, which follow its threads.
 *
 * The product C (rows, columns) = A^T B is dW (N,K), A = dY, B = X, or, where a row of dW is shorter than a panel and than
 * its column, dW^T (K,N), which is then transposed. A task makes one tile of C, small enough for the second cache. It goes
 * through the samples in chunks, whose part of B it copies into panels: one of them lies in the first cache while all of A
 * passes. Tiles above each other copy the same B, those side by side read the same A; so they are cut to read as little as
 * possible. B is read where it stands instead where a tile has so few rows that all of them are summed at once, and where
 * its lines come to lie in all sets of the first cache as they are. The bias gradient is summed on the way.
 *
 * Arrays of bf16 are widened chunk by chunk, unless the library has instructions for them: then each tile is one product of
 * the library, and tiles are cut by shape alone.
 *
 * The fast mode (ph__gemm_create) leaves the product of reals to the library. */
#include <stdatomic.h>
#include <string.h>

#include "kernel/gemm_context.h"

enum {
    CHUNK = 64, /* samples */
    PANEL_REALS =
        CHUNK * PH_WEIGHT_PANEL_COLUMNS + 16, /* with a gap: panels begin in other sets of the cache */
    MAX_TILE_REALS = 5 << 15,                 /* of C: 640 KiB */
    MAX_CUT = 64,                             /* tiles in a row or a column of them */
    TRANSPOSED_ROWS = 16,                     /* of dW for one task: one cache line of dW^T */
    THIN_CHUNK = 16, /* samples, where all rows of C are summed at once; B is asked for as far ahead */
    LINE_REALS = 64 / sizeof(ph_real),
    CROWDED_REALS = 512, /* rows of B so far apart, or a multiple, share the sets of the first cache */
    LIBRARY_ROWS = 64,   /* of dW for one product of the library */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t round_up(size_t a, size_t b)
{
    return divide_up(a, b) * b;
}

/* A or B: (samples, width) of reals or bf16, of which tiles take `tile` columns each. */
struct operand {
    const void *data;
    size_t width, tile;
};

struct weight_job {
    const struct ph_gemm *gemm;
    bool is_bf16;
    size_t samples, out_features, in_features;
    const void *x, *dy; /* reals or bf16 */
    ph_real *dw, *db;   /* db NULL: not wanted */
    bool is_transposed; /* C is dW^T */
    bool is_thin;       /* all rows of C are summed at once */
    bool is_in_place;   /* B is read where it stands */
    struct operand a, b;
    size_t row_tiles, column_tiles;
    size_t panel_reals;  /* for a tile's chunk of B in panels */
    size_t worker_reals; /* of scratch: those and, of bf16, the same chunk of A */
    ph_real *panels;     /* (workers, worker_reals) */
    ph_real *c;          /* (rows, columns) = (a.width, b.width) */
};

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static size_t tile_width(size_t width, size_t tiles, size_t panel)
{
    return round_up(divide_up(width, tiles), panel);
}

/* The number of tiles in each direction, powers of two, that reads least among those that are many and small enough. Two
 * threads get a tile each; more of them, which powers of two may not suit, two each. */
static void cut_tiles(struct weight_job *job)
{
    const size_t num_threads = ph__team_num_threads(job->gemm->team);
    const size_t wanted_tiles = num_threads <= 2 ? num_threads : 2 * num_threads;
    size_t least = SIZE_MAX;
    for (size_t row_tiles = 1; row_tiles <= MAX_CUT; row_tiles *= 2) {
        for (size_t column_tiles = 1; column_tiles <= MAX_CUT; column_tiles *= 2) {
            const size_t rows = tile_width(job->a.width, row_tiles, PH_WEIGHT_PANEL_ROWS);
            const size_t columns = tile_width(job->b.width, column_tiles, PH_WEIGHT_PANEL_COLUMNS);
            const size_t read = row_tiles * job->b.width + column_tiles * job->a.width;
            const bool is_smallest = rows == PH_WEIGHT_PANEL_ROWS && columns == PH_WEIGHT_PANEL_COLUMNS;
            const bool is_enough =
                row_tiles * column_tiles >= wanted_tiles && rows * columns <= MAX_TILE_REALS;
            if ((!is_enough && !is_smallest) || read >= least)
                continue;
            least = read;
            job->a.tile = rows;
            job->b.tile = columns;
        }
    }
    job->row_tiles = divide_up(job->a.width, job->a.tile);
    job->column_tiles = divide_up(job->b.width, job->b.tile);
}

/* Everything but where the scratch is. */
static void plan(struct weight_job *job)
{
    const size_t n = job->out_features, k = job->in_features;
    job->is_transposed = k < PH_WEIGHT_PANEL_COLUMNS && k < n;
    job->a = (struct operand){.data = job->dy, .width = n};
    job->b = (struct operand){.data = job->x, .width = k};
    if (job->is_transposed) {
        const struct operand a = job->a;
        job->a = job->b;
        job->b = a;
    }
    job->is_thin = job->a.width <= PH_WEIGHT_MOST_ROWS && !job->is_bf16;
    job->is_in_place = job->is_thin ||
                       (!job->is_bf16 && job->b.width % LINE_REALS == 0 && job->b.width % CROWDED_REALS != 0);
    cut_tiles(job);
    job->panel_reals = job->is_in_place ? 0 : job->b.tile / PH_WEIGHT_PANEL_COLUMNS * PANEL_REALS;
    job->worker_reals = job->panel_reals + (job->is_bf16 ? CHUNK * job->a.tile : 0);
}

static struct weight_job job_of(const struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape)
{
    return (struct weight_job){.gemm = gemm,
        .is_bf16 = shape->is_bf16,
        .out_features = shape->out_features,
        .in_features = shape->in_features};
}

size_t ph__gemm_weight_scratch_bytes(const struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape)
{
    struct weight_job job = job_of(gemm, shape);
    plan(&job);
    const size_t panels = ph__team_num_threads(gemm->team) * job.worker_reals;
    return (panels + (job.is_transposed ? shape->out_features * shape->in_features : 0)) * sizeof(ph_real);
}

/* ---- tiles -------------------------------------------------------------------------------------------------------- */

/* n bf16 numbers from index `first` on, as reals. */
static void widen(const struct weight_job *job, const void *data, size_t first, size_t n, ph_real *reals)
{
    job->gemm->kernels->bf16_widen(n, (const uint16_t *)data + first, reals);
}

/* One sample of columns [first, first + width) of B, a panel's width to each panel. */
static void pack_reals(const ph_real *from, size_t width, ph_real *to)
{
    const size_t panel = PH_WEIGHT_PANEL_COLUMNS;
    size_t done = 0;
    for (; done + panel <= width; done += panel, to += PANEL_REALS)
        memcpy(to, from + done, panel * sizeof *to); /* of constant size: no call */
    memcpy(to, from + done, (width - done) * sizeof *to);
}

static void pack_bf16(const struct weight_job *job, size_t from, size_t width, ph_real *to)
{
    const size_t panel = PH_WEIGHT_PANEL_COLUMNS;
    for (size_t done = 0; done < width; done += panel, to += PANEL_REALS)
        widen(job, job->b.data, from + done, min_size(panel, width - done), to);
}

/* A chunk's samples of columns [first, first + width) of B in panels. */
static void pack(const struct weight_job *job, size_t first_sample, size_t samples, size_t first,
    size_t width, ph_real *panels)
{
    for (size_t m = 0; m < samples; m++) {
        const size_t from = (first_sample + m) * job->b.width + first;
        ph_real *to = panels + m * PH_WEIGHT_PANEL_COLUMNS;
        if (job->is_bf16)
            pack_bf16(job, from, width, to);
        else
            pack_reals((const ph_real *)job->b.data + from, width, to);
    }
}

/* A chunk's samples of columns [first, first + width) of A: where they stand, or, of bf16, as reals in `reals`. */
static const ph_real *place(const struct weight_job *job, size_t first_sample, size_t samples, size_t first,
    size_t width, ph_real *reals, size_t *stride_out)
{
    const size_t from = first_sample * job->a.width + first;
    *stride_out = job->is_bf16 ? width : job->a.width;
    if (!job->is_bf16)
        return (const ph_real *)job->a.data + from;
    for (size_t m = 0; m < samples; m++)
        widen(job, job->a.data, from + m * job->a.width, width, reals + m * width);
    return reals;
}

/* sums (width) += the column sums of a chunk's samples of dY, which stand `stride` apart. */
static void add_columns(const struct ph_kernels *kernels, size_t samples, size_t width, const ph_real *dy,
    size_t stride, ph_real *sums)
{
    for (size_t m = 0; m < samples; m++)
        kernels->add_rows(1, width, dy + m * stride, sums);
}

/* A tile's part of the bias gradient: dY is A, or, where C is dW^T, B, which may lie in panels. */
static void add_bias(const struct weight_job *job, const struct ph_weight_product_args *args, size_t row,
    size_t rows, size_t column, size_t columns)
{
    const struct ph_kernels *kernels = job->gemm->kernels;
    const size_t width = job->is_in_place ? columns : PH_WEIGHT_PANEL_COLUMNS;
    ph_real *sums = job->db + (job->is_transposed ? column : row);
    if (!args->is_added)
        memset(sums, 0, (job->is_transposed ? columns : rows) * sizeof *sums);
    if (!job->is_transposed) {
        add_columns(kernels, args->inner, rows, args->a, args->a_stride, sums);
        return;
    }
    const ph_real *dy = args->b;
    for (size_t done = 0; done < columns; done += width, dy += PANEL_REALS)
        add_columns(kernels, args->inner, min_size(width, columns - done), dy, args->b_stride, sums + done);
}

/* C (rows, columns) (+)= the chunk's A^T B in blocks, one panel of B after the other. */
static void multiply_chunk(
    const struct weight_job *job, struct ph_weight_product_args args, size_t rows, size_t columns)
{
    const ph_real *a = args.a;
    ph_real *c = args.c;
    for (size_t k = 0; k < columns; k += PH_WEIGHT_PANEL_COLUMNS) {
        args.columns = min_size(PH_WEIGHT_PANEL_COLUMNS, columns - k);
        args.a = a;
        for (size_t n = 0; n < rows; n += PH_WEIGHT_PANEL_ROWS) {
            args.rows = min_size(PH_WEIGHT_PANEL_ROWS, rows - n);
            args.c = c + n * args.c_stride + k;
            job->gemm->kernels->weight_product(&args);
            args.a += PH_WEIGHT_PANEL_ROWS;
        }
        args.b += job->is_in_place ? PH_WEIGHT_PANEL_COLUMNS : PANEL_REALS;
    }
}

static void tile_task(void *argument, size_t task, size_t worker)
{
    const struct weight_job *job = argument;
    const size_t row = task / job->column_tiles * job->a.tile,
                 column = task % job->column_tiles * job->b.tile;
    const size_t rows = min_size(job->a.tile, job->a.width - row);
    const size_t columns = min_size(job->b.tile, job->b.width - column);
    const bool is_first = job->is_transposed ? row == 0 : column == 0; /* of those that read the same dY */
    ph_real *panels = job->panels + worker * job->worker_reals;
    const size_t chunk = job->is_thin ? THIN_CHUNK : CHUNK;
    struct ph_weight_product_args args = {.rows = rows,
        .columns = columns,
        .b = panels,
        .b_stride = job->is_in_place ? job->b.width : PH_WEIGHT_PANEL_COLUMNS,
        .fetched_samples = job->is_thin ? THIN_CHUNK : 0,
        .c = job->c + row * job->b.width + column,
        .c_stride = job->b.width};
    for (size_t m = 0; m < job->samples; m += chunk) {
        args.inner = min_size(chunk, job->samples - m);
        args.is_added = m > 0;
        if (job->is_in_place)
            args.b = (const ph_real *)job->b.data + m * job->b.width + column;
        else
            pack(job, m, args.inner, column, columns, panels);
        args.a = place(job, m, args.inner, row, rows, panels + job->panel_reals, &args.a_stride);
        if (job->db != NULL && is_first)
            add_bias(job, &args, row, rows, column, columns);
        if (job->is_thin)
            job->gemm->kernels->weight_product(&args);
        else
            multiply_chunk(job, args, rows, columns);
    }
}

static void transpose_task(void *argument, size_t task, size_t worker)
{
    const struct weight_job *job = argument;
    const size_t n = job->out_features, k = job->in_features;
    const size_t first = task * TRANSPOSED_ROWS, last = min_size(first + TRANSPOSED_ROWS, n);
    (void)worker;
    for (size_t row = first; row < last; row++)
        for (size_t column = 0; column < k; column++)
            job->dw[row * k + column] = job->c[column * n + row];
}

static ph_status run_tiles(struct weight_job *job, ph_real *scratch)
{
    struct ph_team *team = job->gemm->team;
    job->panels = scratch;
    job->c = job->is_transposed ? scratch + ph__team_num_threads(team) * job->worker_reals : job->dw;
    ph__parallel_for(team, job->row_tiles * job->column_tiles, tile_task, job);
    if (job->is_transposed)
        ph__parallel_for(team, divide_up(job->out_features, TRANSPOSED_ROWS), transpose_task, job);
    return PH_OK;
}

/* ---- the library's products -------------------------------------------------------------------------------------- */

static struct ph_product whole_product(const struct weight_job *job)
{
    return (struct ph_product){.rows = job->out_features,
        .columns = job->in_features,
        .inner = job->samples,
        .a_stride = job->out_features,
        .b_stride = job->in_features,
        .c_stride = job->in_features,
        .flags = PH_PRODUCT_A_TRANSPOSED};
}

static ph_status refused(void)
{
    return ph_fail(PH_ERROR_BUG, "gemm: %s refused to run a product", ph__gemm_library());
}

/* The fast mode: all of it at once, by the library's threads. */
static ph_status run_in_library(struct weight_job *job)
{
    const struct ph_product_operands operands = {.a = job->dy, .b = job->x, .c = job->dw};
    struct ph_product product = whole_product(job);
    struct ph_prepared prepared;
    product.flags |= PH_PRODUCT_THREADED;
    PH_TRY(ph__gemm_library_prepare(job->gemm->library, &product, NULL, &prepared));
    if (prepared.entry == NULL)
        ph__plain_product(&product, &operands);
    else if (ph__gemm_library_run(&prepared, 0, &operands) != PH_OK)
        return refused();
    if (job->db != NULL)
        ph__plain_column_sums(job->samples, job->out_features, job->out_features, job->dy, job->db);
    return PH_OK;
}

struct library_job {
    struct weight_job *weight;
    struct ph_prepared full, rest; /* LIBRARY_ROWS rows of dW, and fewer */
    _Atomic int status;
};

/* The bias gradient of columns [first, first + width) of a dY of bf16; width <= LIBRARY_ROWS. */
static void sum_bias(const struct weight_job *job, size_t first, size_t width)
{
    ph_real row[LIBRARY_ROWS];
    memset(job->db + first, 0, width * sizeof *job->db);
    for (size_t m = 0; m < job->samples; m++) {
        widen(job, job->dy, m * job->out_features + first, width, row);
        add_columns(job->gemm->kernels, 1, width, row, width, job->db + first);
    }
}

static void library_task(void *argument, size_t task, size_t worker)
{
    struct library_job *library = argument;
    const struct weight_job *job = library->weight;
    const size_t first = task * LIBRARY_ROWS, rows = min_size(LIBRARY_ROWS, job->out_features - first);
    const struct ph_product_operands operands = {
        .a = (const uint16_t *)job->dy + first, .b = job->x, .c = job->dw + first * job->in_features};
    const struct ph_prepared *prepared = rows == LIBRARY_ROWS ? &library->full : &library->rest;
    const ph_status status = ph__gemm_library_run(prepared, worker, &operands);
    if (status != PH_OK)
        atomic_store(&library->status, status);
    if (job->db != NULL)
        sum_bias(job, first, rows);
}

/* bf16 by the library's own instructions. */
static ph_status run_bf16_in_library(struct weight_job *job)
{
    struct library_job library = {.weight = job};
    struct ph_product product = whole_product(job);
    product.flags |= PH_PRODUCT_BF16;
    product.rows = LIBRARY_ROWS;
    if (job->out_features >= LIBRARY_ROWS)
        PH_TRY(ph__gemm_library_prepare(job->gemm->library, &product, NULL, &library.full));
    product.rows = job->out_features % LIBRARY_ROWS;
    if (product.rows > 0)
        PH_TRY(ph__gemm_library_prepare(job->gemm->library, &product, NULL, &library.rest));
    ph__parallel_for(job->gemm->team, divide_up(job->out_features, LIBRARY_ROWS), library_task, &library);
    return atomic_load(&library.status) == PH_OK ? PH_OK : refused();
}

ph_status ph__gemm_backward_weight(struct ph_gemm *gemm, const struct ph_gemm_weight_shape *shape,
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
    if (job.is_bf16)
        return gemm->has_bf16 && out_features > PH_WEIGHT_MOST_ROWS && !job.is_transposed
                   ? run_bf16_in_library(&job)
                   : run_tiles(&job, scratch);
    return gemm->is_fast && !job.is_thin ? run_in_library(&job) : run_tiles(&job, scratch);
}
