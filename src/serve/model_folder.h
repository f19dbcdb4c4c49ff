/* A folder that a training left: everything needed to score with its best model. */
#ifndef PH_SERVE_MODEL_FOLDER_H
#define PH_SERVE_MODEL_FOLDER_H

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "graph/recipe_table.h"
#include "model/model_options.h"

/* Source of a folder's model settings: DIR/config.yaml or, without one, as ph__train leaves it, the metadata
 * of DIR/model.safetensors. For ph__config_read. */
struct ph__model_origin {
    const char *config_path; /* NULL: none */
    const char *const *sets; /* (num_sets) of model_identity.h; none where there is a config.yaml */
    size_t num_sets;
};

/* Finds the origin; all of it is in the arena. PH_ERROR_CHECKPOINT when both sources are missing, or the
 * weights' settings are invalid. */
ph_status ph__model_origin_find(
    struct ph__arena *arena, const char *folder, struct ph__model_origin *origin_out);

/* Turns PH_ERROR_CONFIG from reading a folder's config, without settings of the user, into
 * PH_ERROR_CHECKPOINT, as the fault is the folder's, and extends the record accordingly. Passes other
 * statuses on. */
ph_status ph__model_folder_blame(ph_status status);

/* Sections that scoring needs, without the others of DIR/config.yaml. Must not move: settings point into
 * it. */
struct ph__model_config {
    struct ph__arena arena;
    struct ph_data_settings data;
    struct ph__model_section model;
};

/* Reads the config, to be finished by ph__model_config_fini also after a failure. PH_ERROR_CHECKPOINT when it
 * is missing or damaged. */
ph_status ph__model_config_read(struct ph__model_config *config, const char *folder);
void ph__model_config_fini(struct ph__model_config *config);

/* Metadata key of model.safetensors: SHA-256 of the encoder.json that its weights were learnt with. */
#define PH_ENCODER_KEY "encoder_sha256"

struct ph__model_folder { /* zero-initialised is closed */
    struct ph_encoder *encoder;
    struct ph_program *program; /* made by ph__scoring_program_build_unfused */
    struct ph_store *store;     /* the weights that the program reads, and no others */
    struct ph_state *state;
    double logit_shift; /* for the logit of task 0, for struct ph_scorer_options */
    struct ph__arena arena;
    struct ph__recipe_table recipes; /* of DIR/recipes.json; none without that file */
};

/* Reads DIR/encoder.json and DIR/model.safetensors for a model of these settings (not needed later) that
 * learnt with this data.negative_rate; the caller may pass other settings than those of DIR/config.yaml.
 * Tables are held in row_format as far as that makes them smaller; they are converted piece by piece while
 * they are read. Unchanged tables of `donor`, another such store, are shared; NULL: none. PH_ERROR_CHECKPOINT
 * for a file that is missing or damaged, and for files that do not fit each other, including DIR/config.yaml
 * if present. Close it also after a failure. */
ph_status ph__model_folder_open(struct ph__model_folder *model, const char *folder,
    const struct ph_model_settings *settings, double negative_rate, enum ph_row_format row_format,
    const struct ph_store *donor);
void ph__model_folder_close(struct ph__model_folder *model);

#endif
