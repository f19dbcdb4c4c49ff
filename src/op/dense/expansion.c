/* The passes of expanded products. Their design: expansion.h. */
#include "op/dense/expansion.h"

#include <string.h>

#include "base/sizes.h"

enum {
    BLOCK_COLUMNS = 128, /* in a block's row at most: several vectors, and a chunk stays in the first cache */
    TILE_ROWS = 128,     /* of a weight gradient's task, about */
    WEIGHT_TASKS = 64,   /* per weight gradient, about: enough for the threads of a large machine */
    LINE_REALS = 64 / sizeof(ph_real),
};

size_t ph__expansion_samples(size_t width)
{
    size_t samples = 1;
    while (2 * samples * width <= BLOCK_COLUMNS)
        samples *= 2;
    return samples;
}

/* ---- a worker's scratch ---- */

/* Reals of the parts of a worker's scratch: begin's numbers, a chunk of rows, and Y or dY of a block. */
static size_t kept_reals(const struct ph__expanded_product *product)
{
    return ph__round_up(product->expansion.samples * product->expansion.kept_reals, LINE_REALS);
}

static size_t room_reals(const struct ph__expanded_product *product)
{
    const struct ph__expansion *expansion = &product->expansion;
    return ph__round_up(expansion->chunk_rows * expansion->samples * expansion->width, LINE_REALS);
}

static size_t output_reals(const struct ph__expanded_product *product)
{
    return ph__round_up(product->outputs * product->expansion.samples * product->expansion.width, LINE_REALS);
}

static size_t worker_reals(const struct ph__expanded_product *product)
{
    return kept_reals(product) + room_reals(product) + output_reals(product);
}

size_t ph__expanded_scratch_bytes(
    const struct ph_backend *backend, const struct ph__expanded_product *product)
{
    return ph__team_num_threads(backend->team) * worker_reals(product) * sizeof(ph_real);
}

static struct ph__sample_block block_of(const struct ph__expanded_product *product, size_t worker)
{
    ph_real *kept = (ph_real *)product->scratch + worker * worker_reals(product);
    return (struct ph__sample_block){.kept = kept, .room = kept + kept_reals(product)};
}

/* Returns the place of a block's Y or dY, (K, count, P). */
static ph_real *outputs_of(const struct ph__expanded_product *product, const struct ph__sample_block *block)
{
    return block->room + room_reals(product);
}

/* ---- forward and backward data ---- */

static void begin(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    if (expansion->begin != NULL)
        expansion->begin(expansion, block);
}

/* Y = W Z + bias, chunk by chunk of Z's rows. A block of one sample is written straight into y. */
static void forward_block(const struct ph__expanded_product *product, const struct ph__sample_block *block)
{
    const struct ph__expansion *expansion = &product->expansion;
    const size_t columns = block->count * expansion->width;
    ph_real *y = product->y + block->first * product->outputs * expansion->width;
    struct ph__small_product_args args = {.count = 1,
        .rows = product->outputs,
        .columns = columns,
        .a_row_stride = product->output_stride,
        .a_inner_stride = product->row_stride,
        .b_stride = columns,
        .c = block->count == 1 ? y : outputs_of(product, block),
        .c_stride = columns};
    begin(expansion, block);
    for (size_t row = 0; row < expansion->rows; row += expansion->chunk_rows) {
        args.inner = ph__min(expansion->chunk_rows, expansion->rows - row);
        args.a = product->weight + row * product->row_stride;
        args.b = expansion->make(expansion, block, row, args.inner);
        args.bias = row == 0 ? product->bias : NULL;
        args.is_added = row > 0;
        expansion->kernels->small_product(&args);
    }
    if (block->count > 1)
        expansion->kernels->interchange(product->outputs, block->count, expansion->width, args.c, y);
}

