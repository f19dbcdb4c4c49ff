/* A training by a config, in a folder that keeps the config as config.yaml: for phloem train, and for
 * programs that train by several configs. */
#ifndef PH_TRAIN_CONFIG_RUN_H
#define PH_TRAIN_CONFIG_RUN_H

#include "train/config/job_config.h"

/* A program's way of leaving signals to trainings. All zero: trainings are never stopped. */
struct ph__signals {
    const volatile int *stop_signal; /* as in struct ph_train_job */
    /* Called with true when there is something to save: from then on the program leaves a signal in
     * *stop_signal. Before, and after a call with false, a signal may end the process at once; a call with
     * false ends it for a signal that was left but not handled. */
    void (*watch)(bool is_on);
};

struct ph__config_run { /* all borrowed */
    struct ph_config *config;
    const char *folder;
    struct ph_comm *comm;                     /* as in struct ph_train_job */
    const struct ph_reducer *reducer;         /* as in struct ph_train_job */
    bool is_resumed;                          /* true: the folder may hold a training to resume */
    const struct ph_train_observer *observer; /* NULL: none. on_start comes before config.yaml is written */
    const char *profile_path;                 /* the rest as in struct ph_train_job */
    const char *trace_path;
    struct ph_first_bad_rows first_bad_rows;
    struct ph__signals signals;
};

/* Runs the training. Errors: those of ph_train and ph_encoder_create; PH_ERROR_CONFIG also when the config
 * differs from the one in the folder in a key that may not change. */
ph_status ph__config_run(const struct ph__config_run *run, struct ph_train_summary *summary_out);

#endif
