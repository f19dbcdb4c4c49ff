#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "op/sequence/aggregation.h"
#include "support/op_trial.h"

enum { MOST_NODES = 1500, MOST_WIDTH = 70, MOST_ITEMS = 80000, MOST_RUNS = 16 };

/* A graph of num_nodes nodes, whose rows are x's first `width` columns; `width` more are the gradient. Every
 * fifth node has no neighbours; node 3 has two multiples of 577, node 4 more than a block. Edge i -> j has
 * weight source_weights[j]. */
static struct {
    size_t num_nodes, width;
    struct ph_aggregate_options options;
    bool has_weights;
    uint32_t offsets[MOST_NODES + 1];
    int32_t lengths[MOST_NODES];
    int64_t ids[MOST_ITEMS];
    ph_real x[MOST_NODES * 2 * MOST_WIDTH];
    ph_real source_weights[MOST_NODES];
    double expected[MOST_NODES * 2 * MOST_WIDTH];
    ph_real bits[MOST_NODES * 2 * MOST_WIDTH]; /* of the last run */
    size_t num_runs;
} trial;

static ph_value edge_weights(struct ph_builder *builder, ph_value bags)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    const struct ph_table_slice slice = {"weights.f", trial.num_nodes};
    return ph_embedding_rows(builder, bags, ph_table(builder, "weights", 1, &slice, 1, zeros), 0, 0);
}

/* Aggregates the first half of x's columns, and the second half the other way round. */
static ph_value both_ways(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value weights = trial.has_weights ? edge_weights(builder, bags) : 0;
    const ph_value rows = ph_slice(builder, x, 1, 0, trial.width);
    ph_value transposed[2];
    const ph_value y = ph_aggregate(builder, rows, bags, weights, &trial.options);
    ph__transpose_neighbours(builder, bags, weights, &trial.options, transposed);
    const ph_value inputs[] = {
        ph_slice(builder, x, 1, trial.width, trial.width), transposed[0], transposed[1]};
    const ph_value dx = ph__emit1(builder, &ph__op_aggregate_backward, NULL, NULL, 0, 3, inputs);
    return ph_concat(builder, 2, (ph_value[]){y, dx}, 1);
}

/* ---- the formulas of phloem/kernel.h ---- */

static size_t chosen_of(const struct ph_sampling *sampling, size_t d)
{
    if (sampling->strategy == PH_SAMPLING_RATE)
        return (size_t)ceil(sampling->rate * (double)d);
    return sampling->width > 0 && sampling->width < d ? sampling->width : d;
}

static size_t prime_of(uint32_t seed, size_t d)
{
    static const size_t primes[] = {577, 769, 983, 1193, 1429, 1619, 1871, 2089, 2339, 2579};
    size_t i = seed % 10;
    while (d % primes[i] == 0)
        i = (i + 1) % 10;
    return primes[i];
}

static size_t place_in_runs(size_t d, size_t c, size_t s)
{
    const size_t wanted = d <= 2 * c ? 4 : d <= 36 * c ? 8 : d <= 54 * c ? 16 : 32;
    const size_t num_runs = wanted < c ? wanted : c;
    size_t run = 0, begin = 0, length = c / num_runs + (c % num_runs > 0);
    while (s >= begin + length) {
        begin += length;
        run++;
        length = c / num_runs + (run < c % num_runs);
    }
    return 1429 * run % (d - length + 1) + s - begin;
}

static size_t place_of(const struct ph_sampling *sampling, size_t d, size_t c, size_t s)
{
    if (c == d)
        return s;
    const uint64_t q = ((uint64_t)s * s + sampling->seed) % 21767;
    switch (sampling->strategy) {
    case PH_SAMPLING_STRIDE:
    case PH_SAMPLING_RATE:
        return prime_of(sampling->seed, d) * s % d;
    case PH_SAMPLING_RESIDUE:
        return (size_t)(s <= 10883 ? q : 21767 - q) % d;
    case PH_SAMPLING_AES:
        return place_in_runs(d, c, s);
    case PH_SAMPLING_EVEN:
        return s * d / c;
    default:
        return s;
    }
}

