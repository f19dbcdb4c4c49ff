/* DIR/tune.json: what the trainings of a search came to, step by step, so that one that is resumed decides as
 * it did. */
#ifndef PH_STUDY_TUNE_JOURNAL_H
#define PH_STUDY_TUNE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__tune_step {
    char run[128];     /* the name of its folder */
    int64_t epochs;    /* that the run was to be trained for */
    int64_t exit_code; /* 0, or why it failed */
    char failure[512];
    double valid_auc, valid_logloss; /* of the best model so far */
    uint64_t epochs_trained;
    double train_seconds;
};

struct ph__tune_journal { /* zero-initialised is empty */
    struct ph__tune_step *steps;
    size_t num_steps, capacity;
};

/* A missing file is an empty journal. PH_ERROR_CHECKPOINT naming what is damaged. To be finished also after a
 * failure. */
ph_status ph__tune_journal_read(struct ph__tune_journal *journal, const char *path);
void ph__tune_journal_fini(struct ph__tune_journal *journal);

/* NULL: it has not been done. Borrowed until the next one is added. */
const struct ph__tune_step *ph__tune_journal_find(
    const struct ph__tune_journal *journal, const char *run, int64_t epochs);

/* And writes the whole in one moment. */
ph_status ph__tune_journal_add(
    struct ph__tune_journal *journal, const struct ph__tune_step *step, const char *path);

#endif
