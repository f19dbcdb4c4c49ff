/* Interface of each architecture's file. */
#ifndef PH_MODEL_MODEL_H
#define PH_MODEL_MODEL_H

#include "base/option/option.h"
#include "phloem/model.h"

struct ph__model {
    const char *description; /* one line */
    /* Keys of the model's own section "model.<name>"; NULL: none. At most PH_MODEL_KEYS_BYTES of settings. */
    const struct ph__option_table *keys;
    bool takes_towers; /* its embeddings may be the vectors of towers, of another number and width */
    /* Adds the architecture to the builder and returns its logits (B,T). The features have been checked: at
     * least one dense or sparse feature and one task. settings->own has the values of `keys`, never NULL
     * where there are any. */
    ph_value (*build)(struct ph_builder *builder, const struct ph_model_settings *settings,
        const struct ph_model_features *features);
};

#define PH_MODEL_KEYS_BYTES 4096

#define MODEL(name) extern const struct ph__model ph__model_##name;
#include "model/models.def"
#undef MODEL

enum ph__model_kind {
#define MODEL(name) PH_MODEL_##name,
#include "model/models.def"
#undef MODEL
    PH_NUM_MODELS
};

/* Refuses batch norm beside block norm, with PH_ERROR_CONFIG. */
ph_status ph__model_check_norms(const struct ph_model_settings *settings);

/* Returns a kind's model; kind in [0, PH_NUM_MODELS). */
const struct ph__model *ph__model(int kind);

#endif
