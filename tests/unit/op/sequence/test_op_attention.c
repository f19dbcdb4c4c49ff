#include "support/op_trial.h"

#include <math.h>
#include <string.h>

#include "graph/executor.h"

/* ---- what attention is, for one sample: q (n,H dk), k (m,H dk), v (m,H dv) ---- */

struct naive {
    size_t num_queries, num_keys, num_heads, key_dim, value_dim;
    double scale;
    const double *q, *k, *v;
};

static void attend(const struct naive *x, double *y)
{
    const size_t key_row = x->num_heads * x->key_dim, value_row = x->num_heads * x->value_dim;
    memset(y, 0, x->num_queries * value_row * sizeof *y);
    for (size_t row = 0; row < x->num_queries * x->num_heads; row++) {
        const size_t i = row / x->num_heads, h = row % x->num_heads;
        double weights[16], sum = 0;
        for (size_t j = 0; j < x->num_keys; j++) {
            double score = 0;
            for (size_t d = h * x->key_dim; d < (h + 1) * x->key_dim; d++)
                score += x->q[i * key_row + d] * x->k[j * key_row + d];
            weights[j] = exp(x->scale * score);
            sum += weights[j];
        }
        for (size_t j = 0; j < x->num_keys; j++)
            for (size_t d = h * x->value_dim; d < (h + 1) * x->value_dim; d++)
                y[i * value_row + d] += weights[j] / sum * x->v[j * value_row + d];
    }
}

/* ---- over fixed numbers of keys: columns of x are q (B,2,4), k (B,3,4), v (B,3,6) of two heads ---- */

enum { NUM_SAMPLES = 19, COLUMNS = 8 + 12 + 18, RESULTS = 12 };

static ph_value three_parts(struct ph_builder *builder, ph_value x, double scale)
{
    ph_value q = ph_slice(builder, x, 1, 0, 8), k = ph_slice(builder, x, 1, 8, 12);
    q = ph_reshape(builder, q, 2, (size_t[]){2, 4});
    k = ph_reshape(builder, k, 2, (size_t[]){3, 4});
    ph_value v = ph_reshape(builder, ph_slice(builder, x, 1, 20, 18), 2, (size_t[]){3, 6});
    return ph_attention(builder, q, k, v, 0,
        &(struct ph_attention_options){
            .size = sizeof(struct ph_attention_options), .num_heads = 2, .scale = scale});
}

static ph_value over_keys(struct ph_builder *builder, ph_value x)
{
    return three_parts(builder, x, 0);
}

static ph_value over_keys_as_they_are(struct ph_builder *builder, ph_value x)
{
    return three_parts(builder, x, 1);
}

static void fill(size_t n, double *x, ph_real *rounded)
{
    for (size_t i = 0; i < n; i++) {
        rounded[i] = (ph_real)(2 * sin((double)(i * i) + 1));
        x[i] = (double)rounded[i];
    }
}

static void attention_is_a_weighted_mean_of_the_values(void **state)
{
    (void)state;
    static double x[NUM_SAMPLES * COLUMNS], expected[NUM_SAMPLES * RESULTS];
    static ph_real dense[NUM_SAMPLES * COLUMNS];
    fill(NUM_SAMPLES * COLUMNS, x, dense);
    for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
        for (size_t b = 0; b < NUM_SAMPLES; b++) {
            const double *row = x + b * COLUMNS, scale = is_scaled ? 1 / sqrt(2) : 1;
            attend(&(struct naive){2, 3, 2, 2, 3, scale, row, row + 8, row + 20}, expected + b * RESULTS);
        }
        struct op_trial trial = {.batch = {.num_samples = NUM_SAMPLES, .num_dense = COLUMNS, .dense = dense},
            .build = is_scaled ? over_keys : over_keys_as_they_are,
            .num_expected = NUM_SAMPLES * RESULTS,
            .expected = expected,
            .tolerance = 1e-5};
        check_trial(&trial);
        trial.mode = PH_INFERENCE;
        check_trial(&trial);
    }
    check_trial(&(struct op_trial){.batch = {.num_dense = COLUMNS}, .build = over_keys});
}

/* ---- over histories of 0 to 4 items: rows of k, q and v of item i are its weight times a vector, and
 * another ---- */

static const uint32_t offsets[] = {0, 3, 3, 7, 8, 8};
static const int32_t lengths[] = {3, 0, 4, 1, 0};
static const int64_t ids[8];
enum { NUM_BAGS = 5, NUM_ITEMS = 8, WIDTH = 4 };
/* weight (4,1) and bias (4) of the layer that makes the rows */
static const ph_real layer[] = {1, (ph_real)0.5, -1, 2, 0, 1, (ph_real)0.25, -1};

