/* Two batch norms, one behind the other, over ranks that are threads, against the same ones on one rank:
 * batches of many samples, of fewer than there are ranks, and of one. Columns are chosen so that the ranks'
 * own statistics would be wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "op/operator.h"
#include "store/store.h"
#include "unit/shard/rank_fixture.h"

enum { COLUMNS = 5, MOST_SAMPLES = 300, NUM_STEPS = 4, NUM_LEARNT = 4, NUM_STATISTICS = 4 };

static const size_t batches[NUM_STEPS] = {MOST_SAMPLES, 5, 1, 26};
static const char *const statistics[NUM_STATISTICS] = {
    "first.mean", "first.variance", "second.mean", "second.variance"};

/* ---- the data ---- */

struct samples {
    struct ph_batch batch;
    ph_real dense[MOST_SAMPLES * COLUMNS], labels[MOST_SAMPLES];
};

/* Numbers around 0, far from it, with a trend, all the same, and small ones. */
static ph_real number(size_t step, size_t sample, size_t column)
{
    static const double centres[COLUMNS] = {0, 1000, 0, 3, 0}, slopes[COLUMNS] = {0, 0, .3, 0, 0},
                        widths[COLUMNS] = {2, 1, 1, 0, .001};
    const struct ph__rng_key key = {test_seed(), step, column};
    const double uniform = ph__rng_word(&key, sample, 0) / 4294967296. - .5;
    return (ph_real)(centres[column] + slopes[column] * (double)sample + widths[column] * uniform);
}

static void make_samples(struct samples *samples, size_t step, size_t first, size_t last)
{
    for (size_t b = first; b < last; b++) {
        for (size_t j = 0; j < COLUMNS; j++)
            samples->dense[(b - first) * COLUMNS + j] = number(step, b, j);
        samples->labels[b - first] = (ph_real)(number(step, b, 0) > 0);
    }
    samples->batch = (struct ph_batch){.num_samples = last - first,
        .num_dense = COLUMNS,
        .num_tasks = 1,
        .num_global_samples = batches[step],
        .first_sample = first,
        .dense = samples->dense,
        .labels = samples->labels};
}

/* ---- the model ---- */

static ph_value norm(struct ph_builder *builder, ph_value x, const char *name)
{
    static const struct ph_batch_norm_options options = {
        .size = sizeof options, .epsilon = 1e-3, .momentum = .1};
    static const size_t columns = COLUMNS;
    ph_builder_push_scope(builder, name);
    const ph_value gamma = ph_parameter(builder, "gamma", 1, &columns, (struct ph_init){PH_INIT_NORMAL, .5});
    const ph_value beta = ph_parameter(builder, "beta", 1, &columns, (struct ph_init){PH_INIT_NORMAL, .5});
    ph_builder_pop_scope(builder);
    return ph_batch_norm(builder, x, gamma, beta, name, &options);
}

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    static const char *const names[NUM_LEARNT] = {"dgamma1", "dbeta1", "dgamma2", "dbeta2"};
    (void)context;
    const ph_value x = ph_input_dense(builder, COLUMNS);
    const ph_value y = norm(builder, ph_sigmoid(builder, norm(builder, x, "first")), "second");
    const ph_value loss =
        ph_bce_with_logits(builder, ph_row_dots(builder, y, y), ph_input_labels(builder, 1), 0, 0);
    ph_value wrt[NUM_LEARNT + 1], gradients[NUM_LEARNT + 1];
    const ph_value *more = NULL;
    size_t num_more = 0;
    ph_output(builder, "y", y);
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    if (ph_builder_mode(builder) == PH_INFERENCE)
        return;
    for (size_t i = 0; i < NUM_LEARNT; i++)
        wrt[i] = ph_builder_parameter(builder, i);
    wrt[NUM_LEARNT] = x;
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, NUM_LEARNT + 1, wrt, gradients);
    if (distribution != NULL)
        distribution->reduce(distribution->context, builder, NUM_LEARNT, wrt, gradients);
    for (size_t i = 0; i < NUM_LEARNT; i++)
        ph_output(builder, names[i], gradients[i]);
    ph_output(builder, "dx", gradients[NUM_LEARNT]);
}

/* ---- what comes out ---- */

