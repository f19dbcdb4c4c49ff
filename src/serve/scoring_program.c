#include "serve/scoring_program.h"

#include "graph/graph.h"

typedef ph_status finish_function(struct ph_builder *builder, struct ph_program **program_out);

static ph_status build(finish_function *finish, const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision, struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_builder_set_precision(builder, precision);
    ph_output(builder, "logits", ph_model_build(builder, model, features));
    ph_status status = finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

ph_status ph__scoring_program_build(const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision, struct ph_program **program_out)
{
    return build(ph_builder_finish, model, features, precision, program_out);
}

ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out)
{
    return build(ph__builder_finish_unfused, model, features, PH_PRECISION_FP32, program_out);
}