static ph_value rows_of_items(struct ph_builder *builder)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    ph_value weights = ph_reshape(builder, ph_input_id_weights(builder), 1, (size_t[]){1});
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){WIDTH, 1}, zeros);
    return ph_linear(
        builder, weights, weight, ph_parameter(builder, "bias", 1, (size_t[]){WIDTH}, zeros), PH_IDENTITY);
}

static const struct ph_attention_options two_heads = {.size = sizeof two_heads, .num_heads = 2};

static ph_value of_samples(struct ph_builder *builder, ph_value x)
{
    ph_value rows = rows_of_items(builder);
    ph_value q = ph_reshape(builder, x, 2, (size_t[]){2, WIDTH});
    return ph_attention(builder, q, rows, rows, ph_input_ids(builder, 1), &two_heads);
}

static ph_value of_items(struct ph_builder *builder, ph_value x)
{
    (void)x;
    ph_value rows = rows_of_items(builder);
    return ph_attention(builder, rows, rows, rows, ph_input_ids(builder, 1), &two_heads);
}

static struct op_trial trial_of_histories(bool is_self, double *rows)
{
    static double x[NUM_BAGS * 2 * WIDTH];
    static ph_real dense[NUM_BAGS * 2 * WIDTH], id_weights[NUM_ITEMS];
    static double expected[NUM_BAGS * 2 * WIDTH];
    fill(NUM_BAGS * 2 * WIDTH, x, dense);
    for (size_t i = 0; i < NUM_ITEMS; i++) {
        id_weights[i] = (ph_real)i / 4 - 1;
        for (size_t d = 0; d < WIDTH; d++)
            rows[i * WIDTH + d] = (double)id_weights[i] * (double)layer[d] + (double)layer[WIDTH + d];
    }
    for (size_t b = 0; b < NUM_BAGS; b++) {
        const size_t first = offsets[b] * WIDTH, length = offsets[b + 1] - offsets[b];
        attend(&(struct naive){is_self ? length : 2, length, 2, 2, 2, 1 / sqrt(2),
                   is_self ? rows + first : x + b * 2 * WIDTH, rows + first, rows + first},
            expected + (is_self ? first : b * 2 * WIDTH));
    }
    return (struct op_trial){.batch = {.num_samples = NUM_BAGS,
                                 .num_dense = 2 * WIDTH,
                                 .dense = dense,
                                 .num_sparse = 1,
                                 .num_ids = NUM_ITEMS,
                                 .lengths = lengths,
                                 .offsets = offsets,
                                 .ids = ids,
                                 .id_weights = id_weights},
        .parameters = layer,
        .build = is_self ? of_items : of_samples,
        .num_expected = (is_self ? NUM_ITEMS : NUM_BAGS * 2) * WIDTH,
        .expected = expected,
        .tolerance = 1e-5};
}

static void samples_attend_to_their_own_history_and_to_none_get_zeros(void **state)
{
    (void)state;
    double rows[NUM_ITEMS * WIDTH];
    for (int is_self = 0; is_self < 2; is_self++) {
        struct op_trial trial = trial_of_histories(is_self != 0, rows);
        check_trial(&trial);
        trial.mode = PH_INFERENCE;
        check_trial(&trial);
        trial.batch.num_samples = trial.batch.num_ids = trial.num_expected = 0;
        check_trial(&trial);
    }
}

/* ---- a sample and the batch around it ---- */

static ph_real whole[PH_ISA_COUNT][NUM_SAMPLES * RESULTS]; /* what a batch gave, by instruction set */
static size_t first_sample;

static const ph_real *result(struct ph_workspace *workspace)
{
    const ph_real *y = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "y", &y, &shape));
    return y;
}

static ph_real *whole_of(const struct ph_workspace *workspace)
{
    return whole[workspace->executor->backend->kernels->isa];
}

static void keep_results(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    memcpy(whole_of(workspace), result(workspace), sizeof whole[0]);
}

static void assert_the_same_results(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    assert_memory_equal(
        result(workspace), whole_of(workspace) + first_sample * RESULTS, RESULTS * sizeof(ph_real));
}

static void a_sample_does_not_depend_on_the_batch_around_it(void **state)
{
    (void)state;
    static double x[NUM_SAMPLES * COLUMNS], anything[NUM_SAMPLES * RESULTS];
    static ph_real dense[NUM_SAMPLES * COLUMNS];
    fill(NUM_SAMPLES * COLUMNS, x, dense);
    struct op_trial trial = {.batch = {.num_samples = NUM_SAMPLES, .num_dense = COLUMNS, .dense = dense},
        .build = over_keys,
        .num_expected = NUM_SAMPLES * RESULTS,
        .expected = anything,
        .tolerance = 10,
        .check = keep_results};
    check_trial(&trial);
    trial.batch.num_samples = 1;
    trial.num_expected = RESULTS;
    trial.check = assert_the_same_results;
    for (first_sample = 0; first_sample < NUM_SAMPLES; first_sample++) {
        trial.batch.dense = dense + first_sample * COLUMNS;
        check_trial(&trial);
    }
}

