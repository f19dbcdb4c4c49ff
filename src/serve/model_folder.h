/* A folder that a training left: everything needed to score with its best model. */
#ifndef PH_SERVE_MODEL_FOLDER_H
#define PH_SERVE_MODEL_FOLDER_H

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "model/model_options.h"

/* Where a folder says what its model is: in DIR/config.yaml, or where there is none, as ph_train leaves it,
 * in what DIR/model.safetensors says of itself. For ph__config_read. */
struct ph__model_origin {
    const char *config_path; /* NULL: there is none */
    const char *const *sets; /* (num_sets) of model_identity.h; none where there is a config.yaml */
    size_t num_sets;
};

/* All in the arena. PH_ERROR_CHECKPOINT when neither is there, or the weights say what cannot be. */
ph_status ph__model_origin_find(
    struct ph__arena *arena, const char *folder, struct ph__model_origin *origin_out);

/* Turns what reading a folder's config came to, without anything that the user adds to it: PH_ERROR_CONFIG
 * becomes PH_ERROR_CHECKPOINT, as the fault is the folder's, and the record says so; another status is passed
 * on. */
ph_status ph__model_folder_blame(ph_status status);

/* The sections that scoring needs; what else DIR/config.yaml holds is not looked at. Stays where it is:
 * settings point into it. */
struct ph__model_config {
    struct ph__arena arena;
    struct ph_data_settings data;
    struct ph__model_section model;
};

/* The config is finished by ph__model_config_fini also after a failure. PH_ERROR_CHECKPOINT when it is
 * missing or damaged. */
ph_status ph__model_config_read(struct ph__model_config *config, const char *folder);
void ph__model_config_fini(struct ph__model_config *config);

/* The metadata of model.safetensors that say which encoder.json its weights were learnt with: the file's
 * SHA-256. */
#define PH_ENCODER_KEY "encoder_sha256"

struct ph__model_folder { /* zero-initialised is closed */
    struct ph_encoder *encoder;
    struct ph_program *program; /* by ph__scoring_program_build */
    struct ph_store *store;     /* the weights that the program reads, and no others */
    struct ph_state *state;
    double logit_shift; /* for the logit of task 0, as struct ph_scorer_options wants it */
};

/* Reads DIR/encoder.json and DIR/model.safetensors for a model of these settings, which are not needed later,
 * that learnt with this data.negative_rate; they need not be those of DIR/config.yaml, where somebody wants
 * them otherwise. Tables are held in row_format as far as that makes them smaller; they are converted piece
 * by piece while they are read. PH_ERROR_CHECKPOINT for a file that is missing or damaged, and for files that
 * do not fit each other, DIR/config.yaml among them where it is there. Close it also after a failure. */
ph_status ph__model_folder_open(struct ph__model_folder *model, const char *folder,
    const struct ph_model_settings *settings, double negative_rate, enum ph_row_format row_format);
void ph__model_folder_close(struct ph__model_folder *model);

#endif
