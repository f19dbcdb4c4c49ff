#include "serve/scoring_program.h"

#include "graph/distribution.h"
#include "graph/graph.h"

typedef ph_status finish_function(struct ph_builder *builder, struct ph_program **program_out);

static ph_status build(finish_function *finish, const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision,
    const struct ph_distribution *distribution, struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    const ph_value *more;
    size_t num_more;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_builder_set_precision(builder, precision);
    ph_output(builder, "logits", ph_model_build(builder, model, features));
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    ph_status status = finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

ph_status ph__scoring_program_build(const struct ph_model_settings *model,
    const struct ph_model_features *features, enum ph_precision precision,
    const struct ph_distribution *distribution, struct ph_program **program_out)
{
    return build(ph_builder_finish, model, features, precision, distribution, program_out);
}

ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out)
{
    return build(ph__builder_finish_unfused, model, features, PH_PRECISION_FP32, NULL, program_out);
}