/* dZ = W^T dY, chunk by chunk. */
static void backward_data_block(
    const struct ph__expanded_product *product, const struct ph__sample_block *block)
{
    const struct ph__expansion *expansion = &product->expansion;
    const size_t columns = block->count * expansion->width;
    const ph_real *dy = product->dy + block->first * product->outputs * expansion->width;
    ph_real *together = outputs_of(product, block);
    if (block->count > 1)
        expansion->kernels->interchange(block->count, product->outputs, expansion->width, dy, together);
    struct ph__small_product_args args = {.count = 1,
        .inner = product->outputs,
        .columns = columns,
        .a_row_stride = product->row_stride,
        .a_inner_stride = product->output_stride,
        .b = block->count > 1 ? together : dy,
        .b_stride = columns,
        .c = block->room,
        .c_stride = columns};
    begin(expansion, block);
    for (size_t row = 0; row < expansion->rows; row += expansion->chunk_rows) {
        args.rows = ph__min(expansion->chunk_rows, expansion->rows - row);
        args.a = product->weight + row * product->row_stride;
        expansion->kernels->small_product(&args);
        expansion->take(expansion, block, row, args.rows, block->room);
    }
    if (expansion->end != NULL)
        expansion->end(expansion, block);
}

typedef void block_function(const struct ph__expanded_product *product, const struct ph__sample_block *block);

static void each_block(const struct ph__expanded_product *product, size_t first, size_t last, size_t worker,
    block_function *function)
{
    struct ph__sample_block block = block_of(product, worker);
    for (block.first = first; block.first < last; block.first += block.count) {
        block.count = ph__min(product->expansion.samples, last - block.first);
        function(product, &block);
    }
}

static void forward_samples(void *argument, size_t first, size_t last, size_t worker)
{
    each_block(argument, first, last, worker, forward_block);
}

static void backward_data_samples(void *argument, size_t first, size_t last, size_t worker)
{
    each_block(argument, first, last, worker, backward_data_block);
}

/* Returns the samples of one task: whole blocks. */
static size_t task_samples(const struct ph__expanded_product *product)
{
    const struct ph__expansion *expansion = &product->expansion;
    const size_t sample_reals = (product->outputs + expansion->rows) * expansion->width;
    return ph__round_up(ph__block_rows(sample_reals), expansion->samples);
}

void ph__expanded_forward(const struct ph_backend *backend, const struct ph__expanded_product *product)
{
    struct ph__expanded_product copy = *product;
    ph__for_blocks(backend, product->num_samples, task_samples(product), forward_samples, &copy);
}

void ph__expanded_backward_data(const struct ph_backend *backend, const struct ph__expanded_product *product)
{
    struct ph__expanded_product copy = *product;
    ph__for_blocks(backend, product->num_samples, task_samples(product), backward_data_samples, &copy);
}

/* ---- the weight's gradient ---- */

/* dW^T (R,K) = sum_b Z_b dY_b^T and, as one more row, db. A task makes a tile, some rows of it, over a part
 * of the samples; tiles alone would be too few where R is small. */
struct weight_job {
    const struct ph__expanded_product *product;
    size_t tile_rows, num_tiles;
    size_t part_samples, num_parts;
    size_t partial_reals; /* of a part: (R + 1) K */
    ph_real *partials;    /* (num_parts, R + 1, K) */
};

static size_t most_parts(size_t num_tiles)
{
    return ph__max(WEIGHT_TASKS / num_tiles, 1);
}

static struct weight_job describe_weight(const struct ph__expanded_product *product)
{
    const struct ph__expansion *expansion = &product->expansion;
    struct weight_job job = {.product = product,
        .tile_rows = ph__max(TILE_ROWS / expansion->chunk_rows, 1) * expansion->chunk_rows,
        .partial_reals = (expansion->rows + 1) * product->outputs};
    job.num_tiles = ph__divide_up(expansion->rows, job.tile_rows);
    job.part_samples =
        ph__round_up(ph__divide_up(product->num_samples, most_parts(job.num_tiles)), expansion->samples);
    job.num_parts = product->num_samples > 0 ? ph__divide_up(product->num_samples, job.part_samples) : 0;
    return job;
}

