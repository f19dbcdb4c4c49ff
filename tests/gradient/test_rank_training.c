/* Whole trainings over ranks that are threads, in double: what is left of the difference from one rank is
 * rounding, for it shrinks with the numbers' last digit. In single precision Adam and batch norm can make so
 * much of it within a few steps that an error of ours would not be seen; here nothing that is wrong by more
 * than a millionth of a millionth would stay hidden. */
#include <stdio.h>
#include <string.h>

#include "mpi/rank_job.h"
#include "support/thread_ranks.h"

enum { MOST_SETS = 8 };

struct variant {
    const char *plan;
    size_t num_sets;
    const char *sets[MOST_SETS];
};

struct together {
    const struct variant *variant;
    const char *folder, *out, *plan;
    double losses[THREAD_RANKS_MOST][RANK_JOB_STEPS];
};

static ph_status train(struct ph_comm *comm, const struct together *together, double *losses)
{
    struct ph_train_summary summary;
    struct rank_job job;
    ph_status status = rank_job_init(&job, comm, together->folder, together->out, together->plan,
        together->variant->num_sets, together->variant->sets);
    if (status == PH_OK)
        status = ph__train(&job.job, &summary);
    memcpy(losses, job.losses, sizeof job.losses);
    rank_job_fini(&job);
    return status;
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    struct together *together = context;
    return train(comm, together, together->losses[ph_comm_rank(comm)]);
}

static void check(const struct variant *variant, size_t world_size)
{
    const char *folder = test_fresh_folder();
    char out[600], plan[600];
    double alone[RANK_JOB_STEPS];
    snprintf(out, sizeof out, "%s/alone", folder);
    assert_ok(rank_job_make_data(folder));
    assert_ok(train(NULL, &(struct together){variant, folder, out, "none", {{0}}}, alone));
    for (size_t step = 0; step < RANK_JOB_STEPS; step++)
        assert_true(alone[step] > 0);
    snprintf(out, sizeof out, "%s/together", folder);
    snprintf(plan, sizeof plan, "%s/plan.yaml", folder);
    assert_ok(rank_job_write_plan(plan, world_size, variant->plan));
    struct together together = {variant, folder, out, plan, {{0}}};
    const struct thread_ranks ranks = {.world_size = world_size,
        .options = {.ranks_per_host = world_size > 2 ? world_size / 2 : world_size}};
    thread_ranks_run(&ranks, run_rank, &together, NULL);
    for (size_t rank = 0; rank < world_size; rank++)
        for (size_t step = 0; step < RANK_JOB_STEPS; step++)
            assert_near(together.losses[rank][step], alone[step], 0, 1e-12);
}

/* Everything that mixes samples or ranks: batch norm, dropout, clipping by the norm of all gradients, and
 * Adam, which makes steps of one length of gradients of any. */
static void losses_of_many_ranks_are_those_of_one(void **state)
{
    (void)state;
    const struct variant variant = {rank_job_mixed_plan, 4,
        {"model.batch_norm=true", "optimizer.kind=adam", "optimizer.embedding_kind=adam",
            "train.max_gradient_norm=1"}};
    check(&variant, 2);
    check(&variant, 4);
    check(&variant, 8);
}

/* As configs/frappe has it: each step of Adam is as long as ten of the first embeddings. */
static void so_are_those_of_small_embeddings_and_long_steps(void **state)
{
    (void)state;
    const struct variant variant = {rank_job_mixed_plan, 8,
        {"model.batch_norm=true", "model.interaction=cat", "model.embedding_init_std=1e-4",
            "optimizer.kind=adam", "optimizer.embedding_kind=adam", "optimizer.embedding_l2=0.1",
            "optimizer.embedding_scope=whole", "train.max_gradient_norm=10"}};
    check(&variant, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_of_many_ranks_are_those_of_one),
        cmocka_unit_test(so_are_those_of_small_embeddings_and_long_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
