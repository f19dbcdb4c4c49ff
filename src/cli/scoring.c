#include "cli/scoring.h"

#include "cli/folder_config.h"
#include "tensor/row_format.h"

static ph_status create_scorer(struct cli_scoring *scoring)
{
    const struct ph_config *config = &scoring->config;
    struct ph_backend_options backend_options = {(size_t)config->top.threads, !config->train.deterministic};
    PH_TRY(ph_backend_create(&backend_options, &scoring->backend));
    struct ph_scorer_options options = {
        .model = &config->model.settings,
        .encoder = scoring->model.encoder,
        .store = scoring->model.store,
        .state = scoring->model.state,
        .backend = scoring->backend,
        .batch_size = (size_t)config->train.batch_size,
        .num_prefetched = (size_t)config->data.num_prefetched,
        .max_bad_rows = (uint64_t)config->data.max_bad_rows,
        .logit_shift = scoring->model.logit_shift,
    };
    return ph_scorer_create(&options, &scoring->scorer);
}

ph_status cli_scoring_open(
    struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets, const char *row_format)
{
    enum ph_row_format format = PH_ROWS_FP32;
    *scoring = (struct cli_scoring){0};
    if (row_format != NULL)
        PH_TRY(ph__row_format_parse("--row-format", row_format, &format));
    PH_TRY(cli_folder_config_read(&scoring->config, folder, sets));
    PH_TRY(ph__model_folder_open(&scoring->model, folder, &scoring->config.model.settings,
        scoring->config.data.negative_rate, format));
    return create_scorer(scoring);
}

void cli_scoring_close(struct cli_scoring *scoring)
{
    ph_scorer_destroy(scoring->scorer);
    ph_backend_destroy(scoring->backend);
    ph__model_folder_close(&scoring->model);
    ph__job_config_fini(&scoring->config);
}
