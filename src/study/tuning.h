/* A search over the ranges that a config declares: random, or by successive halving.
 *
 * A trial is a candidate (candidate.h); a run is one training of it, with one of tune.seeds seeds, in an
 * ordinary training folder, DIR/trials/NNNN-KEY-seedN, without test data: data.valid alone decides. Random
 * search is halving with one rung. A run that goes on to the next rung is resumed with more epochs, and ends
 * as if all epochs had been asked for at once (docs/RESUME.md): the plateau schedule's cuts, patience and the
 * best model are carried.
 *
 * Each step, a run to the end of a rung, is recorded in DIR/tune.json, so that a search that was stopped
 * decides as before and repeats nothing. Folders are identified by a key of config, program and data
 * (run_key.h). */
#ifndef PH_STUDY_TUNING_H
#define PH_STUDY_TUNING_H

#include "base/format/text_table.h"
#include "study/candidate.h"
#include "study/tune_journal.h"
#include "train/config/job_config.h"

struct ph__trial {
    uint64_t index;          /* of the candidate */
    const char *const *sets; /* in place of the config's values */
    size_t num_sets;
    const char *name; /* "0003-KEY"; its runs' folders add "-seedN" */
    bool is_promoted; /* takes part in the current rung */
    size_t num_rungs; /* finished by all its runs */
    int64_t epochs;   /* of the last rung finished */
    /* At its end, over all runs; deviations are NaN for one run. */
    double valid_auc, auc_deviation, valid_logloss, logloss_deviation;
    double train_seconds; /* of all its runs */
    const char *failure;  /* NULL: none */
};

struct ph__tuning { /* zero-initialised: fini is fine */
    struct ph__arena arena;
    const struct ph__tuning_plan *plan;
    struct ph_config *config; /* candidate 0, with its test data */
    struct ph__trial *trials;
    size_t num_trials;
    struct ph__rung rungs[PH_MAX_RUNGS];
    size_t num_rungs;
    struct ph__tune_journal journal;
    const char *journal_path;
    int lock;        /* of the folder; -1: none */
    double deadline; /* ph__clock_seconds; INFINITY: none */
    bool is_out_of_time;
};

struct ph__tuning_plan { /* borrowed until ph__tuning_fini */
    const char *config;
    const char *const *sets;
    size_t num_sets;
    const char *folder;
};

struct ph__tuning_watcher {
    void *context;
    /* Called when a step has ended, in this process or (is_of_before) in an earlier one. */
    void (*on_step)(void *context, const struct ph__trial *trial, int64_t seed,
        const struct ph__tune_step *step, bool is_of_before);
    struct ph_train_observer observer; /* of each training */
    const volatile int *stop_signal;   /* of each training */
};

/* ---- order of trials ---- */

/* Returns true when trials are compared by logloss; else by AUC. */
bool ph__tuning_is_by_logloss(const struct ph__tuning *tuning);

/* Orders the trials that have finished a rung, the best first: by rungs finished, then by the metric, then by
 * number; the others follow. In the arena. PH_ERROR_MEMORY. */
ph_status ph__tuning_order(
    struct ph__tuning *tuning, const struct ph__trial ***trials_out, size_t *num_finished_out);

/* ---- the search ---- */

/* Reads the trial's whole config, also with the test data, which have no say in the search. The caller
 * destroys it. */
ph_status ph__tuning_read_trial(
    struct ph__tuning *tuning, const struct ph__trial *trial, struct ph_config **config_out);

/* Reads the config and tries every range against the tables of keys, before anything runs. PH_ERROR_CONFIG
 * naming range and reason, also when no value of a range changes the run; PH_ERROR_USAGE while another search
 * works in the folder; PH_ERROR_CHECKPOINT for a damaged journal. Call fini also after a failure. */
ph_status ph__tuning_init(struct ph__tuning *tuning, const struct ph__tuning_plan *plan);
void ph__tuning_fini(struct ph__tuning *tuning);

/* Trains until the search is done or out of time; called once a search. A candidate that diverges, or whose
 * settings contradict one another, drops out, and the search goes on, unless the config as it is fails before
 * it has finished a rung. Other failures end the search and are not recorded, so that a further process tries
 * again: errors of ph_train_config, and PH_ERROR_CHECKPOINT for a run's folder that is ahead of the journal.
 * PH_ERROR_INTERRUPTED, PH_ERROR_TERMINATED: a further process goes on. */
ph_status ph__tuning_run(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher);

/* ---- files of a search, also of a stopped one: trials.csv and best.yaml (tuning_files.c) ---- */

/* Writes DIR/trials.csv, a line a trial, the best first. Once a trial has finished a rung, also writes
 * DIR/best.yaml: the whole config with the best values and its test data; before that, removes a former one.
 * PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__tuning_files_write(struct ph__tuning *tuning);

/* Fills a table of the trials for people; its last column is the values. */
ph_status ph__tuning_table(struct ph__tuning *tuning, struct ph__text_table *table_out);

#endif