/* Counts the most parts that any number of samples up to this one has: fewer samples may have more parts. */
size_t ph__expanded_weight_scratch_bytes(
    const struct ph_backend *backend, const struct ph__expanded_product *product)
{
    const struct weight_job job = describe_weight(product);
    const size_t parts =
        ph__min(most_parts(job.num_tiles), ph__divide_up(product->num_samples, product->expansion.samples));
    return ph__expanded_scratch_bytes(backend, product) + parts * job.partial_reals * sizeof(ph_real);
}

/* Adds one block of samples to rows [row, end) of the partial sum. */
static void add_block(const struct weight_job *job, const struct ph__sample_block *block, size_t row,
    size_t end, bool is_added, ph_real *partial)
{
    const struct ph__expanded_product *product = job->product;
    const struct ph__expansion *expansion = &product->expansion;
    const size_t columns = block->count * expansion->width, outputs = product->outputs;
    ph_real *dy = outputs_of(product, block); /* (count, P, K) */
    expansion->kernels->transpose(
        block->count, outputs, expansion->width, product->dy + block->first * outputs * expansion->width, dy);
    if (row == 0 && product->db != NULL)
        expansion->kernels->add_rows(columns, outputs, dy, partial + expansion->rows * outputs);
    begin(expansion, block);
    struct ph__small_product_args args = {.count = 1,
        .inner = columns,
        .columns = outputs,
        .a_row_stride = columns,
        .a_inner_stride = 1,
        .b = dy,
        .b_stride = outputs,
        .c_stride = outputs,
        .is_added = is_added};
    for (; row < end; row += args.rows) {
        args.rows = ph__min(expansion->chunk_rows, end - row);
        args.a = expansion->make(expansion, block, row, args.rows);
        args.c = partial + row * outputs;
        expansion->kernels->small_product(&args);
    }
}

static void weight_task(void *argument, size_t task, size_t worker)
{
    const struct weight_job *job = argument;
    const struct ph__expanded_product *product = job->product;
    const struct ph__expansion *expansion = &product->expansion;
    const size_t part = task / job->num_tiles, row = task % job->num_tiles * job->tile_rows;
    const size_t first = part * job->part_samples,
                 last = ph__min(first + job->part_samples, product->num_samples);
    ph_real *partial = job->partials + part * job->partial_reals;
    struct ph__sample_block block = block_of(product, worker);
    if (row == 0)
        memset(partial + expansion->rows * product->outputs, 0, product->outputs * sizeof *partial);
    for (block.first = first; block.first < last; block.first += block.count) {
        block.count = ph__min(expansion->samples, last - block.first);
        add_block(
            job, &block, row, ph__min(row + job->tile_rows, expansion->rows), block.first > first, partial);
    }
}

/* Sums the parts, in order, into the first. */
static void add_parts(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct weight_job *job = argument;
    ph_real *sum = job->partials + first;
    for (size_t part = 1; part < job->num_parts; part++)
        job->product->expansion.kernels->add(last - first, sum, sum + part * job->partial_reals, sum);
}

void ph__expanded_backward_weight(
    const struct ph_backend *backend, const struct ph__expanded_product *product)
{
    const size_t rows = product->expansion.rows, outputs = product->outputs;
    struct weight_job job = describe_weight(product);
    if (job.num_parts == 0) {
        memset(product->dw, 0, rows * outputs * sizeof(ph_real));
        if (product->db != NULL)
            memset(product->db, 0, outputs * sizeof(ph_real));
        return;
    }
    job.partials = (ph_real *)product->scratch + ph__team_num_threads(backend->team) * worker_reals(product);
    ph__parallel_for(backend->team, job.num_parts * job.num_tiles, weight_task, &job);
    ph__for_blocks(backend, job.partial_reals, PH_BLOCK_ELEMENTS, add_parts, &job);
    product->expansion.kernels->transpose(1, rows, outputs, job.partials, product->dw);
    if (product->db != NULL)
        memcpy(product->db, job.partials + rows * outputs, outputs * sizeof(ph_real));
}
