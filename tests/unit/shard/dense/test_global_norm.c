/* The factor by which gradients are clipped, of ranks that are threads, against that of one rank: for each
 * kind of plan, with and without dense parameters, with l2 over touched rows and over whole tables. Two
 * steps, the second of which begins with what the first factor has left. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "unit/shard/rank_fixture.h"

enum { NUM_FEATURES = 5, DIM = 16, BATCH = 22, NUM_STEPS = 2, MOST_IDS = 3 * NUM_FEATURES * BATCH };

static const struct ph_table_slice slices[NUM_FEATURES] = {
    {"a", 40}, {"b", 5}, {"c", 200}, {"d", 17}, {"e", 1}};

struct training {
    const char *plan; /* a file's text behind its head */
    double l2;
    bool is_whole_table, has_dense;
};

/* ---- the data ---- */

struct samples {
    struct ph_batch batch;
    ph_real labels[BATCH];
    uint32_t offsets[NUM_FEATURES * BATCH + 1];
    int64_t ids[MOST_IDS];
};

static uint32_t draw(size_t step, size_t feature, size_t sample, uint32_t number)
{
    const struct ph__rng_key key = {test_seed(), step, feature};
    return ph__rng_word(&key, sample, number);
}

static void make_samples(struct samples *samples, size_t step, size_t first, size_t last)
{
    const size_t count = last - first;
    uint32_t num_ids = 0;
    for (size_t f = 0; f < NUM_FEATURES; f++)
        for (size_t b = first; b < last; b++) {
            const uint32_t length = draw(step, f, b, 0) % 4;
            samples->offsets[f * count + b - first] = num_ids;
            for (uint32_t i = 1; i <= length; i++)
                samples->ids[num_ids++] = (int64_t)(draw(step, f, b, i) % slices[f].num_rows);
        }
    samples->offsets[NUM_FEATURES * count] = num_ids;
    for (size_t b = first; b < last; b++)
        samples->labels[b - first] = (ph_real)(draw(step, NUM_FEATURES, b, 0) % 2);
    samples->batch = (struct ph_batch){.num_samples = count,
        .num_sparse = NUM_FEATURES,
        .num_tasks = 1,
        .num_ids = num_ids,
        .num_global_samples = BATCH,
        .first_sample = first,
        .labels = samples->labels,
        .offsets = samples->offsets,
        .ids = samples->ids};
}

/* ---- the model ---- */

static ph_value add_loss(struct ph_builder *builder, bool has_dense)
{
    const struct ph_init normal = {PH_INIT_NORMAL, .3};
    const ph_value table = ph_table(builder, "table", NUM_FEATURES, slices, DIM, normal);
    const ph_value vectors =
        ph_embedding_bag(builder, ph_input_ids(builder, NUM_FEATURES), table, PH_POOL_SUM, 0);
    const ph_value sum = ph_sum_features(builder, vectors);
    ph_value logits = ph_row_dots(builder, sum, sum);
    if (has_dense)
        logits = ph_add(builder, logits,
            ph_linear(builder, sum, ph_parameter(builder, "weight", 2, (size_t[]){1, DIM}, normal),
                ph_parameter(builder, "bias", 1, (size_t[]){1}, normal), PH_IDENTITY));
    return ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
}

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct training *training = context;
    const struct ph_optimizer optimizer = {.rule.kind = PH_SGD,
        .l2 = training->l2,
        .is_whole_table = training->is_whole_table,
        .learning_rate_factor = 1};
    ph_value parameters[16], gradients[16];
    struct ph_optimizer optimizers[16];
    const ph_value *more = NULL;
    size_t num_more = 0;
    const ph_value loss = add_loss(builder, training->has_dense);
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    const size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count; i++) {
        parameters[i] = ph_builder_parameter(builder, i);
        optimizers[i] = optimizer;
    }
    for (size_t i = 0; i < num_more; i++)
        parameters[count + i] = more[i];
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count + num_more, parameters, gradients);
    if (distribution != NULL)
        distribution->reduce(distribution->context, builder, count + num_more, parameters, gradients);
    ph_builder_begin_entry(builder, "clip");
    const ph_value factor = ph_clip_factor(builder, count, parameters, gradients, optimizers, .1);
    ph_output(builder, "factor", factor);
    ph_builder_begin_entry(builder, "update");
    const ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizer, rate, step, factor);
    if (distribution != NULL)
        distribution->complete(distribution->context, builder);
}

