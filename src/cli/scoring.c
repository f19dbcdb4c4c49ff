#include "cli/scoring.h"

/* What the folder says of its model, and over it the command line's sets. */
static ph_status read_joined(struct cli_scoring *scoring, const struct ph__model_origin *origin,
    const struct cli_texts *sets, struct ph_arena *arena)
{
    const size_t count = origin->num_sets + sets->count;
    const char **all = ph__arena_alloc_array(arena, count, sizeof *all);
    if (all == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = i < origin->num_sets ? origin->sets[i] : sets->items[i - origin->num_sets];
    return ph__job_config_read(&scoring->config, origin->config_path, all, count);
}

static ph_status read_config(struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets)
{
    struct ph__model_origin origin;
    struct ph_arena arena = {0};
    ph_status status = ph__model_origin_find(&arena, folder, &origin);
    if (status == PH_OK)
        status = read_joined(scoring, &origin, sets, &arena);
    ph__arena_fini(&arena);
    return status;
}

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

ph_status cli_scoring_open(struct cli_scoring *scoring, const char *folder, const struct cli_texts *sets)
{
    *scoring = (struct cli_scoring){0};
    PH_TRY(read_config(scoring, folder, sets));
    PH_TRY(ph__model_folder_open(
        &scoring->model, folder, &scoring->config.model.settings, scoring->config.data.negative_rate));
    return create_scorer(scoring);
}

void cli_scoring_close(struct cli_scoring *scoring)
{
    ph_scorer_destroy(scoring->scorer);
    ph_backend_destroy(scoring->backend);
    ph__model_folder_close(&scoring->model);
    ph__job_config_fini(&scoring->config);
}
