/* The gradient of a table that every rank has: the same bits on all of them, in memory for as many rows as
 * there can be. */
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "graph/executor.h"
#include "store/store.h"
#include "unit/shard/rank_fixture.h"

enum { ROWS = 3, DIM = 20, SAMPLES = 60, BAG = 5, WORLD = 3, NUM_STEPS = 3 };

static const struct ph_table_slice slice = {"table", ROWS};

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct ph_optimizer optimizer = {
        .rule.kind = PH_ADAGRAD, .rule.epsilon = 1e-6, .learning_rate_factor = 1};
    const ph_value table = ph_table(builder, "", 1, &slice, DIM, (struct ph_init){PH_INIT_NORMAL, .3});
    const ph_value vectors = ph_embedding_bag(builder, ph_input_ids(builder, 1), table, PH_POOL_SUM, 0);
    const ph_value sums = ph_sum_features(builder, vectors);
    const ph_value loss =
        ph_bce_with_logits(builder, ph_row_dots(builder, sums, sums), ph_input_labels(builder, 1), 0, 0);
    const ph_value *more;
    ph_value gradient;
    size_t num_more;
    (void)context;
    distribution->spread(distribution->context, builder, &more, &num_more);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 1, &table, &gradient);
    distribution->reduce(distribution->context, builder, 1, &table, &gradient);
    ph_builder_begin_entry(builder, "update");
    ph_update(builder, table, gradient, &optimizer, ph_input_scalar(builder, "learning_rate"),
        ph_input_scalar(builder, "step"), 0);
    distribution->complete(distribution->context, builder);
}

/* Many ids of few rows; in the second step the last rank has none. */
static ph_status take_step(struct rank_model *model, size_t rank, size_t step)
{
    static const char *const entries[] = {"forward", "backward", "update", NULL};
    const struct ph__rng_key key = {test_seed(), step, rank};
    const size_t length = step == 1 && rank == WORLD - 1 ? 0 : BAG;
    uint32_t offsets[SAMPLES + 1];
    int64_t ids[SAMPLES * BAG];
    ph_real labels[SAMPLES];
    for (size_t i = 0; i <= SAMPLES; i++)
        offsets[i] = (uint32_t)(i * length);
    for (size_t i = 0; i < SAMPLES * BAG; i++)
        ids[i] = ph__rng_word(&key, i, 0) % ROWS;
    for (size_t i = 0; i < SAMPLES; i++)
        labels[i] = (ph_real)(ph__rng_word(&key, i, 1) % 2);
    const struct ph_batch batch = {.num_samples = SAMPLES,
        .num_sparse = 1,
        .num_tasks = 1,
        .num_ids = SAMPLES * length,
        .num_global_samples = SAMPLES * WORLD,
        .first_sample = SAMPLES * rank,
        .labels = labels,
        .offsets = offsets,
        .ids = ids};
    PH_TRY(ph_workspace_set_scalar(model->workspace, "learning_rate", .1));
    PH_TRY(ph_workspace_set_scalar(model->workspace, "step", (double)step + 1));
    return rank_model_run(model, &batch, step, entries);
}

/* Each rank's rows and their numbers, beside what is kept by rank. */
static ph_status check_scratch(const struct rank_model *model)
{
    const struct ph__graph *graph = &model->program->graph;
    size_t node = 0;
    while (node < graph->num_nodes && strcmp(graph->nodes[node].op->name, "gather_rows") != 0)
        node++;
    RANK_CHECK(node < graph->num_nodes);
    RANK_CHECK(model->workspace->plan.scratch_bytes[node] <=
               WORLD * ROWS * (DIM * sizeof(ph_real) + sizeof(uint32_t)) + WORLD * 32 + 3 * PH_ALIGNMENT);
    return PH_OK;
}

static ph_status learn(struct rank_model *model, size_t rank, ph_real learnt[ROWS * DIM])
{
    for (size_t step = 0; step < NUM_STEPS; step++)
        PH_TRY(take_step(model, rank, step));
    memcpy(learnt, ph__store_parameter(model->store, 0)->memory, ROWS * DIM * sizeof *learnt);
    return check_scratch(model);
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    ph_real(*learnt)[ROWS * DIM] = context;
    struct ph__plan_table table = {
        .name = "table", .kind = PH_SHARD_DATA_PARALLEL, .num_rows = ROWS, .dim = DIM};
    struct ph__plan plan = {.topology = {WORLD, WORLD}, .tables = &table, .num_tables = 1};
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(ph__name_index_add(&plan.names, table.name));
    PH_TRY(rank_distribution_create(comm, &plan, &distribution));
    ph_status status = rank_model_init(&model, build, NULL, distribution);
    if (status == PH_OK)
        status = learn(&model, ph_comm_rank(comm), learnt[ph_comm_rank(comm)]);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    ph__plan_fini(&plan);
    return status;
}

static const struct thread_ranks ranks = {.world_size = WORLD, .options = {.ranks_per_host = WORLD}};

static void few_rows_take_little_memory_and_are_the_same_everywhere(void **state)
{
    (void)state;
    static ph_real learnt[WORLD][ROWS * DIM];
    thread_ranks_run(&ranks, run_rank, learnt, NULL);
    for (size_t rank = 1; rank < WORLD; rank++)
        assert_memory_equal(learnt[rank], learnt[0], sizeof learnt[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_take_little_memory_and_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