static double factor_of(size_t node, size_t d, size_t c)
{
    (void)node;
    if (trial.options.normalisation == PH_NORMALISE_MEAN)
        return 1 / (double)(c + trial.options.bias);
    const double share = (double)d / (double)c;
    return trial.options.normalisation == PH_NORMALISE_SYMMETRIC ? share / sqrt((double)d) : share;
}

static double edge_factor(size_t neighbour)
{
    const double degree = trial.lengths[neighbour] > 0 ? trial.lengths[neighbour] : 1;
    return (trial.has_weights ? (double)trial.source_weights[neighbour] : 1) /
           (trial.options.normalisation == PH_NORMALISE_SYMMETRIC ? sqrt(degree) : 1);
}

static void expect_edge(size_t node, size_t neighbour, double factor)
{
    const size_t row = 2 * trial.width;
    for (size_t k = 0; k < trial.width; k++) {
        trial.expected[node * row + k] += factor * (double)trial.x[neighbour * row + k];
        trial.expected[neighbour * row + trial.width + k] +=
            factor * (double)trial.x[node * row + trial.width + k];
    }
}

static void expect(void)
{
    memset(trial.expected, 0, sizeof trial.expected);
    for (size_t node = 0; node < trial.num_nodes; node++) {
        const size_t d = (size_t)trial.lengths[node], c = chosen_of(&trial.options.sampling, d);
        for (size_t s = 0; s < c; s++) {
            const size_t place = place_of(&trial.options.sampling, d, c, s);
            const size_t neighbour = (size_t)trial.ids[trial.offsets[node] + place];
            expect_edge(node, neighbour, factor_of(node, d, c) * edge_factor(neighbour));
        }
    }
}

/* ---- trials ---- */

static void draw(size_t num_nodes, size_t width, size_t most_neighbours)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    trial.num_nodes = num_nodes;
    trial.width = width;
    for (size_t i = 0; i < num_nodes * 2 * width; i++)
        trial.x[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t node = 0; node < num_nodes; node++) {
        size_t d = node % 5 == 2 ? 0 : ph__rng_below(&random, most_neighbours + 1);
        if (most_neighbours > 10 && (node == 3 || node == 4))
            d = node == 3 ? 2 * 577 : 9001;
        trial.lengths[node] = (int32_t)d;
        trial.offsets[node + 1] = trial.offsets[node] + (uint32_t)d;
        trial.source_weights[node] = (ph_real)ph__rng_next_normal(&random);
    }
    assert_true(trial.offsets[num_nodes] <= MOST_ITEMS);
    for (size_t p = 0; p < trial.offsets[num_nodes]; p++)
        trial.ids[p] = (int64_t)ph__rng_below(&random, num_nodes);
}

static struct op_trial trial_of(void)
{
    const size_t num_nodes = trial.num_nodes;
    return (struct op_trial){.batch = {.num_samples = num_nodes,
                                 .num_dense = 2 * trial.width,
                                 .dense = trial.x,
                                 .num_sparse = 1,
                                 .num_ids = trial.offsets[num_nodes],
                                 .lengths = trial.lengths,
                                 .offsets = trial.offsets,
                                 .ids = trial.ids},
        .parameters = trial.has_weights ? trial.source_weights : NULL,
        .build = both_ways,
        .num_expected = num_nodes * 2 * trial.width,
        .expected = trial.expected,
        .tolerance = 1e-4};
}

static const ph_real *output(struct ph_workspace *workspace)
{
    const ph_real *y;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "y", &y, &shape));
    return y;
}

/* <A x, g> = <x, A' g> */
static void check_adjoint(const ph_real *y)
{
    const size_t row = 2 * trial.width;
    double forward = 0, backward = 0, size = 0;
    for (size_t node = 0; node < trial.num_nodes; node++)
        for (size_t k = 0; k < trial.width; k++) {
            const size_t rows = node * row + k, gradients = rows + trial.width;
            forward += (double)y[rows] * (double)trial.x[gradients];
            backward += (double)y[gradients] * (double)trial.x[rows];
            size += fabs((double)y[rows] * (double)trial.x[gradients]);
        }
    assert_near(forward, backward, 1e-6 * size, 0);
}

/* Compares with the run before: of one thread, when this one has three; without multiplications every ISA has
 * the same bits. */
