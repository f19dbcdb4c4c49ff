/* A small DLRM on two ranks learns the same numbers, to the bit, whether exchanges of gradients start as
 * early as they can, and sums are waited for as late, or where differentiation has put both; and they are
 * early and late. */
#include <string.h>

#include "phloem/model.h"
#include "plan/plan_choice.h"
#include "unit/shard/rank_fixture.h"

enum { TABLES = 2, ROWS = 40, DIM = 8, DENSE = 3, BATCH = 11, STEPS = 4, WORLD = 2, MOST_LEARNT = 32 };

static const struct ph_table_slice slices[TABLES] = {{"a", ROWS}, {"b", ROWS}};

/* ---- the model ---- */

static ph_value add_logits(struct ph_builder *builder)
{
    static const int64_t units[] = {16, 12};
    const struct ph_model_settings settings = {.kind = ph_model_find("dlrm"),
        .embedding_dim = DIM,
        .embedding_init_std = .3,
        .bottom_units = units,
        .num_bottom_units = 2,
        .top_units = units,
        .num_top_units = 2,
        .activation = PH_RELU,
        .interaction = PH_INTERACTION_DOT};
    const struct ph_model_features features = {
        .num_dense = DENSE, .num_sparse = TABLES, .num_tasks = 1, .sparse = slices};
    return ph_model_build(builder, &settings, &features);
}

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct ph_optimizer optimizer = {
        .rule.kind = PH_ADAGRAD, .rule.epsilon = 1e-6, .learning_rate_factor = 1};
    const ph_value loss = ph_bce_with_logits(builder, add_logits(builder), ph_input_labels(builder, 1), 0, 0);
    const bool has_clip = *(const bool *)context;
    struct ph_optimizer optimizers[MOST_LEARNT];
    ph_value parameters[MOST_LEARNT], gradients[MOST_LEARNT], clip = 0;
    const ph_value *more;
    size_t num_more;
    ph_output(builder, "loss", loss);
    distribution->spread(distribution->context, builder, &more, &num_more);
    const size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count + num_more; i++)
        parameters[i] = i < count ? ph_builder_parameter(builder, i) : more[i - count];
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count + num_more, parameters, gradients);
    distribution->reduce(distribution->context, builder, count + num_more, parameters, gradients);
    for (size_t i = 0; i < count; i++)
        optimizers[i] = optimizer;
    if (has_clip) {
        ph_builder_begin_entry(builder, "clip");
        clip = ph_clip_factor(builder, count, parameters, gradients, optimizers, .01);
    }
    ph_builder_begin_entry(builder, "update");
    const ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizer, rate, step, clip);
    distribution->complete(distribution->context, builder);
}

/* ---- its order ---- */

/* The first node of that operator; the number of nodes where there is none. */
static size_t find(const struct ph__graph *graph, const char *operator_name)
{
    size_t node = 0;
    while (node < graph->num_nodes && strcmp(graph->nodes[node].op->name, operator_name) != 0)
        node++;
    return node;
}

/* Nothing is read before it is made. */
static ph_status check_order(const struct ph__graph *graph)
{
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++) {
            const uint32_t producer = graph->values[graph->nodes[i].inputs[k]].producer;
            RANK_CHECK(graph->nodes[i].inputs[k] == 0 || producer == PH_NO_NODE || producer < i);
        }
    return PH_OK;
}

/* Sums are waited for behind the updates of tables, in the entry of updates; or else in that of backward, as
 * where a norm reads them. */
static ph_status check_waits(const struct ph_program *program, bool are_late)
{
    const struct ph__graph *graph = &program->graph;
    const size_t wait = find(graph, "reduce_gradients_wait"), dense = find(graph, "update_dense");
    size_t table = find(graph, "embedding_update");
    RANK_CHECK(wait < dense && dense < graph->num_nodes);
    RANK_CHECK(are_late == (wait >= program->entry_begin[graph->nodes[dense].entry]));
    if (table == graph->num_nodes)
        table = find(graph, "update_table");
    RANK_CHECK(!are_late || table == graph->num_nodes || table < wait);
    return PH_OK;
}

/* The weights of the last layer, whose gradient is the first that differentiation makes, come behind the
 * start. */
static ph_status check_program(const struct ph_program *program, bool overlaps, bool has_clip)
{
    const struct ph__graph *graph = &program->graph;
    const size_t start = find(graph, "exchange_gradients_start"),
                 weights = find(graph, "linear_backward_weight");
    RANK_CHECK(start < graph->num_nodes && weights < graph->num_nodes);
    RANK_CHECK(overlaps == (start < weights));
    PH_TRY(check_waits(program, overlaps && !has_clip));
    return check_order(graph);
}

/* ---- training ---- */

