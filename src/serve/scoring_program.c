#include "serve/scoring_program.h"

ph_status ph__scoring_program_build(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", ph_model_build(builder, model, features));
    ph_status status = ph_builder_finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}
