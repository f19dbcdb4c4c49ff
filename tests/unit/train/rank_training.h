/* A training by ranks that are threads, beside the same training alone. */
#ifndef PH_TEST_RANK_TRAINING_H
#define PH_TEST_RANK_TRAINING_H

#include "support/thread_ranks.h"
#include "train/config/train_options.h"

#include "unit/train/train_fixture.h"

struct rank_training {
    const struct setup *setup;
    struct ph_parallel_settings parallel;
    struct ph_train_summary summaries[THREAD_RANKS_MOST];
};

static inline ph_status train_as_rank(struct ph_comm *comm, void *context)
{
    struct rank_training *training = context;
    struct ph__train_job job = training->setup->job;
    job.options.comm = comm;
    job.options.observer = ph_comm_rank(comm) == 0 ? job.options.observer : NULL;
    job.parallel = &training->parallel;
    if (ph_comm_rank(comm) > 0)
        job.options.first_bad_rows = (struct ph_first_bad_rows){0};
    return ph__train(&job, &training->summaries[ph_comm_rank(comm)]);
}

/* plan: all of a plan file but its first lines; NULL: auto. What parallel settings the job has are as their
 * defaults but for memory_bytes. ends_out: (world_size), or NULL: none is to fail. */
static inline struct ph_train_summary train_on_ranks(
    const struct setup *setup, size_t world_size, const char *plan, struct thread_rank_end *ends_out)
{
    static char text[1024];
    struct rank_training training = {.setup = setup};
    const struct ph__section section = {&ph__parallel_options, &training.parallel};
    const struct thread_ranks ranks = {.world_size = world_size};
    assert_ok(ph__config_read(NULL, NULL, 0, &section, 1, &fixture.arena));
    if (setup->job.parallel != NULL)
        training.parallel.memory_bytes = setup->job.parallel->memory_bytes;
    if (plan != NULL) {
        snprintf(text, sizeof text, "version: 1\nworld_size: %zu\n%s", world_size, plan);
        training.parallel.plan = test_write_file("plan.yaml", text);
    }
    thread_ranks_run(&ranks, train_as_rank, &training, ends_out);
    return training.summaries[0];
}

/* Begins anew, whatever an earlier training has left. */
static inline struct ph_train_summary train_anew_on_ranks(
    const struct setup *setup, size_t world_size, const char *plan)
{
    remove_folder(setup);
    return train_on_ranks(setup, world_size, plan, NULL);
}

#endif
