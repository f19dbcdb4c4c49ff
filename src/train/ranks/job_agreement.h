/* Checks, before anything is learnt, that the ranks of a job are about to do the same thing: that none of
 * them works by another config, program or data than the others. PH_ERROR_CONFIG on all ranks names what
 * differs, between which of them.
 *
 * A rank's own are threads, data.prefetch, where its files are (not what is in them), what it prints and
 * profiles, and where its trace goes (not whether there is one). Files are compared by their sizes and a few
 * blocks of their bytes: a cheap look that finds other data, not every other byte; prepared data by their
 * manifest, which has the sums of all parts. */
#ifndef PH_TRAIN_JOB_AGREEMENT_H
#define PH_TRAIN_JOB_AGREEMENT_H

#include "plan/plan.h"
#include "train/config/job_config.h"

/* The program, its instruction set, where the training is and whether it resumes, and the config, key by key:
 * before any data is read. */
ph_status ph__agree_on_run(
    struct ph_comm *comm, const struct ph_config *config, const char *folder, bool is_resumed);

/* What a job has that any program may have given: instruction set, seed, settings, encoder, and what is in
 * the data. */
ph_status ph__agree_on_job(const struct ph_train_job *job);

/* The plan that each has read or made, table by table. */
ph_status ph__agree_on_plan(struct ph_comm *comm, const struct ph__plan *plan);

#endif