static void compare_bits(struct ph_workspace *workspace, const struct ph_state *state)
{
    const ph_real *y = output(workspace);
    const size_t bytes = trial.num_nodes * 2 * trial.width * sizeof *y;
    const bool has_products = trial.has_weights || trial.options.normalisation == PH_NORMALISE_SYMMETRIC;
    (void)state;
    check_adjoint(y);
    for (size_t node = 0; trial.num_runs > 0 && !has_products && node < trial.num_nodes; node++)
        assert_memory_equal(
            y + node * 2 * trial.width, trial.bits + node * 2 * trial.width, trial.width * sizeof *y);
    if (trial.num_runs % 2 == 1)
        assert_memory_equal(y, trial.bits, bytes);
    memcpy(trial.bits, y, bytes);
    trial.num_runs++;
}

static void try_options(const struct ph_aggregate_options *options)
{
    trial.options = *options;
    trial.options.size = sizeof trial.options;
    for (int has_weights = 0; has_weights < 2; has_weights++) {
        trial.has_weights = has_weights;
        trial.num_runs = 0;
        expect();
        struct op_trial aggregate = trial_of();
        aggregate.check = compare_bits;
        check_trial(&aggregate);
    }
}

static void try_sampling(const struct ph_sampling *sampling)
{
    try_options(&(struct ph_aggregate_options){.sampling = *sampling});
    try_options(
        &(struct ph_aggregate_options){.sampling = *sampling, .normalisation = PH_NORMALISE_MEAN, .bias = 1});
    try_options(
        &(struct ph_aggregate_options){.sampling = *sampling, .normalisation = PH_NORMALISE_SYMMETRIC});
}

static void all_neighbours_are_summed_by_the_formula(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 4, 33, MOST_WIDTH}, nodes[] = {0, 1, 2, 700};
    for (size_t i = 0; i < 16; i++) {
        draw(nodes[i / 4], widths[i % 4], i / 4 == 3 ? 40 : 6);
        try_sampling(&(struct ph_sampling){0});
    }
}

static void each_strategy_chooses_by_its_formula(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4, 7, 32, 600};
    draw(MOST_NODES, 9, 40);
    for (size_t i = 0; i < 5; i++)
        for (int strategy = PH_SAMPLING_BUCKET; strategy <= PH_SAMPLING_EVEN; strategy++)
            if (strategy != PH_SAMPLING_RATE)
                try_sampling(&(struct ph_sampling){.width = sizes[i],
                    .strategy = (enum ph_sampling_strategy)strategy,
                    .seed = (uint32_t)i * 4000000000u});
    try_sampling(&(struct ph_sampling){.strategy = PH_SAMPLING_RATE, .rate = .25, .seed = 7});
    try_sampling(&(struct ph_sampling){.strategy = PH_SAMPLING_RATE, .rate = 1});
}

/* ---- as wide as the largest degree ---- */

static void keep_bits(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    memcpy(trial.bits, output(workspace), trial.num_nodes * 2 * trial.width * sizeof *trial.bits);
}

static void expect_bits(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    assert_memory_equal(
        output(workspace), trial.bits, trial.num_nodes * 2 * trial.width * sizeof *trial.bits);
}

/* The bits are those of the last ISA, of all ISAs where nothing is multiplied. */
static void a_width_of_the_largest_degree_is_no_sampling(void **state)
{
    (void)state;
    draw(MOST_NODES, 16, 40);
    trial.has_weights = false;
    trial.options = (struct ph_aggregate_options){.size = sizeof trial.options};
    expect();
    struct op_trial full = trial_of();
    full.check = keep_bits;
    check_trial(&full);
    for (int strategy = PH_SAMPLING_BUCKET; strategy <= PH_SAMPLING_EVEN; strategy++) {
        const bool is_rate = strategy == PH_SAMPLING_RATE;
        trial.options.sampling = (struct ph_sampling){.width = is_rate ? 0 : 9001,
            .rate = is_rate ? 1 : 0,
            .strategy = (enum ph_sampling_strategy)strategy};
        struct op_trial sampled = trial_of();
        sampled.check = expect_bits;
        check_trial(&sampled);
    }
}

