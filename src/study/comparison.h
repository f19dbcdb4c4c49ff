/* Several configs, each trained with several seeds: which runs there are, where they live, and how they
 * ended.
 *
 * A run is an ordinary training folder, DIR/runs/STEM-KEY-seedN, known by its key (run_key.h): what is
 * finished is not repeated, what was stopped goes on. Runs take turns by seed, all configs with the first
 * one, then all with the second: whatever else disturbs the machine disturbs them alike. A run that fails
 * leaves the others alone. */
#ifndef PH_STUDY_COMPARISON_H
#define PH_STUDY_COMPARISON_H

#include "train/config/run_key.h"
#include "train/ranks/config_run.h"

enum ph__run_state { PH_RUN_WAITING, PH_RUN_FINISHED, PH_RUN_FAILED };

struct ph__compared_run {
    const char *folder;
    enum ph__run_state state;
    bool is_of_before;               /* it was found finished */
    struct ph_train_summary summary; /* FINISHED */
    char backend[128];
    ph_status status; /* FAILED */
    const char *failure;
};

/* One row of the comparison: a config, as it is or with the settings of a variant over it. */
struct ph__compared {
    const char *name; /* as it is told apart: its stem, or its path where stems are alike; and the variant's
                         settings */
    const char *path; /* of the config */
    struct ph_config *config;
    bool is_variant;
    size_t base; /* the row that it is compared with; its own: none */
    char key[PH_RUN_KEY_BYTES];
    char test_key[PH_RUN_KEY_BYTES]; /* of its test data */
    struct ph__compared_run *runs;   /* (num_seeds) */
};

struct ph__comparison { /* zero-initialised may be finished */
    struct ph__arena arena;
    struct ph__compared *rows;
    size_t num_rows;
    const int64_t *seeds; /* borrowed */
    size_t num_seeds;
};

struct ph__comparison_plan { /* borrowed; texts need to live as long as the comparison */
    const char *const *configs;
    size_t num_configs;
    const char *const *sets; /* over each config */
    size_t num_sets;
    const char *const
        *variant; /* each config once more, with these sets too, compared with itself without; may be none */
    size_t num_variant;
    const char *base; /* one of the configs; NULL: the first */
    const int64_t *seeds;
    size_t num_seeds;
    const char *folder;
};

struct ph__comparison_watcher {
    void *context;
    void (*on_run)(
        void *context, const struct ph__comparison *comparison, size_t row, size_t seed); /* it has ended */
    void (*on_note)(void *context, const char *text);
    struct ph__signals signals;
};

/* Reads all configs, so that what is wrong with one is said before anything runs. Errors: those of
 * ph_config_read; PH_ERROR_CONFIG for a config without data.train, PH_ERROR_USAGE for one that is given
 * twice, for a base that is none of them, for a seed among the sets, and for a variant by which a config
 * would come to the same. To be finished also after a failure. */
ph_status ph__comparison_init(struct ph__comparison *comparison, const struct ph__comparison_plan *plan);
void ph__comparison_fini(struct ph__comparison *comparison);

/* Trains what is not finished. PH_ERROR_INTERRUPTED, PH_ERROR_TERMINATED: a further call goes on. That runs
 * failed is told by them, not by the status. */
ph_status ph__comparison_run(struct ph__comparison *comparison, const struct ph__comparison_watcher *watcher);

/* PH_OK, or the status of the first run that failed, with a line that names it. */
ph_status ph__comparison_outcome(const struct ph__comparison *comparison);

#endif
