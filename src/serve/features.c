#include "serve/features.h"

#include <stdlib.h>

/* Of each feature: itself, and the slice that it has in a table. */
static void list_slices(const struct ph_encoder *encoder, size_t num_sparse, struct ph_table_slice *sparse,
    struct ph_table_slice *slices)
{
    for (size_t f = 0; f < num_sparse; f++) {
        const struct ph_sparse_feature *feature = ph_encoder_sparse(encoder, f);
        const char *owner = ph_encoder_sparse(encoder, feature->owner)->name;
        sparse[f] = (struct ph_table_slice){feature->name, feature->num_rows};
        slices[f] = (struct ph_table_slice){owner, feature->num_rows};
    }
}

ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out)
{
    const size_t num_sparse = ph_encoder_num_sparse(encoder);
    struct ph_table_slice *sparse = calloc(2 * num_sparse + 1, sizeof *sparse);
    if (sparse == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu features", num_sparse);
    list_slices(encoder, num_sparse, sparse, sparse + num_sparse);
    *features_out = (struct ph_model_features){
        .num_dense = ph_encoder_num_dense(encoder),
        .num_sparse = num_sparse,
        .num_tasks = ph_encoder_num_tasks(encoder),
        .sparse = sparse,
        .slices = sparse + num_sparse,
        .has_id_weights = ph_encoder_has_id_weights(encoder),
    };
    return PH_OK;
}

void ph__features_fini(struct ph_model_features *features)
{
    free((void *)features->sparse);
    *features = (struct ph_model_features){0};
}
