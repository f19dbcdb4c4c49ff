/* Dense gradients in buckets, up to the most that there may be, of ranks that are threads. */
#include "shard/dense/dense_passes.h"

#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "unit/shard/rank_fixture.h"

enum { WORLD = 2, MOST_GRADIENTS = PH_MAX_BUCKETS + 1 };

struct trial {
    size_t num_gradients, bucket_bytes, num_buckets;
    const struct ph_reducer *reducer;
};

/* Parameters of one number, each its own gradient. */
static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct trial *trial = context;
    ph_value parameters[MOST_GRADIENTS], gradients[MOST_GRADIENTS];
    char name[32];
    for (size_t i = 0; i < trial->num_gradients; i++) {
        snprintf(name, sizeof name, "parameter%zu", i);
        parameters[i] = ph_parameter(builder, name, 1, (size_t[]){1}, (struct ph_init){PH_INIT_CONSTANT, 0});
        gradients[i] = ph_relu(builder, parameters[i]);
    }
    ph__reduce_gradients(distribution->context, builder, trial->num_gradients, parameters, gradients);
    for (size_t i = 0; i < trial->num_gradients; i++) {
        snprintf(name, sizeof name, "sum%zu", i);
        ph_output(builder, name, gradients[i]);
    }
}

/* Gradient i of rank r is i + 1000 r. */
static ph_status sum(const struct trial *trial, struct ph_comm *comm, struct rank_model *model)
{
    static const char *const entries[] = {"forward", NULL};
    const size_t own = ph_comm_rank(comm);
    const struct ph_batch batch = {
        .num_samples = 1, .num_global_samples = WORLD, .first_sample = own, .offsets = (const uint32_t[]){0}};
    for (size_t i = 0; i < trial->num_gradients; i++)
        *(ph_real *)ph__store_parameter(model->store, i)->memory = (ph_real)(i + 1000 * own);
    PH_TRY(rank_model_run(model, &batch, 0, entries));
    for (size_t i = 0; i < trial->num_gradients; i++) {
        const ph_real *reduced;
        struct ph_shape shape;
        char name[32];
        snprintf(name, sizeof name, "sum%zu", i);
        PH_TRY(ph_workspace_output(model->workspace, name, &reduced, &shape));
        RANK_CHECK(*reduced == (ph_real)(2 * i + 1000));
    }
    return PH_OK;
}

static ph_status create_distribution(
    const struct trial *trial, struct ph_comm *comm, struct ph_distribution **distribution_out)
{
    static const struct ph__plan plan = {.topology = {WORLD, WORLD}};
    const struct ph__distribution_options options = {.comm = comm,
        .plan = &plan,
        .bucket_bytes = trial->bucket_bytes,
        .overlaps = true,
        .reducer = trial->reducer};
    return ph__distribution_create(&options, distribution_out);
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    const struct trial *trial = context;
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(create_distribution(trial, comm, &distribution));
    ph_status status = rank_model_init(&model, build, trial, distribution);
    if (status == PH_OK &&
        ph_program_num_nodes(model.program, "reduce_gradients_start") != trial->num_buckets)
        status = ph_fail(PH_ERROR_BUG, "there are not %zu buckets", trial->num_buckets);
    if (status == PH_OK)
        status = sum(trial, comm, &model);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    return status;
}

static const struct thread_ranks ranks = {.world_size = WORLD};

static void gradients_share_a_bucket_up_to_its_bytes(void **state)
{
    (void)state;
    struct trial trial = {.num_gradients = 7, .bucket_bytes = 3 * sizeof(ph_real), .num_buckets = 3};
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
    trial = (struct trial){.num_gradients = 7, .bucket_bytes = 1, .num_buckets = 7};
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
    trial = (struct trial){.num_gradients = 0, .bucket_bytes = 1, .num_buckets = 0};
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
}

static void as_many_buckets_as_there_are_channels_are_summed(void **state)
{
    (void)state;
    struct trial trial = {.num_gradients = PH_MAX_BUCKETS, .bucket_bytes = 1, .num_buckets = PH_MAX_BUCKETS};
    thread_ranks_run(&ranks, run_rank, &trial, NULL);
}

static void expect_refusal(struct trial *trial)
{
    struct thread_rank_end ends[WORLD];
    thread_ranks_run(&ranks, run_rank, trial, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_non_null(strstr(ends[rank].text, "2049 buckets of dense gradients are more than 2048: "
                                                "raise parallel.bucket_bytes"));
    }
}

static ph_status note_opening(void *context, size_t num_buckets, const size_t *sizes, enum ph_dtype dtype)
{
    (void)num_buckets, (void)sizes, (void)dtype;
    *(bool *)context = true;
    return PH_OK;
}

static void one_bucket_more_is_refused_before_a_reducer_hears_of_any(void **state)
{
    (void)state;
    bool is_opened = false;
    const struct ph_reducer reducer = {.context = &is_opened, .open = note_opening};
    struct trial trial = {.num_gradients = PH_MAX_BUCKETS + 1, .bucket_bytes = 1};
    expect_refusal(&trial);
    trial.reducer = &reducer;
    expect_refusal(&trial);
    assert_false(is_opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_share_a_bucket_up_to_its_bytes),
        cmocka_unit_test(as_many_buckets_as_there_are_channels_are_summed),
        cmocka_unit_test(one_bucket_more_is_refused_before_a_reducer_hears_of_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
