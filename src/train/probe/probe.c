#include "train/probe/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
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

/* Tells whether distributions of the site are learnt. */
static bool is_learnt(const struct ph__probe_weight *weight)
{
    return ph__max(weight->out_features, weight->in_features) <= PH_PROBE_MOST_WIDTH;
}

static size_t find_weight(const struct ph__probe *probe, const char *name)
{
    size_t weight = 0;
    while (weight < probe->num_weights && strcmp(probe->weights[weight].name, name) != 0)
        weight++;
    return weight;
}

ph_status ph__probe_add_product(struct ph__probe *probe, struct ph__gemm *gemm,
    const struct ph__probe_weight *weight, bool is_backward, struct ph__probe_product **product_out)
{
    const size_t out = weight->out_features, in = weight->in_features;
    const size_t index = find_weight(probe, weight->name);
    struct ph__probe_product *product = &probe->products[probe->num_products];
    *product = (struct ph__probe_product){.weight = index,
        .is_backward = is_backward,
        .terms = is_backward ? out : in,
        .outputs = is_backward ? in : out,
        .random = {.key = {.stream = ph__hash_name(weight->name), .step = is_backward}}};
    probe->num_products++;
    if (index == probe->num_weights)
        probe->weights[probe->num_weights++] = (struct ph__probe_weight){
            ph__arena_strdup(&probe->arena, weight->name), .out_features = out, .in_features = in};
    product->rows = calloc(PH_PROBE_ROWS * product->terms, sizeof *product->rows);
    if (product->rows == NULL || probe->weights[index].name == NULL)
        return ph__out_of_memory("rows of a product");
    *product_out = product;
    return is_learnt(weight) ? ph__row_statistics_open(&product->statistics, product->terms, gemm) : PH_OK;
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
        if (weight == NULL)
            continue;
        const struct ph__probe_weight of = {
            weight->name, weight->type.dims[0].extent, weight->type.dims[1].extent, {0}};
        struct ph__probe_product *product;
        probe->product_of[i] = probe->num_products;
        PH_TRY(ph__probe_add_product(probe, gemm, &of, is_backward, &product));
    }
    return PH_OK;
}

/* ---- the hook ---- */

/* Keeps each recent row with the same chance: the first ones, then one in the place of another. */
static void keep_rows(struct ph__probe_product *product, size_t rows, const ph_real *x)
{
    for (size_t r = 0; r < rows; r++) {
        const uint64_t seen = ph__min(product->num_seen + r, PH_PROBE_RECENT);
        const uint64_t place = product->num_rows < PH_PROBE_ROWS ? product->num_rows++
                                                                 : ph__rng_below(&product->random, seen + 1);
        if (place < PH_PROBE_ROWS)
            memcpy(product->rows + place * product->terms, x + r * product->terms,
                product->terms * sizeof *product->rows);
    }
    product->num_seen += rows;
}

static ph_status see_rows(
    struct ph__probe *probe, struct ph__probe_product *product, const struct ph__call *call)
{
    const double begun_s = ph__clock_seconds();
    const ph_real *x = call->inputs[0].data;
    const size_t rows = ph__min(ph__vectors(&call->inputs[0]), PH_PROBE_BATCH_ROWS);
    keep_rows(product, rows, x);
    for (size_t i = 0; i < rows * product->terms; i++)
        product->amax = fmax(product->amax, fabs((double)x[i]));
    if (product->statistics.width > 0)
        PH_TRY(ph__row_statistics_add(&product->statistics, call->backend->gemm, rows, x));
    probe->seconds += ph__clock_seconds() - begun_s;
    return PH_OK;
}

/* Sees the rows of a product before it runs, since it may write over them. Other nodes run as they are. */
static ph_status run(const struct ph__simulator *hook, struct ph__call *call)
{
    struct ph__probe *probe = (struct ph__probe *)(uintptr_t)hook;
    const size_t node = (size_t)(call->node - probe->program->graph.nodes);
    const size_t index = node < probe->program->graph.num_nodes ? probe->product_of[node] : SIZE_MAX;
    if (index != SIZE_MAX && call->inputs[0].type->dtype == PH_REAL)
        PH_TRY(see_rows(probe, &probe->products[index], call));
    return call->node->op->run(call);
}

const struct ph__simulator *ph__probe_hook(const struct ph__probe *probe)
{
    return &probe->hook;
}

/* ---- weights ---- */

ph_status ph__probe_see_weight(struct ph__probe *probe, const struct ph_store *store)
{
    const double begun_s = ph__clock_seconds();
    struct ph__probe_weight *weight = &probe->weights[probe->num_weights_seen++ % probe->num_weights];
    struct ph_tensor tensor;
    if (!is_learnt(weight))
        return PH_OK;
    PH_TRY(ph_store_find(store, weight->name, &tensor));
    if (weight->distribution.rows == 0)
        PH_TRY(ph__matrix_normal_open(
            &weight->distribution, weight->out_features, weight->in_features, PH_PROBE_MOMENTUM));
    ph__matrix_normal_add(&weight->distribution, tensor.data);
    probe->seconds += ph__clock_seconds() - begun_s;
    return PH_OK;
}

/* ---- life ---- */

ph_status ph__probe_make(size_t most_products, struct ph__probe **probe_out)
{
    struct ph__probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return ph__out_of_memory("a probe");
    *probe = (struct ph__probe){.hook = {run},
        .products = calloc(most_products + 1, sizeof *probe->products),
        .weights = calloc(most_products + 1, sizeof *probe->weights)};
    *probe_out = probe;
    if (probe->products != NULL && probe->weights != NULL)
        return PH_OK;
    ph__probe_destroy(probe);
    return ph__out_of_memory("a probe");
}

ph_status ph__probe_create(
    const struct ph_program *program, struct ph__gemm *gemm, struct ph__probe **probe_out)
{
    const size_t num_nodes = program->graph.num_nodes;
    struct ph__probe *probe;
    PH_TRY(ph__probe_make(num_nodes, &probe));
    probe->program = program;
    probe->product_of = calloc(num_nodes + 1, sizeof *probe->product_of);
    const ph_status status =
        probe->product_of != NULL ? find_products(probe, gemm) : ph__out_of_memory("a probe");
    if (status == PH_OK)
        *probe_out = probe;
    else
        ph__probe_destroy(probe);
    return status;
}

uint64_t ph__probe_bytes(const struct ph__probe *probe)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < probe->num_products; i++) {
        const struct ph__probe_product *product = &probe->products[i];
        bytes += PH_PROBE_ROWS * product->terms * sizeof(ph_real) +
                 ph__row_statistics_bytes(&product->statistics, PH_PROBE_BATCH_ROWS);
    }
    for (size_t i = 0; i < probe->num_weights; i++)
        if (is_learnt(&probe->weights[i]))
            bytes += ph__matrix_normal_bytes(probe->weights[i].out_features, probe->weights[i].in_features);
    return bytes;
}

void ph__probe_destroy(struct ph__probe *probe)
{
    if (probe == NULL)
        return;
    for (size_t i = 0; i < probe->num_products; i++) {
        ph__row_statistics_close(&probe->products[i].statistics);
        free(probe->products[i].rows);
    }
    for (size_t i = 0; i < probe->num_weights; i++)
        ph__matrix_normal_close(&probe->weights[i].distribution);
    free(probe->products);
    free(probe->weights);
    free(probe->product_of);
    ph__arena_fini(&probe->arena);
    free(probe);
}
