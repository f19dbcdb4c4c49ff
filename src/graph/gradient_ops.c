/* Operators that differentiation itself needs; all others live in src/op/. */
#include <assert.h>
#include <string.h>

#include "base/memory/absent.h"
#include "graph/graph.h"

/* ---- seed: d loss / d loss = 1 ---- */

static ph_status seed_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void no_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){0};
}

static ph_status seed_run(struct ph__call *call)
{
    *call->outputs[0].scalar = 1.0;
    return PH_OK;
}

const struct ph__op ph__op_seed = {.name = "seed", .infer = seed_infer, .cost = no_cost, .run = seed_run};

/* ---- accumulate: a + b ---- */

enum { BLOCK_ELEMENTS = 16384 };

static size_t sum_of_limits(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* Expresses a symbol as a multiple of one of the batch's. */
static struct ph__symbol bound_of(const struct ph__graph *graph, uint32_t symbol)
{
    struct ph__symbol bound = graph->symbols[symbol];
    while (bound.bound >= PH_NUM_BATCH_SYMBOLS) {
        bound.factor *= graph->symbols[bound.bound].factor;
        bound.bound = graph->symbols[bound.bound].bound;
    }
    return bound;
}

/* Infers the union's type: a and b have each at most a multiple of the batch's ids as slots, and their union
 * at most the sum. */
static ph_status union_infer(struct ph__infer *infer)
{
    const struct ph_type *types = infer->inputs;
    struct ph__symbol bounds[2];
    for (size_t i = 0; i < 2; i++)
        bounds[i] = bound_of(&infer->builder->graph, types[i].dims[0].symbol);
    assert(bounds[0].bound == bounds[1].bound);
    const uint32_t symbol = ph__builder_symbol(infer->builder, "union", bounds[0].bound,
        bounds[0].factor + bounds[1].factor, sum_of_limits(bounds[0].limit, bounds[1].limit));
    infer->outputs[0] = types[0];
    infer->outputs[0].dims[0] = ph__dim_of(1, symbol);
    return ph_builder_status(infer->builder);
}

static ph_status accumulate_infer(struct ph__infer *infer)
{
    const struct ph_type *a = &infer->inputs[0], *b = &infer->inputs[1];
    if (a->kind == PH_SPARSE_ROWS && b->kind == PH_SPARSE_ROWS && ph__dim_equal(a->dims[1], b->dims[1]))
        return union_infer(infer);
    infer->outputs[0] = *a;
    if (ph__type_equal(a, b) && (a->kind == PH_DENSE || a->kind == PH_SCALAR))
        return PH_OK;
    char text_a[96], text_b[96];
    return ph_fail(PH_ERROR_BUG, "%s: gradients of shapes %s and %s cannot be added", infer->name,
        ph__type_text(a, text_a), ph__type_text(b, text_b));
}

static void accumulate_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    double elements = (double)ph_shape_elements(&call->outputs[0].shape);
    *cost_out = (struct ph__cost){.flops = elements, .bytes = 3 * elements * sizeof(ph_real)};
}

static void add_block(void *argument, size_t first, size_t last, size_t worker)
{
    struct ph__call *call = argument;
    (void)worker;
    const ph_real *a = call->inputs[0].data, *b = call->inputs[1].data;
    call->backend->kernels->add(last - first, a + first, b + first, (ph_real *)call->outputs[0].data + first);
}

/* Sparse rows: two ascending lists of slots are merged, and equal slots add their rows. The merged sequence,
 * a's slot before b's equal one, is cut into blocks, each of which finds its own parts of both lists (merge
 * path: Odeh, Green, Mwassi, Shmueli, Birk, "Merge path: parallel merging made simple", 2012). A first sweep
 * counts the distinct slots of each block, so that the second knows where its rows begin. */
struct union_job {
    const struct ph__call *call;
    size_t block;
    size_t *begins; /* by block: its number of distinct slots, then its first row */
};

/* Positions in a and in b. */
struct cut {
    size_t a, b;
};

/* Cuts behind the first `count` slots of the merged sequence, or one later to keep equal ones together. */
static struct cut cut_at(const struct ph__operand *a, const struct ph__operand *b, size_t count)
{
    const size_t num_a = a->shape.dims[0], num_b = b->shape.dims[0];
    size_t first = count > num_b ? count - num_b : 0, last = count < num_a ? count : num_a;
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        if (a->index[middle] <= b->index[count - 1 - middle])
            first = middle + 1;
        else
            last = middle;
    }
    struct cut cut = {first, count - first};
    cut.b += cut.a > 0 && cut.b < num_b && a->index[cut.a - 1] == b->index[cut.b];
    return cut;
}