static ph_status take_steps(
    struct rank_model *model, size_t rank, size_t world_size, double factors_out[NUM_STEPS])
{
    static const char *const entries[] = {"forward", "backward", "clip", "update", NULL};
    PH_TRY(ph_workspace_set_scalar(model->workspace, "learning_rate", 1));
    PH_TRY(ph_workspace_set_scalar(model->workspace, "step", 1));
    for (size_t step = 0; step < NUM_STEPS; step++) {
        struct samples samples;
        make_samples(&samples, step, BATCH * rank / world_size, BATCH * (rank + 1) / world_size);
        PH_TRY(rank_model_run(model, &samples.batch, step, entries));
        PH_TRY(ph_workspace_scalar(model->workspace, "factor", &factors_out[step]));
    }
    return PH_OK;
}

/* ---- ranks ---- */

struct trial {
    const struct training *training;
    const char *plan_path;
    double factors[THREAD_RANKS_MOST][NUM_STEPS];
};

static ph_status read_plan(const struct trial *trial, struct ph_comm *comm, struct ph__plan *plan)
{
    struct ph__table_facts facts[NUM_FEATURES];
    const struct ph__topology topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)};
    for (size_t i = 0; i < NUM_FEATURES; i++)
        facts[i] = (struct ph__table_facts){.name = slices[i].name,
            .num_rows = slices[i].num_rows,
            .dim = DIM,
            .num_features = 1,
            .ids_per_sample = 1.5,
            .weight_bytes = DIM * sizeof(ph_real)};
    return ph__plan_read(trial->plan_path, &topology, facts, NUM_FEATURES, plan);
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    struct trial *trial = context;
    const size_t rank = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    struct ph__plan plan = {0};
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(read_plan(trial, comm, &plan));
    PH_TRY(rank_distribution_create(comm, &plan, &distribution));
    ph_status status = rank_model_init(&model, build, trial->training, distribution);
    if (status == PH_OK)
        status = take_steps(&model, rank, world_size, trial->factors[rank]);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    ph__plan_fini(&plan);
    return status;
}

static void check(const struct training *training, size_t world_size, const double alone[NUM_STEPS])
{
    char text[256];
    snprintf(text, sizeof text, "version: 1\nworld_size: %zu\n%s", world_size, training->plan);
    struct trial trial = {training, test_write_file("plan.yaml", text), {{0}}};
    const struct thread_ranks ranks = {.world_size = world_size, .options = {.ranks_per_host = world_size}};
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
    for (size_t step = 0; step < NUM_STEPS; step++)
        assert_near(trial.factors[0][step], alone[step], 0, 1e-6);
    for (size_t rank = 1; rank < world_size; rank++)
        assert_memory_equal(trial.factors[rank], trial.factors[0], sizeof trial.factors[0]);
}

static void check_worlds(const struct training *training)
{
    static const size_t worlds[] = {1, 2, 3, 4, 8};
    double alone[NUM_STEPS];
    struct rank_model model;
    assert_ok(rank_model_init(&model, build, training, NULL));
    assert_ok(take_steps(&model, 0, 1, alone));
    rank_model_fini(&model);
    for (size_t step = 0; step < NUM_STEPS; step++)
        assert_true(alone[step] < 1);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        check(training, worlds[i], alone);
}

/* ---- tests ---- */

static const char mixed[] = "tables:\n  a: {kind: row_wise}\n  b: {kind: data_parallel}\n"
                            "  c: {kind: column_wise}\ndefault: {kind: table_wise}\n";
static const char *const plans[] = {"default: {kind: table_wise}\n", "default: {kind: row_wise}\n",
    "default: {kind: column_wise}\n", "default: {kind: data_parallel}\n", mixed};

static void check_plans(struct training training)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        training.plan = plans[i];
        check_worlds(&training);
    }
}

static void ranks_together_clip_as_one(void **state)
{
    (void)state;
    check_plans((struct training){.has_dense = true});
}

static void decay_of_shards_counts(void **state)
{
    (void)state;
    check_plans((struct training){.has_dense = true, .l2 = .01});
    check_plans((struct training){.has_dense = true, .l2 = .01, .is_whole_table = true});
}

/* Of five tables on eight ranks, three ranks have none. */
static void ranks_without_a_gradient_take_part(void **state)
{
    (void)state;
    check_plans((struct training){.l2 = .01});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_together_clip_as_one),
        cmocka_unit_test(decay_of_shards_counts),
        cmocka_unit_test(ranks_without_a_gradient_take_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
