/* A job's config: the option tables of all rooms put together. phloem/config.h is its public face; this
 * header adds what only the program needs. */
#ifndef PH_TRAIN_JOB_CONFIG_H
#define PH_TRAIN_JOB_CONFIG_H

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "data/data_options.h"
#include "data/prepared/prepare_options.h"
#include "data/synth/synth_csbm.h"
#include "data/synth/synth_options.h"
#include "data/synth/synth_slates.h"
#include "model/model_options.h"
#include "phloem/config.h"
#include "train/config/study_options.h"
#include "train/config/train_options.h"
#include "train/job.h"

/* May not be moved: settings point into it. Read once, then fini. */
struct ph_config {
    struct ph__arena arena;
    struct ph_run_settings run;
    struct ph_data_settings data;
    struct ph__model_section model;
    struct ph_train_settings train;
    struct ph__optimizer_section optimizer;
    struct ph_parallel_settings parallel;
    struct ph__published_settings published;
    struct ph_prepare_settings prepare;
    struct ph_synth_settings synth;
    struct ph__slates_settings slates;
    struct ph__csbm_settings csbm;
    struct ph__tune_settings tune;
};

/* Does ph_config_read into the caller's memory. Call ph__job_config_fini also after a failure. */
ph_status ph__job_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets);
void ph__job_config_fini(struct ph_config *config);

/* Returns the job of a config. folder, is_resumed, encoder and all that watches the training are zero, for
 * the caller to fill in. paths.train is NULL where the config names no data.train. */
struct ph__train_job ph__config_job(const struct ph_config *config);

/* ---- configs that trainings have left in their folders ---- */

/* Reads the config.yaml at `path` (NULL: defaults) with sets over it. A kept config names the splits of
 * prepared data as files, which may have moved: they are looked for again only where sets name other prepared
 * data. PH_ERROR_CHECKPOINT when the file is missing or damaged; errors in sets keep their own code. Call
 * ph__job_config_fini also after a failure. */
ph_status ph__kept_config_read(
    struct ph_config *config, const char *path, const char *const *sets, size_t num_sets);

/* PH_ERROR_CONFIG when the config differs from the kept one in a key that may not change on resume. */
ph_status ph__kept_config_compare(const struct ph_config *config, const char *path);

/* ---- as text ---- */

/* Gives every value that shapes a training's outcome, except its seed and the place of its data, as lines
 * "train.epochs=3" of values that differ from the default: configs that train alike give the same text. In
 * the arena. */
ph_status ph__job_config_outcome(
    const struct ph_config *config, struct ph__arena *arena, const char **text_out);

/* Gives every value that the ranks of a job share, as lines "train.epochs=3". In the arena. */
ph_status ph__job_config_common(
    const struct ph_config *config, struct ph__arena *arena, const char **text_out);

/* Gives the values that filter selects of a job, which need not come from a config, as lines
 * "train.epochs=3", without those that its encoder was made by. In the arena. */
ph_status ph__job_values(const struct ph__train_job *job, struct ph__key_filter filter,
    struct ph__arena *arena, const char **text_out);

/* Writes the help of every key, as Markdown or plain text. */
ph_status ph__job_config_describe(struct ph__writer *writer, bool is_markdown);

#endif
