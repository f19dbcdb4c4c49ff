#include "train/probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "graph/graph.h"
#include "op/attributes.h"

/* ---- products ---- */

/* Returns the input of a node that is a packed weight; SIZE_MAX where it is no product. */
static size_t packed_input(const struct ph__node *node, bool *is_backward_out)
{
    *is_backward_out = node->op == &ph__op_linear_backward_data;
    if (*is_backward_out)
        return PH_LINEAR_BACKWARD_PACKED;
    return node->op == &ph__op_linear ? PH_LINEAR_PACKED : SIZE_MAX;
}

/* Returns the parameter that a packed value was made of; NULL: it was computed. */
static const struct ph__value_info *weight_of(const struct ph__graph *graph, ph_value packed)
{
    const uint32_t producer = graph->values[packed].producer;
    if (producer == PH_NO_NODE)
        return NULL;
    const struct ph__value_info *weight = &graph->values[graph->nodes[producer].inputs[0]];
    return weight->storage == PH_STORAGE_PARAMETER ? weight : NULL;
}

static ph_status add_product(struct ph__probe *probe, size_t node, const struct ph__value_info *weight,
    bool is_backward, struct ph__gemm *gemm)
{
    struct ph__probe_product *product = &probe->products[probe->num_products];
    const size_t out = weight->type.dims[0].extent, in = weight->type.dims[1].extent;
    *product = (struct ph__probe_product){.weight = weight->name,
        .is_backward = is_backward,
        .terms = is_backward ? out : in,
        .outputs = is_backward ? in : out,
        .random = {.key = {.stream = ph__hash_name(weight->name), .step = is_backward}}};
    probe->product_of[node] = probe->num_products++;
    PH_TRY(ph__row_statistics_open(&product->statistics, product->terms, gemm));
    product->rows = calloc(PH_PROBE_ROWS * product->terms, sizeof *product->rows);
    return product->rows != NULL ? PH_OK : ph__out_of_memory("rows of a product");
}

static ph_status find_products(struct ph__probe *probe, struct ph__gemm *gemm)
{
    const struct ph__graph *graph = &probe->program->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        bool is_backward;
        const size_t input = packed_input(&graph->nodes[i], &is_backward);
        probe->product_of[i] = SIZE_MAX;
        if (input == SIZE_MAX)
            continue;
        const struct ph__value_info *weight = weight_of(graph, graph->nodes[i].inputs[input]);
        if (weight != NULL)
            PH_TRY(add_product(probe, i, weight, is_backward, gemm));
    }
    return PH_OK;
}

/* ---- the hook ---- */

/* Keeps each row with the same chance: the first ones, then one in the place of another. */
static void keep_rows(struct ph__probe_product *product, size_t rows, const ph_real *x)
{
    const uint64_t seen = product->statistics.count; /* before these */
    for (size_t r = 0; r < rows; r++) {
        const uint64_t place = product->num_rows < PH_PROBE_ROWS
                                   ? product->num_rows++
                                   : ph__rng_below(&product->random, seen + r + 1);
        if (place < PH_PROBE_ROWS)
            memcpy(product->rows + place * product->terms, x + r * product->terms,
                product->terms * sizeof *product->rows);
    }
}

/* Sees the rows of a product before it runs, since it may write over them. Other nodes run as they are. */
static ph_status run(const struct ph__simulator *hook, struct ph__call *call)
{
    struct ph__probe *probe = (struct ph__probe *)(uintptr_t)hook;
    const size_t node = (size_t)(call->node - probe->program->graph.nodes);
    const size_t index = node < probe->program->graph.num_nodes ? probe->product_of[node] : SIZE_MAX;
    if (index != SIZE_MAX && call->inputs[0].type->dtype == PH_REAL) {
        struct ph__probe_product *product = &probe->products[index];
        const size_t rows = ph__vectors(&call->inputs[0]);
        keep_rows(product, rows, call->inputs[0].data);
        PH_TRY(ph__row_statistics_add(&product->statistics, call->backend->gemm, rows, call->inputs[0].data));
    }
    return call->node->op->run(call);
}

const struct ph__simulator *ph__probe_hook(const struct ph__probe *probe)
{
    return &probe->hook;
}

/* ---- life ---- */

ph_status ph__probe_create(
    const struct ph_program *program, struct ph__gemm *gemm, struct ph__probe **probe_out)
{
    const size_t num_nodes = ph__max(1, program->graph.num_nodes);
    struct ph__probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return ph__out_of_memory("a probe");
    *probe = (struct ph__probe){.hook = {run},
        .program = program,
        .product_of = calloc(num_nodes, sizeof *probe->product_of),
        .products = calloc(num_nodes, sizeof *probe->products)};
    ph_status status = probe->product_of != NULL && probe->products != NULL ? find_products(probe, gemm)
                                                                            : ph__out_of_memory("a probe");
    if (status == PH_OK)
        *probe_out = probe;
    else
        ph__probe_destroy(probe);
    return status;
}

void ph__probe_destroy(struct ph__probe *probe)
{
    if (probe == NULL)
        return;
    for (size_t i = 0; i < probe->num_products; i++) {
        ph__row_statistics_close(&probe->products[i].statistics);
        free(probe->products[i].rows);
    }
    free(probe->products);
    free(probe->product_of);
    free(probe);
}
