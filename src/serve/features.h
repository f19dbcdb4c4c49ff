/* The features that an encoder gives, as models want them. */
#ifndef PH_SERVE_FEATURES_H
#define PH_SERVE_FEATURES_H

#include "phloem/data.h"
#include "phloem/model.h"

/* Names stay the encoder's. */
ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out);
void ph__features_fini(struct ph_model_features *features);

#endif
