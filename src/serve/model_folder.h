/* A folder that phloem train left: everything needed to score with its best model. */
#ifndef PH_SERVE_MODEL_FOLDER_H
#define PH_SERVE_MODEL_FOLDER_H

#include "base/arena.h"
#include "data/data_options.h"
#include "model/model_options.h"
#include "phloem/serve.h"

/* The sections of DIR/config.yaml that scoring needs; what else the file holds is not looked at. Stays where it is:
 * settings point into it. */
struct ph__model_config {
    struct ph_arena arena;
    struct ph_data_settings data;
    struct ph_model_section model;
};

/* The config is finished by ph__model_config_fini also after a failure. */
ph_status ph__model_config_read(struct ph__model_config *config, const char *folder);
void ph__model_config_fini(struct ph__model_config *config);

/* The metadata of model.safetensors that say which encoder.json its weights were learnt with: the file's SHA-256. */
#define PH_ENCODER_KEY "encoder_sha256"

struct ph__model_folder { /* zero-initialised is closed */
    struct ph_encoder *encoder;
    struct ph_program *program; /* by ph__scoring_program_build */
    struct ph_store *store;     /* the weights that the program reads, and no others */
    struct ph_state *state;
    double logit_shift; /* for the logit of task 0, as struct ph_scorer_options wants it */
};

/* Where the file of this name stands in the folder; owned by the arena. PH_ERROR_CHECKPOINT when it is missing. */
ph_status ph__model_folder_find(
    struct ph_arena *arena, const char *folder, const char *name, const char **path_out);

/* Reads DIR/encoder.json and DIR/model.safetensors for a model of these settings, which are not needed later, that
 * learnt with this data.negative_rate; they need not be those of DIR/config.yaml, where somebody wants them otherwise.
 * PH_ERROR_CHECKPOINT for a file that is missing or damaged, and for files that do not fit each other, DIR/config.yaml
 * among them. Close it also after a failure. */
ph_status ph__model_folder_open(struct ph__model_folder *model, const char *folder,
    const struct ph_model_settings *settings, double negative_rate);
void ph__model_folder_close(struct ph__model_folder *model);

#endif