static size_t row_elements(const struct ph__call *call)
{
    return call->outputs[0].shape.dims[1];
}

/* Merges the slots from `at` to `end`, with their rows if `writes`, from row `row` on. Returns their
 * number. */
static size_t merge_rows(const struct ph__call *call, struct cut at, struct cut end, bool writes, size_t row)
{
    const struct ph__operand *a = &call->inputs[0], *b = &call->inputs[1], *sum = &call->outputs[0];
    const size_t dim = row_elements(call), begin = row;
    for (; at.a < end.a || at.b < end.b; row++) {
        const bool has_a = at.a < end.a && (at.b == end.b || a->index[at.a] <= b->index[at.b]);
        const bool has_b = at.b < end.b && (at.a == end.a || b->index[at.b] <= a->index[at.a]);
        const ph_real *row_a = (const ph_real *)a->data + at.a * dim,
                      *row_b = (const ph_real *)b->data + at.b * dim;
        ph_real *target = (ph_real *)sum->data + row * dim;
        if (writes)
            sum->index[row] = has_a ? a->index[at.a] : b->index[at.b];
        if (writes && has_a && has_b && !ph__memory_is_absent(target))
            call->backend->kernels->add(dim, row_a, row_b, target);
        else if (writes && !ph__memory_is_absent(target))
            memcpy(target, has_a ? row_a : row_b, dim * sizeof *target);
        at.a += has_a;
        at.b += has_b;
    }
    return row - begin;
}

static void count_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct union_job *job = argument;
    const struct ph__operand *a = &job->call->inputs[0], *b = &job->call->inputs[1];
    (void)worker;
    job->begins[first / job->block] =
        merge_rows(job->call, cut_at(a, b, first), cut_at(a, b, last), false, 0);
}

static void write_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct union_job *job = argument;
    const struct ph__operand *a = &job->call->inputs[0], *b = &job->call->inputs[1];
    (void)worker;
    merge_rows(job->call, cut_at(a, b, first), cut_at(a, b, last), true, job->begins[first / job->block]);
}

static size_t block_rows(const struct ph__call *call)
{
    return BLOCK_ELEMENTS / (row_elements(call) + 1) + 1;
}

static size_t num_slots(const struct ph__call *call)
{
    return call->inputs[0].shape.dims[0] + call->inputs[1].shape.dims[0];
}

static size_t accumulate_scratch_bytes(const struct ph__call *call)
{
    const bool is_sparse = call->outputs[0].type->kind == PH_SPARSE_ROWS;
    return is_sparse ? (num_slots(call) / block_rows(call) + 1) * sizeof(size_t) : 0;
}

static void add_sparse_rows(struct ph__call *call)
{
    struct union_job job = {call, block_rows(call), call->scratch};
    size_t count = 0;
    ph__for_blocks(call->backend, num_slots(call), job.block, count_block, &job);
    for (size_t i = 0; i * job.block < num_slots(call); i++) {
        const size_t here = job.begins[i];
        job.begins[i] = count;
        count += here;
    }
    ph__for_blocks(call->backend, num_slots(call), job.block, write_block, &job);
    call->extents[call->outputs[0].type->dims[0].symbol] = count;
}

static ph_status accumulate_run(struct ph__call *call)
{
    if (call->outputs[0].type->kind == PH_SCALAR)
        *call->outputs[0].scalar = *call->inputs[0].scalar + *call->inputs[1].scalar;
    else if (call->outputs[0].type->kind == PH_SPARSE_ROWS)
        add_sparse_rows(call);
    else if (!ph__memory_is_absent(call->outputs[0].data))
        ph__for_blocks(
            call->backend, ph_shape_elements(&call->outputs[0].shape), BLOCK_ELEMENTS, add_block, call);
    return PH_OK;
}

const struct ph__op ph__op_accumulate = {
    .name = "accumulate",
    .traits = PH_OP_OF_IDS,
    .infer = accumulate_infer,
    .cost = accumulate_cost,
    .scratch_bytes = accumulate_scratch_bytes,
    .run = accumulate_run,
};
