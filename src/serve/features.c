#include "serve/features.h"

#include <stdlib.h>

ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out)
{
    size_t num_sparse = ph_encoder_num_sparse(encoder);
    struct ph_table_slice *slices = calloc(num_sparse + 1, sizeof *slices);
    if (slices == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu features", num_sparse);
    for (size_t f = 0; f < num_sparse; f++) {
        const struct ph_sparse_feature *feature = ph_encoder_sparse(encoder, f);
        slices[f] = (struct ph_table_slice){feature->name, feature->num_rows};
    }
    *features_out = (struct ph_model_features){
        .num_dense = ph_encoder_num_dense(encoder),
        .num_sparse = num_sparse,
        .num_tasks = ph_encoder_num_tasks(encoder),
        .sparse = slices,
        .has_id_weights = ph_encoder_has_id_weights(encoder),
    };
    return PH_OK;
}

void ph__features_fini(struct ph_model_features *features)
{
    free((void *)features->sparse);
    *features = (struct ph_model_features){0};
}