struct samples {
    struct ph_batch batch;
    ph_real dense[BATCH * DENSE], labels[BATCH];
    uint32_t offsets[TABLES * BATCH + 1];
    int64_t ids[TABLES * BATCH];
};

/* Rank's samples of the step's batch, an id a bag. */
static void make_samples(struct samples *samples, size_t rank, size_t step)
{
    const struct ph__rng_key key = {test_seed(), step, rank};
    const size_t first = BATCH * rank / WORLD, count = BATCH * (rank + 1) / WORLD - first;
    for (uint32_t i = 0; i < count * DENSE; i++)
        samples->dense[i] = (ph_real)(ph__rng_word(&key, 0, i) % 100) / 100;
    for (uint32_t i = 0; i < count; i++)
        samples->labels[i] = (ph_real)(ph__rng_word(&key, 1, i) % 2);
    for (uint32_t i = 0; i < TABLES * count; i++)
        samples->ids[i] = ph__rng_word(&key, 2, i) % ROWS;
    for (uint32_t i = 0; i <= TABLES * count; i++)
        samples->offsets[i] = i;
    samples->batch = (struct ph_batch){.num_samples = count,
        .num_dense = DENSE,
        .num_sparse = TABLES,
        .num_tasks = 1,
        .num_ids = TABLES * count,
        .num_global_samples = BATCH,
        .first_sample = first,
        .dense = samples->dense,
        .labels = samples->labels,
        .offsets = samples->offsets,
        .ids = samples->ids};
}

static ph_status train(struct rank_model *model, size_t rank, bool has_clip, double losses[STEPS])
{
    static const char *const with_clip[] = {"forward", "backward", "clip", "update", NULL},
                             *const without[] = {"forward", "backward", "update", NULL};
    struct samples samples;
    PH_TRY(ph_workspace_set_scalar(model->workspace, "learning_rate", .1));
    for (size_t step = 0; step < STEPS; step++) {
        make_samples(&samples, rank, step);
        PH_TRY(ph_workspace_set_scalar(model->workspace, "step", (double)step + 1));
        PH_TRY(rank_model_run(model, &samples.batch, step, has_clip ? with_clip : without));
        PH_TRY(ph_workspace_scalar(model->workspace, "loss", &losses[step]));
    }
    return PH_OK;
}

static ph_status learn(
    struct ph_comm *comm, const struct ph__plan *plan, bool overlaps, bool has_clip, double losses[STEPS])
{
    const struct ph__distribution_options options = {
        .comm = comm, .plan = plan, .bucket_bytes = 256, .overlaps = overlaps};
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(ph__distribution_create(&options, &distribution));
    ph_status status = rank_model_init(&model, build, &has_clip, distribution);
    if (status == PH_OK)
        status = check_program(model.program, overlaps, has_clip);
    if (status == PH_OK)
        status = train(&model, ph_comm_rank(comm), has_clip, losses);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    return status;
}

static ph_status learn_both_ways(struct ph_comm *comm, void *context)
{
    const struct ph__plan *plan = context;
    double overlapped[STEPS], plain[STEPS];
    for (int has_clip = 0; has_clip <= 1; has_clip++) {
        PH_TRY(learn(comm, plan, true, has_clip, overlapped));
        PH_TRY(learn(comm, plan, false, has_clip, plain));
        for (size_t step = 0; step < STEPS; step++)
            RANK_CHECK(overlapped[step] == plain[step]);
        RANK_CHECK(plain[0] != plain[STEPS - 1]);
    }
    return PH_OK;
}

static void check(enum ph__shard_kind kind, const uint32_t *places, size_t num_places)
{
    static const char *const names[TABLES] = {"embedding.a", "embedding.b"};
    static const struct ph__topology topology = {WORLD, WORLD};
    struct ph__table_facts facts[TABLES];
    struct ph__plan_choice choices[TABLES];
    struct ph__plan plan;
    for (size_t i = 0; i < TABLES; i++) {
        facts[i] =
            (struct ph__table_facts){.name = names[i], .num_rows = ROWS, .dim = DIM, .num_features = 1};
        choices[i] = (struct ph__plan_choice){kind, places, num_places, NULL};
    }
    assert_ok(ph__plan_build(&topology, facts, TABLES, choices, &plan));
    const struct thread_ranks ranks = {.world_size = WORLD, .options = {.ranks_per_host = WORLD}};
    thread_ranks_run(&ranks, learn_both_ways, &plan, NULL);
    ph__plan_fini(&plan);
}

static void exchanges_start_early_and_end_late_and_change_no_bit(void **state)
{
    static const uint32_t ranks[] = {0, 1};
    (void)state;
    check(PH_SHARD_TABLE_WISE, ranks, 1); /* the second rank has none */
    check(PH_SHARD_ROW_WISE, ranks, WORLD);
    check(PH_SHARD_COLUMN_WISE, ranks, WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_start_early_and_end_late_and_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
