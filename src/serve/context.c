#include "serve/context.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "serve/probability.h"

#define LINE_BYTES 65536 /* of text; longer lines make it grow */

ph_status ph__context_open(struct ph__context *context, const struct ph__model_folder *model,
    const struct ph_model_settings *settings, enum ph_precision precision, size_t max_batch, size_t row_ids)
{
    *context = (struct ph__context){.encoder = model->encoder};
    ph__row_encoder_init(&context->row, model->encoder, NULL);
    context->row_starts = calloc(max_batch, sizeof(const uint32_t *));
    if (context->row_starts == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu rows", max_batch);
    struct ph__lookups *lookups = &context->row.lookups;
    PH_TRY(ph__array_reserve((void **)&lookups->items, &lookups->capacity, row_ids, sizeof *lookups->items));
    PH_TRY(ph__array_reserve((void **)&context->line, &context->line_capacity, LINE_BYTES, 1));
    PH_TRY(ph_backend_create(&(struct ph_backend_options){.num_threads = 1}, &context->backend));
    struct ph_scorer_options options = {
        .model = settings,
        .encoder = model->encoder,
        .store = model->store,
        .state = model->state,
        .backend = context->backend,
        .batch_size = max_batch,
        .num_ids = max_batch * row_ids,
        .logit_shift = model->logit_shift,
        .precision = precision,
    };
    return ph_scorer_create(&options, &context->scorer);
}

void ph__context_close(struct ph__context *context)
{
    ph_scorer_destroy(context->scorer);
    ph_backend_destroy(context->backend);
    ph__batch_buffer_fini(&context->buffer);
    ph__rows_fini(&context->rows);
    ph__row_encoder_fini(&context->row);
    free(context->row_starts);
    free(context->line);
    *context = (struct ph__context){0};
}

ph_status ph__context_score(struct ph__context *context, float *probabilities)
{
    const ph_real *logits = NULL; /* (B,T) */
    const size_t num_rows = context->rows.num_rows;
    for (size_t row = 0; row < num_rows; row++)
        context->row_starts[row] = context->rows.words + context->rows.starts[row];
    PH_TRY(ph__batch_buffer_fill(&context->buffer, context->encoder, context->row_starts, num_rows, 0));
    context->rows.num_rows = 0;
    PH_TRY(ph_scorer_score(context->scorer, &context->buffer.batch, &logits));
    ph__probabilities(num_rows * context->encoder->num_tasks, logits, probabilities);
    return PH_OK;
}
