/* A training by a config, in its folder, where config.yaml says by what: what phloem train does, and whoever trains by
 * several configs. */
#ifndef PH_TRAIN_CONFIG_RUN_H
#define PH_TRAIN_CONFIG_RUN_H

#include "train/job_config.h"

struct ph__config_run { /* all borrowed */
    struct ph_config *config;
    const char *folder;
    struct ph_comm *comm;                     /* as in struct ph_train_job */
    const struct ph_reducer *reducer;         /* as in struct ph_train_job */
    bool is_resumed;                          /* goes on in a folder that is not empty */
    const struct ph_train_observer *observer; /* NULL: none. on_start comes before config.yaml is written */
    FILE *profile_file;                       /* the rest as in struct ph_train_job */
    const char *trace_path;
    /* Called when training begins, and gives what ph_train_job.stop_signal is: until then a signal may end the process at
     * once, since there is nothing to save. NULL: never stopped. */
    const volatile int *(*watch_signals)(void);
};

/* Errors: those of ph_train and ph_encoder_create; PH_ERROR_CONFIG also when the config differs from the one in the folder
 * in a key that may not change. */
ph_status ph__config_run(const struct ph__config_run *run, struct ph_train_summary *summary_out);

#endif