/* ---- costs ---- */

static double flops; /* as the trial's attention should say */

static void assert_flops(struct ph_workspace *workspace, const struct ph_state *state)
{
    const struct ph__graph *graph = &workspace->executor->program->graph;
    struct ph__operand operands[2 * PH_MAX_OPERANDS];
    struct ph__call call;
    struct ph__cost cost = {0};
    (void)state;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        if (strcmp(graph->nodes[i].op->name, "attention") != 0)
            continue;
        ph__workspace_call(workspace, i, workspace->extents, operands, &call);
        call.node->op->cost(&call, &cost);
    }
    assert_near(cost.flops, flops, 0, 0);
}

/* Two for each number of a pair's key and value. */
static void the_cost_counts_the_pairs_of_queries_and_keys(void **state)
{
    (void)state;
    static double anything[NUM_SAMPLES * RESULTS], rows[NUM_ITEMS * WIDTH];
    static const ph_real dense[NUM_SAMPLES * COLUMNS];
    flops = 2.0 * NUM_SAMPLES * 2 * (2 * 3) * (2 + 3);
    check_trial(
        &(struct op_trial){.batch = {.num_samples = NUM_SAMPLES, .num_dense = COLUMNS, .dense = dense},
            .build = over_keys,
            .num_expected = NUM_SAMPLES * RESULTS,
            .expected = anything,
            .check = assert_flops});
    struct op_trial trial = trial_of_histories(false, rows);
    flops = 2.0 * 2 * (2 * NUM_ITEMS) * (2 + 2);
    trial.check = assert_flops;
    check_trial(&trial);
    trial = trial_of_histories(true, rows);
    flops = 2.0 * 2 * (NUM_ITEMS * NUM_ITEMS / (double)NUM_BAGS) * (2 + 2);
    trial.check = assert_flops;
    check_trial(&trial);
}

/* ---- errors ---- */

static ph_value thirds(struct ph_builder *builder, ph_value x, size_t num_heads, double scale)
{
    ph_value rows = ph_reshape(builder, x, 2, (size_t[]){3, 4});
    return ph_attention(builder, rows, rows, rows, 0,
        &(struct ph_attention_options){
            .size = sizeof(struct ph_attention_options), .num_heads = num_heads, .scale = scale});
}

static ph_value of_no_heads(struct ph_builder *builder, ph_value x)
{
    return thirds(builder, x, 0, 0);
}

static ph_value of_three_heads(struct ph_builder *builder, ph_value x)
{
    return thirds(builder, x, 3, 0);
}

static ph_value of_a_negative_scale(struct ph_builder *builder, ph_value x)
{
    return thirds(builder, x, 2, -1);
}

static ph_value of_other_rows(struct ph_builder *builder, ph_value x)
{
    (void)x;
    ph_value rows = ph_input_labels(builder, 4);
    return ph_attention(builder, rows, rows, rows, ph_input_ids(builder, 1), &two_heads);
}

static ph_value of_two_features(struct ph_builder *builder, ph_value x)
{
    ph_value rows = rows_of_items(builder), q = ph_reshape(builder, x, 2, (size_t[]){3, 4});
    return ph_attention(builder, q, rows, rows, ph_input_ids(builder, 2), &two_heads);
}

static void attention_refuses_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(of_no_heads, "attention: 0 heads, scale 0: needs at least one head");
    assert_refused(
        of_a_negative_scale, "attention: 2 heads, scale -1: needs at least one head, and a finite scale");
    assert_refused(of_three_heads, "K and M divisible by the heads; got (B,3,4), (B,3,4), (B,3,4)");
    assert_refused(of_other_rows, "q (B,n,K) or (I,K), k (I,K), v (I,M), B bags of I items");
    assert_refused(of_two_features, "q (B,n,K) or (I,K), k (I,K), v (I,M), B bags of I items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_a_weighted_mean_of_the_values),
        cmocka_unit_test(samples_attend_to_their_own_history_and_to_none_get_zeros),
        cmocka_unit_test(a_sample_does_not_depend_on_the_batch_around_it),
        cmocka_unit_test(the_cost_counts_the_pairs_of_queries_and_keys),
        cmocka_unit_test(attention_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
