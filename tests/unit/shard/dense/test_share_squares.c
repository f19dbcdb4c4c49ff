/* Row-wise Adagrad of tables whose columns are cut has the states, and the weights, of one rank's. */
#include "unit/shard/shard_learner.h"

/* Columns alone are cut; of one table slices lie in local tables of several widths, each with ranks of its
 * own. */
static const char column_cuts[] =
    "tables:\n  a: {kind: column_wise, ranks: [0, 1, 2]}\n  b: {kind: column_wise, ranks: [3, 0]}\n"
    "  c: {kind: column_wise, ranks: [2, 1, 0]}\n  d: {kind: column_wise, ranks: [1, 2, 3]}\n"
    "  e: {kind: table_wise, rank: 1}\n  f: {kind: column_wise}\n";

static void row_states_of_cut_columns_are_those_of_one_rank(void **state)
{
    (void)state;
    static const char *const kinds[] = {"column_wise", "table_column_wise"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char plan[64];
        snprintf(plan, sizeof plan, "default: {kind: %s}\n", kinds[i]);
        struct training training = {.plan = plan, .optimizer = PH_ROWWISE_ADAGRAD};
        check_worlds(&training, 0);
        training.has_two_tables = training.has_weights = true;
        check_worlds(&training, 0);
        training.ranks_per_host = 2;
        check(&training, 4, 0);
        check(&training, 8, 0);
    }
    check(&(struct training){.plan = column_cuts, .optimizer = PH_ROWWISE_ADAGRAD}, 4, 0);
    check(&(struct training){.plan = column_cuts,
              .optimizer = PH_ROWWISE_ADAGRAD,
              .has_two_tables = true,
              .pooling = PH_POOL_MEAN},
        4, 0);
}

static void row_states_move_by_what_the_optimizer_sees(void **state)
{
    (void)state;
    for (int variant = 0; variant < 16; variant++)
        check(&(struct training){.plan = column_cuts,
                  .optimizer = PH_ROWWISE_ADAGRAD,
                  .reads_gradient = (variant & 1) != 0,
                  .is_fused = (variant & 1) == 0,
                  .l2 = (variant & 2) != 0 ? .05 : 0,
                  .clip = (variant & 4) != 0 ? .3 : 0,
                  .row_format = (variant & 8) != 0 ? PH_ROWS_BF16 : PH_ROWS_FP32},
            4, 0);
}

static void row_states_of_grids_are_close(void **state)
{
    (void)state;
    struct training training = {
        .plan = "default: {kind: grid}\n", .optimizer = PH_ROWWISE_ADAGRAD, .ranks_per_host = 1};
    check_worlds(&training, 1e-5);
    training.ranks_per_host = 2;
    check(&training, 4, 1e-5);
    check(&training, 8, 1e-5);
    training.ranks_per_host = 4;
    check(&training, 8, 1e-5);
}

static void rows_without_gradients_stay_whole(void **state)
{
    (void)state;
    const struct training training = {.plan = "default: {kind: column_wise}\n",
        .optimizer = PH_ROWWISE_ADAGRAD,
        .l2 = .05,
        .is_whole_table = true};
    struct comparison comparison = {.training = &training,
        .plan_path = test_write_file("plan.yaml", "version: 1\nworld_size: 2\n"
                                                  "default: {kind: column_wise}\n")};
    const struct thread_ranks ranks = {.world_size = 2, .options = {.ranks_per_host = 2}};
    struct thread_rank_end ends[2];
    thread_ranks_run(&ranks, run_rank, &comparison, ends);
    for (size_t rank = 0; rank < ranks.world_size; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_non_null(strstr(ends[rank].text, "table 'a'"));
    }
}

/* Distinct rows of a feature that a step's batch asks for. */
static size_t count_rows(const struct samples *samples, size_t feature)
{
    const uint32_t *offsets = samples->offsets + feature * samples->batch.num_samples;
    bool *is_asked = calloc(slices[feature].num_rows, sizeof *is_asked);
    size_t count = 0;
    assert_non_null(is_asked);
    for (size_t i = offsets[0]; i < offsets[samples->batch.num_samples]; i++) {
        count += !is_asked[samples->ids[i]];
        is_asked[samples->ids[i]] = true;
    }
    free(is_asked);
    return count;
}

/* Beside what an optimizer with a state for each weight sends. */
static void four_columns_of_a_row_are_one_number_for_each_other_rank(void **state)
{
    (void)state;
    static const size_t num_partials[NUM_FEATURES] = {3, 2, 3, 3, 1, 4}; /* of column_cuts */
    uint64_t sent[4] = {0}, without[4] = {0}, squares = 0, wanted = 0;
    struct training training = {.plan = column_cuts, .optimizer = PH_ROWWISE_ADAGRAD};
    check_counting(&training, 4, 0, sent);
    training.optimizer = PH_ADAGRAD;
    check_counting(&training, 4, 0, without);
    for (size_t rank = 0; rank < 4; rank++)
        squares += sent[rank] - without[rank];
    for (size_t step = 0; step < NUM_STEPS; step++) {
        struct samples samples;
        make_samples(&samples, &training, step, 0, batch_sizes[step]);
        for (size_t f = 0; f < NUM_FEATURES; f++)
            wanted += count_rows(&samples, f) * (num_partials[f] - 1) * (DIM / 4) * sizeof(ph_real);
    }
    assert_int_equal(squares, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_states_of_cut_columns_are_those_of_one_rank),
        cmocka_unit_test(row_states_move_by_what_the_optimizer_sees),
        cmocka_unit_test(row_states_of_grids_are_close),
        cmocka_unit_test(rows_without_gradients_stay_whole),
        cmocka_unit_test(four_columns_of_a_row_are_one_number_for_each_other_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
