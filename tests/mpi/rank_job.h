/* A small training for programs of ranks: data that one of them makes, and a DLRM with tables of both few and
 * many rows. */
#ifndef PH_TEST_RANK_JOB_H
#define PH_TEST_RANK_JOB_H

#include "train/config/job_config.h"

enum { RANK_JOB_STEPS = 20, RANK_JOB_BATCH = 100, RANK_JOB_TABLES = 7 };

/* All kinds of shards in one plan, as a file says it behind its head. */
extern const char rank_job_mixed_plan[];

/* Writes the data, for all jobs, into FOLDER/data. By one rank. */
ph_status rank_job_make_data(const char *folder);

/* Writes the head and `text` to a plan file for as many ranks. By one rank. */
ph_status rank_job_write_plan(const char *path, size_t world_size, const char *text);
/* One for these ranks, which the first one writes and all have on return. */
ph_status rank_job_share_plan(struct ph_comm *comm, const char *path, const char *text);

struct rank_job {
    struct ph_config *config;
    struct ph_encoder *encoder;
    struct ph_train_observer observer;
    struct ph__train_job job;
    double losses[RANK_JOB_STEPS]; /* of the global batches of all steps that were taken */
};

/* A job of FOLDER's data with its outcome in `out`; plan: of a file, "auto" or "none". sets (num_sets) come
 * last. It must stay where it is until fini, also after a failure. comm NULL: of this process alone. */
ph_status rank_job_init(struct rank_job *job, struct ph_comm *comm, const char *folder, const char *out,
    const char *plan, size_t num_sets, const char *const *sets);
void rank_job_fini(struct rank_job *job);

#endif
