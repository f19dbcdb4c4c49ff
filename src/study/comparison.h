/* Several configs, each trained with several seeds: the runs, their folders, and their outcomes.
 *
 * A run is an ordinary training folder, DIR/runs/STEM-KEY-seedN, identified by its key (run_key.h): finished
 * runs are not repeated, stopped ones go on. Runs take turns by seed, all configs with the first seed, then
 * all with the second, so that other load on the machine disturbs all configs alike. A failed run does not
 * affect the others. */
#ifndef PH_STUDY_COMPARISON_H
#define PH_STUDY_COMPARISON_H

#include "train/config/job_config.h"
#include "train/config/run_key.h"

enum ph__run_state { PH_RUN_WAITING, PH_RUN_FINISHED, PH_RUN_FAILED };

struct ph__compared_run {
    const char *folder;
    enum ph__run_state state;
    bool is_of_before;               /* finished before this process */
    struct ph_train_summary summary; /* FINISHED */
    char backend[128];
    ph_status status; /* FAILED */
    const char *failure;
};

/* A row of the comparison: a config, as it is or with the settings of a variant over it. */
struct ph__compared {
    const char *name; /* stem of the path, or the path if stems are alike; then the variant's settings */
    const char *path; /* of the config */
    struct ph_config *config;
    bool is_variant;
    size_t base; /* row that it is compared with; its own: none */
    char key[PH_RUN_KEY_BYTES];
    char test_key[PH_RUN_KEY_BYTES]; /* of its test data */
    struct ph__compared_run *runs;   /* (num_seeds) */
};

struct ph__comparison { /* zero-initialised: fini is fine */
    struct ph__arena arena;
    struct ph__compared *rows;
    size_t num_rows;
    const int64_t *seeds; /* borrowed */
    size_t num_seeds;
};

struct ph__comparison_plan { /* borrowed; texts must live as long as the comparison */
    const char *const *configs;
    size_t num_configs;
    const char *const *sets; /* over each config */
    size_t num_sets;
    /* Each config gets a second row, with these sets too, compared with its first; may be none. */
    const char *const *variant;
    size_t num_variant;
    const char *base; /* one of the configs; NULL: the first */
    const int64_t *seeds;
    size_t num_seeds;
    const char *folder;
};

struct ph__comparison_watcher {
    void *context;
    /* Called when a run has ended. */
    void (*on_run)(void *context, const struct ph__comparison *comparison, size_t row, size_t seed);
    struct ph_train_observer observer; /* of each training */
    const volatile int *stop_signal;   /* of each training */
};

/* Reads all configs, so that errors show before anything runs. Errors: those of ph_config_read;
 * PH_ERROR_CONFIG for a config without data.train; PH_ERROR_USAGE for a config that is given twice, a base
 * that is not among the configs, a seed among the sets, and a variant that makes no difference to a config's
 * outcome. Call fini also after a failure. */
ph_status ph__comparison_init(struct ph__comparison *comparison, const struct ph__comparison_plan *plan);
void ph__comparison_fini(struct ph__comparison *comparison);

/* Trains the runs that are not finished. PH_ERROR_INTERRUPTED, PH_ERROR_TERMINATED: a further call goes on.
 * Failed runs are marked as such, and do not change the status. */
ph_status ph__comparison_run(struct ph__comparison *comparison, const struct ph__comparison_watcher *watcher);

/* Returns PH_OK, or the status of the first run that failed, with a line that names the run. */
ph_status ph__comparison_outcome(const struct ph__comparison *comparison);

#endif
