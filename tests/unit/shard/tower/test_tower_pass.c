/* Towers on their hosts: what ranks learn is what one rank learns. */
#include "unit/shard/shard_learner.h"

enum { TOWER_DIM = 8 };

/* ---- the models: features a to c are tower x, d to f tower y ---- */

static ph_value identity(struct ph_builder *builder, ph_value x)
{
    (void)builder;
    return x;
}

/* Three vectors of TOWER_DIM numbers, linear in all of the tower's: (B,3,TOWER_DIM). */
static ph_value linear(struct ph_builder *builder, ph_value x)
{
    const size_t width = 3 * TOWER_DIM;
    const ph_value weight =
        ph_parameter(builder, "weight", 2, (size_t[]){width, 3 * DIM}, (struct ph_init){PH_INIT_NORMAL, .2});
    const ph_value bias = ph_parameter(builder, "bias", 1, &width, (struct ph_init){PH_INIT_NORMAL, .2});
    x = ph_linear(builder, ph_reshape(builder, x, 1, (size_t[]){3 * DIM}), weight, bias, PH_RELU);
    return ph_reshape(builder, x, 2, (size_t[]){3, TOWER_DIM});
}

static ph_value tower(struct ph_builder *builder, const struct training *training, const char *name,
    size_t first, ph_value (*layers)(struct ph_builder *builder, ph_value x))
{
    char table[32], value[32];
    snprintf(table, sizeof table, "table.%s", name);
    snprintf(value, sizeof value, "tower.%s", name);
    ph_value x = look_up(builder, training, table, first, first + NUM_FEATURES / 2);
    ph_builder_push_scope(builder, value);
    x = layers(builder, x);
    ph_builder_pop_scope(builder);
    ph_name_value(builder, value, x);
    return x;
}

/* Adds the towers and a factorisation machine of their vectors, without dense parameters. */
static void add_machine_on(struct ph_builder *builder, const struct training *training,
    ph_value (*layers)(struct ph_builder *builder, ph_value x), ph_value *vectors_out, ph_value *logits_out)
{
    const ph_value both[] = {
        tower(builder, training, "x", 0, layers), tower(builder, training, "y", 3, layers)};
    *vectors_out = ph_concat(builder, 2, both, 1);
    const ph_value s = ph_sum_features(builder, *vectors_out);
    *logits_out = ph_row_dots(builder, s, s);
}

static void add_identity_towers(
    struct ph_builder *builder, const struct training *training, ph_value *vectors_out, ph_value *logits_out)
{
    add_machine_on(builder, training, identity, vectors_out, logits_out);
}

static void add_linear_towers(
    struct ph_builder *builder, const struct training *training, ph_value *vectors_out, ph_value *logits_out)
{
    add_machine_on(builder, training, linear, vectors_out, logits_out);
}

#define IDENTITY(name_)                             \
    {                                               \
        .name = name_, .num_vectors = 3, .dim = DIM \
    }
#define LINEAR(name_)                                                                                   \
    {                                                                                                   \
        .name = name_, .num_vectors = 3, .dim = TOWER_DIM, .num_numbers = 3 * TOWER_DIM * (3 * DIM + 1) \
    }
static const struct ph__tower_facts identity_facts[NUM_FEATURES] = {
    IDENTITY("x"), IDENTITY("x"), IDENTITY("x"), IDENTITY("y"), IDENTITY("y"), IDENTITY("y")};
static const struct ph__tower_facts linear_facts[NUM_FEATURES] = {
    LINEAR("x"), LINEAR("x"), LINEAR("x"), LINEAR("y"), LINEAR("y"), LINEAR("y")};

static struct training identity_training(const char *plan)
{
    return (struct training){
        .plan = plan, .optimizer = PH_ADAGRAD, .add_towers = add_identity_towers, .towers = identity_facts};
}

static struct training linear_training(const char *plan)
{
    return (struct training){
        .plan = plan, .optimizer = PH_ADAGRAD, .add_towers = add_linear_towers, .towers = linear_facts};
}

/* ---- worlds: hosts x ranks of a host ---- */

static const struct world {
    size_t num_hosts, num_local;
} hosts[] = {{2, 1}, {2, 2}, {3, 2}, {2, 4}, {4, 2}};

static void check_hosts(struct training *training, double tolerance)
{
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        training->ranks_per_host = hosts[i].num_local;
        check(training, hosts[i].num_hosts * hosts[i].num_local, tolerance);
    }
}