/* ---- errors ---- */

static ph_status run_with(int64_t id, size_t node, size_t width)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = 2};
    const struct ph_aggregate_options aggregate = {.size = sizeof aggregate, .sampling.width = width};
    const struct op_trial given = trial_of();
    int64_t *changed = &trial.ids[trial.offsets[node + 1] - 1];
    const int64_t former = *changed;
    *changed = id;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    const ph_value x = ph_input_dense(builder, given.batch.num_dense);
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    ph_output(builder, "y", ph_aggregate(builder, x, bags, 0, &aggregate));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&options, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, given.batch.num_samples, given.batch.num_ids, &workspace));
    assert_ok(ph_workspace_bind(workspace, &given.batch, 1, 1));
    const ph_status status = ph_workspace_run(workspace, "forward");
    *changed = former;
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    return status;
}

static void a_neighbour_outside_the_batch_is_bad_data(void **state)
{
    (void)state;
    const int64_t bad[] = {700, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    draw(700, 5, 40);
    size_t node = 600;
    while (trial.lengths[node] < 9)
        node++;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "node %zu: neighbour %lld is not one of the batch's 700 nodes", node,
            (long long)bad[i]);
        assert_fails(run_with(bad[i], node, 0), PH_ERROR_DATA, wanted);
        assert_fails(run_with(bad[i], node, 9000), PH_ERROR_DATA, wanted);
        assert_ok(run_with(bad[i], node, 8)); /* not chosen */
    }
    assert_ok(run_with(699, node, 0));
}

static ph_value with_options(
    struct ph_builder *builder, ph_value x, const struct ph_aggregate_options *options)
{
    return ph_aggregate(builder, x, ph_feature_bags(builder, ph_input_ids(builder, 2), 0), 0, options);
}

static ph_value width_and_rate(struct ph_builder *builder, ph_value x)
{
    return with_options(builder, x,
        &(struct ph_aggregate_options){.size = sizeof(struct ph_aggregate_options),
            .sampling = {.width = 4, .rate = .5, .strategy = PH_SAMPLING_RATE}});
}

static ph_value rate_of_a_bucket(struct ph_builder *builder, ph_value x)
{
    return with_options(builder, x,
        &(struct ph_aggregate_options){
            .size = sizeof(struct ph_aggregate_options), .sampling = {.width = 4, .rate = .5}});
}

static ph_value bias_of_a_sum(struct ph_builder *builder, ph_value x)
{
    return with_options(
        builder, x, &(struct ph_aggregate_options){.size = sizeof(struct ph_aggregate_options), .bias = 1});
}

static ph_value ids_of_all_features(struct ph_builder *builder, ph_value x)
{
    return ph_aggregate(builder, x, ph_input_ids(builder, 2), 0,
        &(struct ph_aggregate_options){.size = sizeof(struct ph_aggregate_options)});
}

static ph_value learnt_weights(struct ph_builder *builder, ph_value x)
{
    const struct ph_aggregate_options options = {.size = sizeof options};
    const struct ph_table_slice slice = {"weights.f", 9};
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 2), 0);
    const ph_value table = ph_table(builder, "weights", 1, &slice, 1, (struct ph_init){PH_INIT_CONSTANT, 0});
    const ph_value y =
        ph_aggregate(builder, x, bags, ph_embedding_rows(builder, bags, table, 0, 0), &options);
    ph_value gradient;
    const ph_value loss = ph_squared_error(builder, y, ph_input_labels(builder, 12), 0);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 1, &table, &gradient);
    return gradient;
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refused(width_and_rate, "width 4, rate 0.5");
    assert_refused(rate_of_a_bucket, "width 4, rate 0.5");
    assert_refused(bias_of_a_sum, "bias 1");
    assert_refused(ids_of_all_features, "needs x (B,F), B bags of I ids, weights (I,1) or none");
    assert_refused(learnt_weights, "only x has a gradient");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_neighbours_are_summed_by_the_formula),
        cmocka_unit_test(each_strategy_chooses_by_its_formula),
        cmocka_unit_test(a_width_of_the_largest_degree_is_no_sampling),
        cmocka_unit_test(a_neighbour_outside_the_batch_is_bad_data),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
