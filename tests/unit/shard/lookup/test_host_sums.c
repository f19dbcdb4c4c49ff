/* Tables whose rows are cut over the ranks of a host: sums are made there, and the model learnt is that of
 * one rank. */
#include "unit/shard/shard_learner.h"

/* Over four ranks of a host, b has rows on three of them, c on two, e on one. */
static const struct ph_table_slice few_rows[NUM_FEATURES] = {
    {"a", 50}, {"b", 3}, {"c", 2}, {"d", 20}, {"e", 1}, {"f", 90}};

static void add_machine_of(struct ph_builder *builder, const struct training *training, ph_value table,
    ph_value *vectors_out, ph_value *logits_out)
{
    const ph_value weights = training->has_weights ? ph_input_id_weights(builder) : 0;
    *vectors_out = ph_embedding_bag(
        builder, ph_input_ids(builder, NUM_FEATURES), table, training->pooling, weights); /* (B,6,D) */
    const ph_value s = ph_sum_features(builder, *vectors_out);                            /* (B,D) */
    *logits_out = ph_row_dots(builder, s, s);
}

/* With two hosts of one to four ranks, and four of two. */
static void check_hosts(struct training *training, double tolerance)
{
    for (training->ranks_per_host = 1; training->ranks_per_host <= 4; training->ranks_per_host++)
        check(training, 2 * training->ranks_per_host, tolerance);
    training->ranks_per_host = 2;
    check(training, 8, tolerance);
}

static void not_all_ranks_of_a_host_need_have_rows(void **state)
{
    (void)state;
    static const char *const plans[] = {"default: {kind: table_row_wise}\n", "default: {kind: grid}\n",
        "default: {kind: table_row_wise, host: 1}\n"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct training training = {
            .plan = plans[i], .slices = few_rows, .add = add_machine_of, .optimizer = PH_ADAGRAD};
        check_hosts(&training, 1e-5);
        training.pooling = PH_POOL_MEAN;
        training.has_weights = true;
        training.optimizer = PH_ROWWISE_ADAGRAD;
        check_hosts(&training, 1e-5);
    }
}

/* Vectors that go straight to who asks and such that are summed before, of the same width and of others. */
static const char mixed[] = "tables:\n  a: {kind: table_row_wise, host: 1}\n  b: {kind: row_wise}\n  c: "
                            "{kind: table_row_wise, host: 0}\n"
                            "  d: {kind: grid}\n  e: {kind: data_parallel}\n  f: {kind: column_wise}\n";

static void kinds_may_be_mixed_in_one_lookup(void **state)
{
    (void)state;
    struct training training = {.plan = mixed, .has_weights = true, .optimizer = PH_MOMENTUM};
    check_hosts(&training, 1e-5);
    training.pooling = PH_POOL_MEAN;
    training.has_two_tables = true;
    check_hosts(&training, 1e-5);
}

static void fewer_bits_on_the_wire_cost_few_digits(void **state)
{
    (void)state;
    static const double tolerances[PH_WIRE_COUNT] = {0, 1e-2, 5e-2, 1e-1};
    for (enum ph_wire_format wire = PH_WIRE_FP16; wire < PH_WIRE_COUNT; wire++)
        check(&(struct training){.plan = mixed, .wire = wire, .ranks_per_host = 2}, 8, tolerances[wire]);
}

/* ---- twice the same ---- */

enum { WORLD = 8 };

struct recording {
    struct training training;
    const char *plan_path;
    ph_real vectors[NUM_STEPS][BATCH * NUM_FEATURES * DIM];
    double losses[WORLD][NUM_STEPS];
};

static ph_status record(
    struct recording *recording, struct ph_comm *comm, const struct ph_distribution *distribution)
{
    const size_t rank = ph_comm_rank(comm), row = NUM_FEATURES * DIM;
    struct learner *learner = calloc(1, sizeof *learner);
    ph_status status = make_learner(&recording->training, distribution, learner);
    for (size_t step = 0; step < NUM_STEPS && status == PH_OK; step++) {
        const size_t first = batch_sizes[step] * rank / WORLD, last = batch_sizes[step] * (rank + 1) / WORLD;
        status = take_step(learner, distribution, step, first, last);
        memcpy(recording->vectors[step] + first * row, learner->vectors[step] + first * row,
            (last - first) * row * sizeof(ph_real));
        recording->losses[rank][step] = learner->losses[step];
    }
    learner_fini(learner);
    free(learner);
    return status;
}

static ph_status record_rank(struct ph_comm *comm, void *context)
{
    struct recording *recording = context;
    const struct comparison comparison = {
        .training = &recording->training, .plan_path = recording->plan_path};
    struct ph__plan plan = {0};
    struct ph_distribution *distribution;
    const struct ph__distribution_options options = {
        .comm = comm, .plan = &plan, .bucket_bytes = 1 << 20, .overlaps = true};
    PH_TRY(read_plan(&comparison, comm, &plan));
    PH_TRY(ph__distribution_create(&options, &distribution));
    const ph_status status = record(recording, comm, distribution);
    ph__distribution_destroy(distribution);
    ph__plan_fini(&plan);
    return status;
}

static void sums_do_not_depend_on_which_message_comes_first(void **state)
{
    (void)state;
    struct recording *runs[2];
    char text[1024];
    snprintf(text, sizeof text, "version: 1\nworld_size: %d\n%s", WORLD, mixed);
    for (size_t i = 0; i < 2; i++) {
        runs[i] = calloc(1, sizeof *runs[i]);
        assert_non_null(runs[i]);
        runs[i]->training = (struct training){.plan = mixed};
        runs[i]->plan_path = test_write_file("plan.yaml", text);
        const struct thread_ranks ranks = {
            .world_size = WORLD, .seed = test_seed() + i, .options = {.ranks_per_host = 4}};
        thread_ranks_run(&ranks, record_rank, runs[i], NULL);
    }
    assert_memory_equal(runs[0]->vectors, runs[1]->vectors, sizeof runs[0]->vectors);
    assert_memory_equal(runs[0]->losses, runs[1]->losses, sizeof runs[0]->losses);
    free(runs[0]);
    free(runs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_all_ranks_of_a_host_need_have_rows),
        cmocka_unit_test(kinds_may_be_mixed_in_one_lookup),
        cmocka_unit_test(fewer_bits_on_the_wire_cost_few_digits),
        cmocka_unit_test(sums_do_not_depend_on_which_message_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
