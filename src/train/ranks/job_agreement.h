/* Checks, before anything is learnt, that the ranks of a job are about to do the same thing: none of them may
 * have another config, program or data. PH_ERROR_CONFIG on all ranks names what differs, and between which
 * ranks.
 *
 * Each rank may have its own threads, data.prefetch, paths of files (not their contents), output, profile,
 * and path of its trace (but all write one, or none). Files are compared by their sizes and a few blocks of
 * bytes: a cheap check that finds other data, but not every changed byte; prepared data is compared by its
 * manifest, which has the sums of all parts. */
#ifndef PH_TRAIN_JOB_AGREEMENT_H
#define PH_TRAIN_JOB_AGREEMENT_H

#include "plan/plan.h"
#include "train/config/job_config.h"

/* Compares the program, its instruction set, the training's folder and whether it resumes, and the config,
 * key by key. Called before any data is read. */
ph_status ph__agree_on_run(
    struct ph_comm *comm, const struct ph_config *config, const char *folder, bool is_resumed);

/* Compares the parts of a job that any program may have set: instruction set, seed, settings, encoder, and
 * the contents of the data. */
ph_status ph__agree_on_job(const struct ph__train_job *job);

/* Compares the plan that each rank has read or made, table by table. */
ph_status ph__agree_on_plan(struct ph_comm *comm, const struct ph__plan *plan);

#endif