/* Of samples, where they are in the batch; gradients of gamma and beta over all ranks, and running
 * statistics, as each rank has them. */
struct outcome {
    ph_real y[NUM_STEPS][MOST_SAMPLES * COLUMNS], dx[NUM_STEPS][MOST_SAMPLES * COLUMNS];
    struct {
        ph_real gradients[NUM_STEPS][NUM_LEARNT * COLUMNS], running[NUM_STATISTICS * COLUMNS];
    } of_rank[THREAD_RANKS_MOST];
};

static ph_status copy_output(
    const struct rank_model *model, const char *name, size_t num_elements, ph_real *target)
{
    const ph_real *data;
    struct ph_shape shape;
    PH_TRY(ph_workspace_output(model->workspace, name, &data, &shape));
    RANK_CHECK(ph_shape_elements(&shape) == num_elements);
    if (num_elements > 0)
        memcpy(target, data, num_elements * sizeof *data);
    return PH_OK;
}

static ph_status take_step(
    struct rank_model *model, size_t step, size_t rank, size_t world_size, struct outcome *outcome)
{
    static const char *const entries[] = {"forward", "backward", NULL};
    static const char *const names[NUM_LEARNT] = {"dgamma1", "dbeta1", "dgamma2", "dbeta2"};
    const size_t first = batches[step] * rank / world_size, last = batches[step] * (rank + 1) / world_size;
    const size_t count = (last - first) * COLUMNS;
    struct samples samples;
    make_samples(&samples, step, first, last);
    PH_TRY(rank_model_run(model, &samples.batch, step, entries));
    PH_TRY(copy_output(model, "y", count, outcome->y[step] + first * COLUMNS));
    PH_TRY(copy_output(model, "dx", count, outcome->dx[step] + first * COLUMNS));
    for (size_t i = 0; i < NUM_LEARNT; i++)
        PH_TRY(copy_output(model, names[i], COLUMNS, outcome->of_rank[rank].gradients[step] + i * COLUMNS));
    return PH_OK;
}

static ph_status take_steps(struct rank_model *model, size_t rank, size_t world_size, struct outcome *outcome)
{
    for (size_t step = 0; step < NUM_STEPS; step++)
        PH_TRY(take_step(model, step, rank, world_size, outcome));
    for (size_t i = 0; i < NUM_STATISTICS; i++) {
        struct ph__state_array *array;
        PH_TRY(ph__state_add(model->state, statistics[i], COLUMNS, 0, &array));
        memcpy(outcome->of_rank[rank].running + i * COLUMNS, array->data, COLUMNS * sizeof *array->data);
    }
    return PH_OK;
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    const struct ph__plan no_tables = {.topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)}};
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(rank_distribution_create(comm, &no_tables, &distribution));
    ph_status status = rank_model_init(&model, build, NULL, distribution);
    if (status == PH_OK)
        status = take_steps(&model, ph_comm_rank(comm), ph_comm_world_size(comm), context);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    return status;
}

static struct outcome *run_alone(void)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    struct rank_model model;
    assert_ok(rank_model_init(&model, build, NULL, NULL));
    assert_ok(take_steps(&model, 0, 1, outcome));
    rank_model_fini(&model);
    return outcome;
}

/* The seed is of the order in which messages arrive. */
static struct outcome *run_together(size_t world_size, uint64_t seed)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    const struct thread_ranks ranks = {
        .world_size = world_size, .seed = seed, .options = {.ranks_per_host = world_size}};
    thread_ranks_run(&ranks, run_rank, outcome, NULL);
    return outcome;
}

/* ---- tests ---- */

/* (rows, columns): each number within 1e-6 of the largest of its column. */
static void assert_columns_near(
    const ph_real *is, const ph_real *should_be, size_t num_rows, size_t num_columns)
{
    for (size_t j = 0; j < num_columns; j++) {
        double largest = 0;
        for (size_t i = j; i < num_rows * num_columns; i += num_columns)
            largest = fmax(largest, fabs((double)should_be[i]));
        for (size_t i = j; i < num_rows * num_columns; i += num_columns)
            assert_near((double)is[i], (double)should_be[i], 1e-6 * largest, 0);
    }
}

static const size_t worlds[] = {1, 2, 3, 4, 8};

