#include "cli/verb/scoring.h"

#include <string.h>

#include "cli/folder_config.h"
#include "tensor/row_format.h"

static ph_status create_scorer(struct cli_scoring *scoring, enum ph_precision precision, bool ignores_recipes)
{
    const struct ph_config *config = &scoring->config;
    const struct ph_backend_options backend_options = {
        .size = sizeof backend_options, .num_threads = config->run.num_threads, .team = config->run.team};
    PH_TRY(ph_backend_create(&backend_options, &scoring->backend));
    struct ph_scorer_options options = {
        .size = sizeof options,
        .model = &config->model.settings,
        .encoder = scoring->model.encoder,
        .store = scoring->model.store,
        .state = scoring->model.state,
        .backend = scoring->backend,
        .batch_size = (size_t)config->train.batch_size,
        .num_prefetched = config->data.reading.num_prefetched,
        .max_bad_rows = config->data.reading.max_bad_rows,
        .logit_shift = scoring->model.logit_shift,
        .precision = precision,
        .recipes = scoring->model.recipes.recipes,
        .num_recipes = ignores_recipes ? 0 : scoring->model.recipes.count,
    };
    return ph_scorer_create(&options, &scoring->scorer);
}

static ph_status parse_precision(const char *text, enum ph_precision *precision_out)
{
    const bool is_bf16 = text != NULL && strcmp(text, "bf16") == 0;
    *precision_out = is_bf16 ? PH_PRECISION_BF16 : PH_PRECISION_FP32;
    if (text == NULL || is_bf16 || strcmp(text, "fp32") == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "--precision '%.32s' must be one of fp32 bf16", text);
}

ph_status cli_scoring_open(struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets,
    const struct cli_formats *formats)
{
    enum ph_precision precision;
    enum ph_row_format format = PH_ROWS_FP32;
    *scoring = (struct cli_scoring){0};
    if (formats->row_format != NULL)
        PH_TRY(ph__row_format_parse("--row-format", formats->row_format, &format));
    PH_TRY(parse_precision(formats->precision, &precision));
    PH_TRY(cli_folder_config_read(&scoring->config, folder, sets));
    PH_TRY(ph__model_folder_open(&scoring->model, folder, &scoring->config.model.settings,
        scoring->config.data.reading.negative_rate, format, NULL));
    return create_scorer(scoring, precision, formats->ignores_recipes);
}

void cli_scoring_close(struct cli_scoring *scoring)
{
    ph_scorer_destroy(scoring->scorer);
    ph_backend_destroy(scoring->backend);
    ph__model_folder_close(&scoring->model);
    ph__job_config_fini(&scoring->config);
}
