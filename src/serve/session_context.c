/* Contexts of a session: rows that were encoded become a batch, the batch outputs. A scorer computes one set
 * of outputs, and is built when the first batch asks for that set. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "serve/session.h"

#define LINE_BYTES 65536 /* of a line of text; longer lines make it grow */

/* ---- life ---- */

/* Makes a context without a scorer. */
static ph_status init(const struct ph_session *session, struct ph__context *context)
{
    const struct ph_encoder *encoder = session->model.encoder;
    *context = (struct ph__context){.encoder = encoder};
    ph__row_encoder_init(&context->row, encoder, NULL);
    context->row_starts = calloc(session->max_batch, sizeof(const uint32_t *));
    if (context->row_starts == NULL)
        return ph__out_of_memory("%zu rows", session->max_batch);
    struct ph__lookups *lookups = &context->row.lookups;
    PH_TRY(ph__array_reserve(
        (void **)&lookups->items, &lookups->capacity, session->row_ids, sizeof *lookups->items));
    PH_TRY(ph__array_reserve((void **)&context->line, &context->line_capacity, LINE_BYTES, 1));
    return ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &context->backend);
}

void ph__context_close(struct ph__context *context)
{
    for (struct ph__set_scorer *scorer = context->scorers, *next; scorer != NULL; scorer = next) {
        next = scorer->next;
        ph_scorer_destroy(scorer->scorer);
        free(scorer);
    }
    ph_backend_destroy(context->backend);
    ph__batch_buffer_fini(&context->buffer);
    ph__rows_fini(&context->rows);
    ph__row_encoder_fini(&context->row);
    free(context->row_starts);
    free(context->line);
    *context = (struct ph__context){0};
}

/* ---- outputs ---- */

enum { PROBABILITY = PH_OUTPUT_PROBABILITY, LOGIT, FIRST_NAMED };

ph_status ph__session_list_outputs(struct ph_session *session)
{
    struct ph_model_features features;
    struct ph__model_output *named = NULL;
    size_t num_named = 0;
    const size_t num_tasks = ph_encoder_num_tasks(session->model.encoder);
    PH_TRY(ph__features_init(session->model.encoder, &features));
    const ph_status status = ph__scoring_outputs(
        &session->config.model.settings, &features, &session->config.arena, &named, &num_named);
    ph__features_fini(&features);
    PH_TRY(status);
    num_named = ph__min(num_named, PH_MAX_NAMED_OUTPUTS);
    session->outputs =
        ph__arena_alloc_array(&session->config.arena, FIRST_NAMED + num_named, sizeof *session->outputs);
    if (session->outputs == NULL)
        return PH_ERROR_MEMORY;
    session->outputs[PROBABILITY] = (struct ph__model_output){"probability", num_tasks};
    session->outputs[LOGIT] = (struct ph__model_output){"logit", num_tasks};
    if (num_named > 0)
        memcpy(session->outputs + FIRST_NAMED, named, num_named * sizeof *named);
    session->num_outputs = FIRST_NAMED + num_named;
    return PH_OK;
}

static ph__output_set bit_of(size_t output)
{
    return output < FIRST_NAMED ? PH_LOGITS_SET : PH_LOGITS_SET << (output - FIRST_NAMED + 1);
}

ph__output_set ph__session_output_set(size_t num_outputs, const size_t *outputs)
{
    ph__output_set set = 0;
    for (size_t i = 0; i < num_outputs; i++)
        set |= bit_of(outputs[i]);
    return set;
}

/* Builds the scorer of a set. One thread at a time, since executors over one store are created. */
static ph_status build_scorer(
    const struct ph_session *session, struct ph__context *context, struct ph__set_scorer *scorer)
{
    for (size_t output = FIRST_NAMED; output < session->num_outputs; output++)
        if ((scorer->set & bit_of(output)) != 0)
            scorer->names[scorer->num_names++] = session->outputs[output].name;
    const struct ph_scorer_options options = {
        .size = sizeof options,
        .model = &session->config.model.settings,
        .encoder = session->model.encoder,
        .store = session->model.store,
        .state = session->model.state,
        .backend = context->backend,
        .batch_size = session->max_batch,
        .num_ids = session->max_batch * session->row_ids,
        .logit_shift = session->model.logit_shift,
        .precision = session->precision,
        .recipes = session->model.recipes.recipes,
        .num_recipes = session->model.recipes.count,
        .outputs = scorer->names,
        .num_outputs = scorer->num_names,
        .has_no_logits = (scorer->set & PH_LOGITS_SET) == 0,
    };
    return ph_scorer_create(&options, &scorer->scorer);
}

static ph_status add_scorer(struct ph_session *session, struct ph__context *context, ph__output_set set)
{
    struct ph__set_scorer *scorer = calloc(1, sizeof *scorer), **end = &context->scorers;
    if (scorer == NULL)
        return ph__out_of_memory("a scorer");
    scorer->set = set;
    pthread_mutex_lock(&session->building);
    const ph_status status = build_scorer(session, context, scorer);
    pthread_mutex_unlock(&session->building);
    if (status != PH_OK) {
        free(scorer);
        return status;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = scorer;
    return PH_OK;
}

ph_status ph__context_open(struct ph_session *session, struct ph__context *context)
{
    PH_TRY(init(session, context));
    return add_scorer(session, context, PH_LOGITS_SET);
}

static const struct ph__set_scorer *find_scorer(const struct ph__context *context, ph__output_set set)
{
    const struct ph__set_scorer *scorer = context->scorers;
    while (scorer != NULL && scorer->set != set)
        scorer = scorer->next;
    return scorer;
}

ph_status ph__context_prepare(struct ph_session *session, struct ph__context *context, ph__output_set set)
{
    return find_scorer(context, set) != NULL ? PH_OK : add_scorer(session, context, set);
}

ph_status ph__context_run(struct ph_session *session, struct ph__context *context, ph__output_set set)
{
    const size_t num_rows = context->rows.num_rows;
    PH_TRY(ph__context_prepare(session, context, set));
    context->current = find_scorer(context, set);
    for (size_t row = 0; row < num_rows; row++)
        context->row_starts[row] = context->rows.words + context->rows.starts[row];
    PH_TRY(ph__batch_buffer_fill(&context->buffer, context->encoder, context->row_starts, num_rows, 0));
    context->rows.num_rows = 0;
    return ph_scorer_score(context->current->scorer, &context->buffer.batch, &context->logits);
}

ph_status ph__context_output(const struct ph_session *session, const struct ph__context *context,
    size_t output, size_t first, size_t num_rows, float *to)
{
    const ph_real *values = context->logits;
    size_t width = session->outputs[output].width, index = 0;
    if (output >= FIRST_NAMED) {
        while (context->current->names[index] != session->outputs[output].name)
            index++;
        PH_TRY(ph_scorer_output(context->current->scorer, index, &values, &width));
    }
    if (output == PROBABILITY)
        ph__probabilities(num_rows * width, values + first * width, to);
    else
        for (size_t i = 0; i < num_rows * width; i++)
            to[i] = (float)values[first * width + i];
    return PH_OK;
}