static void ranks_together_are_as_one(void **state)
{
    (void)state;
    struct outcome *alone = run_alone();
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct outcome *together = run_together(worlds[i], 0);
        for (size_t step = 0; step < NUM_STEPS; step++) {
            assert_columns_near(together->y[step], alone->y[step], batches[step], COLUMNS);
            assert_columns_near(together->dx[step], alone->dx[step], batches[step], COLUMNS);
            assert_columns_near(together->of_rank[0].gradients[step], alone->of_rank[0].gradients[step],
                NUM_LEARNT * COLUMNS, 1); /* sums that all but cancel are as exact as what is added */
        }
        for (size_t k = 0; k < NUM_STATISTICS * COLUMNS; k++)
            assert_columns_near(together->of_rank[0].running + k, alone->of_rank[0].running + k, 1, 1);
        free(together);
    }
    free(alone);
}

static void all_ranks_have_the_same_statistics(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct outcome *together = run_together(worlds[i], 0);
        for (size_t rank = 1; rank < worlds[i]; rank++)
            assert_memory_equal(&together->of_rank[rank], &together->of_rank[0], sizeof together->of_rank[0]);
        free(together);
    }
}

static void bits_do_not_depend_on_who_is_first(void **state)
{
    (void)state;
    struct outcome *first = run_together(4, 1);
    for (uint64_t seed = 2; seed < 5; seed++) {
        struct outcome *again = run_together(4, seed);
        assert_memory_equal(again, first, sizeof *first);
        free(again);
    }
    free(first);
}

/* ---- what the pass leaves, and what it refuses ---- */

/* Builds by `context`, a rank_model_build in an inference or training program, with one rank. */
struct trial {
    rank_model_build *build;
    enum ph_mode mode;
};

static ph_status build_on_rank(struct ph_comm *comm, void *context)
{
    const struct trial *trial = context;
    const struct ph__plan no_tables = {.topology = {1, 1}};
    struct ph_distribution *distribution;
    struct ph_program *program = NULL;
    PH_TRY(rank_distribution_create(comm, &no_tables, &distribution));
    const ph_status status = rank_model_program(trial->build, NULL, trial->mode, distribution, &program);
    for (size_t i = 0; status == PH_OK && i < program->graph.num_nodes; i++)
        RANK_CHECK(strcmp(program->graph.nodes[i].op->name, "sync_batch_norm") != 0);
    ph_program_destroy(program);
    ph__distribution_destroy(distribution);
    return status;
}

static void inference_asks_no_other_rank(void **state)
{
    (void)state;
    struct trial trial = {build, PH_INFERENCE};
    thread_ranks_run(&(struct thread_ranks){.world_size = 1, .options = {.ranks_per_host = 1}}, build_on_rank,
        &trial, NULL);
}

static const struct ph__op best_of_batch = {
    .name = "best_of_batch", .traits = PH_OP_MIXES_SAMPLES, .infer = ph__infer_elementwise};

static void build_what_mixes_samples(
    struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const ph_value x = ph_input_dense(builder, COLUMNS);
    const ph_value *more;
    size_t num_more;
    (void)context;
    ph_builder_push_scope(builder, "deep");
    ph_output(builder, "y", ph__emit1(builder, &best_of_batch, NULL, NULL, 0, 1, &x));
    ph_builder_pop_scope(builder);
    distribution->spread(distribution->context, builder, &more, &num_more);
}

static void what_else_mixes_samples_is_refused(void **state)
{
    (void)state;
    struct trial trial = {build_what_mixes_samples, PH_TRAINING};
    struct thread_rank_end end;
    thread_ranks_run(&(struct thread_ranks){.world_size = 1, .options = {.ranks_per_host = 1}}, build_on_rank,
        &trial, &end);
    assert_int_equal(end.status, PH_ERROR_CONFIG);
    assert_non_null(strstr(end.text, "'deep.best_of_batch"));
    assert_non_null(strstr(end.text, "operator best_of_batch mixes samples"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_together_are_as_one),
        cmocka_unit_test(all_ranks_have_the_same_statistics),
        cmocka_unit_test(bits_do_not_depend_on_who_is_first),
        cmocka_unit_test(inference_asks_no_other_rank),
        cmocka_unit_test(what_else_mixes_samples_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