static const char whole[] = "default: {kind: table_wise}\ntowers: {x: 0, y: 1}\n";
static const char cut[] = "default: {kind: table_row_wise}\ntowers: {x: 1, y: 0}\n";
static const char mixed[] = "tables:\n  b: {kind: table_wise}\n  d: {kind: table_wise}\n"
                            "default: {kind: table_row_wise}\ntowers: {x: 0, y: 1}\n";

static void identity_towers_of_whole_tables_have_the_same_bits(void **state)
{
    (void)state;
    struct training training = identity_training(whole);
    check_hosts(&training, 0);
    training.pooling = PH_POOL_MEAN;
    training.has_weights = true;
    check_hosts(&training, 0);
}

static void towers_learn_what_one_rank_learns(void **state)
{
    (void)state;
    static const char *const plans[] = {whole, cut, mixed};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct training training = identity_training(plans[i]);
        check_hosts(&training, 1e-5);
        training = linear_training(plans[i]);
        check_hosts(&training, 1e-5);
    }
}

static void hosts_may_have_several_towers_or_none(void **state)
{
    (void)state;
    static const char *const plans[] = {"default: {kind: table_row_wise}\ntowers: {x: 1, y: 1}\n",
        "default: {kind: table_wise}\ntowers: {x: 0}\n", "default: {kind: row_wise}\n",
        "tables:\n  d: {kind: data_parallel}\ndefault: {kind: table_row_wise}\ntowers: {x: 1}\n"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct training training = linear_training(plans[i]);
        check_hosts(&training, 1e-5);
    }
    struct training one_host = linear_training("default: {kind: table_wise}\ntowers: {x: 0, y: 0}\n");
    check(&one_host, 4, 1e-5);
}

static void fewer_bits_on_the_wire_cost_few_digits(void **state)
{
    (void)state;
    static const double tolerances[PH_WIRE_COUNT] = {0, 1e-2, 5e-2, 1e-1};
    for (enum ph_wire_format wire = PH_WIRE_FP16; wire < PH_WIRE_COUNT; wire++) {
        struct training training = linear_training(mixed);
        training.optimizer = PH_SGD;
        training.wire = wire;
        training.ranks_per_host = 2;
        check(&training, 4, tolerances[wire]);
    }
}

/* Runs four ranks on two hosts against one rank, which need not learn the same. */
static void run_four(const struct training *training, struct thread_rank_end *ends_out)
{
    struct learner *alone = calloc(1, sizeof *alone);
    char text[256];
    snprintf(text, sizeof text, "version: 1\nworld_size: 4\n%s", training->plan);
    assert_ok(make_learner(training, NULL, alone));
    for (size_t step = 0; step < NUM_STEPS; step++)
        assert_ok(take_step(alone, NULL, step, 0, batch_sizes[step]));
    struct comparison comparison = {training, alone, test_write_file("plan.yaml", text), 1e-3, NULL};
    const struct thread_ranks ranks = {.world_size = 4, .options = {.ranks_per_host = 2}};
    thread_ranks_run(&ranks, run_rank, &comparison, ends_out);
    learner_fini(alone);
    free(alone);
}

static void means_of_cut_rows_are_refused(void **state)
{
    (void)state;
    struct training training = linear_training(cut);
    struct thread_rank_end ends[4];
    training.pooling = PH_POOL_MEAN;
    run_four(&training, ends);
    for (size_t rank = 0; rank < 4; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_non_null(strstr(ends[rank].text, "model.pooling 'mean' needs tables with whole rows"));
    }
}

/* ---- a wrong sum is noticed ---- */

static void sums_of_tower_gradients_over_all_ranks_are_wrong(void **state)
{
    (void)state;
    struct training training = linear_training(whole);
    struct thread_rank_end ends[4];
    training.sums_towers_over_world = true;
    run_four(&training, ends);
    for (size_t rank = 0; rank < 4; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_BUG);
        assert_non_null(strstr(ends[rank].text, "tower."));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_towers_of_whole_tables_have_the_same_bits),
        cmocka_unit_test(towers_learn_what_one_rank_learns),
        cmocka_unit_test(hosts_may_have_several_towers_or_none),
        cmocka_unit_test(fewer_bits_on_the_wire_cost_few_digits),
        cmocka_unit_test(means_of_cut_rows_are_refused),
        cmocka_unit_test(sums_of_tower_gradients_over_all_ranks_are_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
