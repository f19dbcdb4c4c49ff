/* DIR/tune.json: the results of a search's trainings, step by step, by which a resumed search decides as
 * before. */
#ifndef PH_STUDY_TUNE_JOURNAL_H
#define PH_STUDY_TUNE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__tune_step {
    char run[128];     /* name of the run's folder */
    int64_t epochs;    /* to train the run for */
    int64_t exit_code; /* 0, or that of the failure */
    char failure[512];
    double valid_auc, valid_logloss; /* of the best model so far */
    uint64_t epochs_trained;
    double train_seconds;
};

struct ph__tune_journal { /* zero-initialised is empty */
    struct ph__tune_step *steps;
    size_t num_steps, capacity;
};

/* Reads the journal; a missing file is an empty one. PH_ERROR_CHECKPOINT naming the damage. Call fini also
 * after a failure. */
ph_status ph__tune_journal_read(struct ph__tune_journal *journal, const char *path);
void ph__tune_journal_fini(struct ph__tune_journal *journal);

/* Finds a step, borrowed until the next one is added. NULL: it has not been taken. */
const struct ph__tune_step *ph__tune_journal_find(
    const struct ph__tune_journal *journal, const char *run, int64_t epochs);

/* Adds a step, and writes the whole journal atomically. */
ph_status ph__tune_journal_add(
    struct ph__tune_journal *journal, const struct ph__tune_step *step, const char *path);

#endif
