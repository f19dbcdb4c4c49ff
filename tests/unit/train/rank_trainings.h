/* Whole trainings of ranks that are threads, on the data of train_fixture.h. */
#ifndef PH_TEST_RANK_TRAININGS_H
#define PH_TEST_RANK_TRAININGS_H

#include "support/thread_ranks.h"
#include "unit/train/train_fixture.h"

enum { TRAINING_RANKS = 3 };

/* A rank's own job, to be spoilt, and what came of it. */
struct rank_training {
    struct ph__train_job job;
    struct ph_train_settings train;
    struct ph_parallel_settings parallel;
    int signal; /* as a handler would set it */
    struct ph_train_summary summary;
};

/* A plan file that cuts every table by rows. */
static inline const char *plan_by_rows(void)
{
    const char *path = ph__path_join(&fixture.arena, test_folder(), "rows.yaml");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "version: 1\nworld_size: %d\ndefault: {kind: row_wise}\n", TRAINING_RANKS);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* One that takes dense cells as they are; else they go through a logarithm. */
static inline struct ph_encoder *make_plain_encoder(void)
{
    static const char *const sets[] = {"data.fields[1].transform=none"};
    struct ph_data_settings settings;
    struct ph__section section = {&ph__data_options, &settings};
    struct ph_encoder *encoder;
    const char *path = ph__path_join(&fixture.arena, test_folder(), "synth.yaml");
    assert_ok(ph__config_read(path, sets, COUNT(sets), &section, 1, &fixture.arena));
    assert_ok(ph_encoder_create(&settings, &encoder));
    return encoder;
}

/* The same job for all ranks, none of which writes to the caller's buffers: they run at once. */
static inline void make_rank_trainings(
    const struct setup *setup, struct rank_training trainings[TRAINING_RANKS])
{
    const char *plan = plan_by_rows();
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++) {
        struct rank_training *training = &trainings[rank];
        *training = (struct rank_training){.job = setup->job, .train = setup->train};
        training->parallel = (struct ph_parallel_settings){.plan = plan,
            .sync = PH_SYNC_ALLREDUCE,
            .transport = "auto",
            .bucket_bytes = 1 << 20,
            .overlap = true};
        training->job.train = &training->train;
        training->job.parallel = &training->parallel;
        training->job.options.stop_signal = &training->signal;
        training->job.options.first_bad_rows = (struct ph_first_bad_rows){0};
    }
}

static inline ph_status train_as_rank(struct ph_comm *comm, void *context)
{
    struct rank_training *training = (struct rank_training *)context + ph_comm_rank(comm);
    training->job.options.comm = comm;
    return ph__train(&training->job, &training->summary);
}

/* ends_out: (TRAINING_RANKS), or NULL: none is to fail. */
static inline void run_rank_trainings(
    struct rank_training trainings[TRAINING_RANKS], struct thread_rank_end *ends_out)
{
    thread_ranks_run(
        &(struct thread_ranks){.world_size = TRAINING_RANKS}, train_as_rank, trainings, ends_out);
}

/* All ranks have ended with the status and one text, which one of them tells. */
static inline void assert_one_failure(
    const struct thread_rank_end ends[TRAINING_RANKS], ph_status status, const char *text)
{
    size_t num_speakers = 0;
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++) {
        assert_int_equal(ends[rank].status, status);
        if (strstr(ends[rank].text, text) == NULL)
            fail_msg("rank %zu: '%s' lacks '%s'", rank, ends[rank].text, text);
        assert_string_equal(ends[rank].text, ends[0].text);
        num_speakers += ends[rank].speaks;
    }
    assert_int_equal(num_speakers, 1);
}

#endif
