/* Sessions: a run folder's model behind a pool of contexts.
 *
 * A call takes a context, scores with it on its own thread, and gives it back, which wakes a waiting call;
 * when all contexts are taken a call waits. All else that calls share is read-only: encoder, weights,
 * settings.
 *
 * Opening sends the largest planned batch through every context. Memory that grows with the rows of a call
 * has then grown, the weights are packed and have been touched, and a call allocates nothing any more. */
#include "serve/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel.h"
#include "data/source/arrow_rows.h"

#define DEFAULT_MAX_BATCH 64
#define DEFAULT_LIST_LENGTH 32
#define MOST_BATCH ((size_t)1 << 16)
#define MOST_LIST_LENGTH ((size_t)1 << 16)

/* ---- columns ---- */

static bool is_feature(const struct ph__column *column)
{
    return column->kind == PH_FIELD_ID || column->kind == PH_FIELD_DENSE;
}

/* Adds a column, with all features that are made of it. */
static ph_status add_column(struct ph__inputs *inputs, const struct ph_encoder *encoder, const char *name)
{
    size_t next = inputs->first[inputs->index.count], count;
    const struct ph__column *const *made = ph__encoder_made_from(encoder, name, &count);
    PH_TRY(ph__name_index_add(&inputs->index, name));
    for (size_t i = 0; i < count; i++)
        if (is_feature(made[i]))
            inputs->features[next++] = made[i];
    inputs->first[inputs->index.count] = next;
    return PH_OK;
}

static ph_status add_columns(struct ph__inputs *inputs, const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (is_feature(column) && ph__name_index_find(&inputs->index, column->from) == PH_NO_NAME)
            PH_TRY(add_column(inputs, encoder, column->from));
    }
    return PH_OK;
}

ph_status ph__inputs_init(const struct ph_encoder *encoder, struct ph__inputs *inputs_out)
{
    const size_t most = encoder->num_columns + 1;
    struct ph__inputs inputs = {
        .first = calloc(most, sizeof *inputs.first),
        .features = calloc(most, sizeof(const struct ph__column *)),
    };
    const ph_status status = inputs.first != NULL && inputs.features != NULL
                                 ? add_columns(&inputs, encoder)
                                 : ph__out_of_memory("%zu columns", encoder->num_columns);
    if (status == PH_OK)
        *inputs_out = inputs;
    else
        ph__inputs_fini(&inputs);
    return status;
}

void ph__inputs_fini(struct ph__inputs *inputs)
{
    ph__name_index_fini(&inputs->index);
    free(inputs->first);
    free(inputs->features);
    *inputs = (struct ph__inputs){0};
}

ph_status ph__inputs_encode(const struct ph__inputs *inputs, struct ph__row_encoder *row,
    const struct ph_cell *cells, struct ph__rows *rows)
{
    PH_TRY(ph__row_begin(row, rows));
    for (size_t i = 0; i < inputs->index.count; i++)
        for (size_t f = inputs->first[i]; f < inputs->first[i + 1]; f++)
            PH_TRY(ph__row_cell(row, inputs->features[f], &cells[i]));
    return ph__row_commit(row);
}

/* ---- the pool ---- */

static struct ph__context *acquire(struct ph_session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->num_free == 0)
        pthread_cond_wait(&session->is_given_back, &session->lock);
    struct ph__context *context = session->free_contexts[--session->num_free];
    pthread_mutex_unlock(&session->lock);
    return context;
}

static void release(struct ph_session *session, struct ph__context *context)
{
    pthread_mutex_lock(&session->lock);
    session->free_contexts[session->num_free++] = context;
    pthread_mutex_unlock(&session->lock);
    pthread_cond_signal(&session->is_given_back);
}

/* ---- scoring ---- */

/* Gives the outputs of a batch whose first row is row `first` of the request. */
static ph_status take_outputs(const struct ph_session *session, const struct ph__context *context,
    const struct ph__wanted *wanted, size_t first, size_t num_rows)
{
    for (size_t i = 0; i < wanted->num_outputs; i++) {
        const size_t output = wanted->outputs[i];
        float *to = wanted->values[i] + first * session->outputs[output].width;
        PH_TRY(ph__context_output(session, context, output, 0, num_rows, to));
    }
    return PH_OK;
}

/* Makes one pass over the rows; without outputs they are only encoded. */
static ph_status run_pass(struct ph_session *session, struct ph__context *context,
    struct ph__request *request, const struct ph__wanted *wanted)
{
    const ph__output_set set =
        wanted != NULL ? ph__session_output_set(wanted->num_outputs, wanted->outputs) : 0;
    for (size_t first = 0; first < request->num_rows; first += session->max_batch) {
        const size_t count = ph__min(request->num_rows - first, session->max_batch);
        context->rows.num_rows = 0;
        for (size_t row = first; row < first + count; row++)
            PH_TRY(request->encode(request, context, row));
        if (wanted == NULL)
            continue;
        PH_TRY(ph__context_run(session, context, set));
        PH_TRY(take_outputs(session, context, wanted, first, count));
    }
    return PH_OK;
}

/* Refuses a graph of more nodes than a batch has rows. */
static ph_status check_rows(const struct ph_session *session, size_t num_rows)
{
    if (!ph__session_is_of_graphs(session) || num_rows <= session->max_batch)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE,
        "a graph of %zu nodes cannot be cut into batches of %zu rows: raise max_batch", num_rows,
        session->max_batch);
}

/* Encodes rows of several batches twice, so that all are known to be good before a result is written. */
ph_status ph__session_run(
    struct ph_session *session, struct ph__request *request, const struct ph__wanted *wanted)
{
    struct ph__context *context = acquire(session);
    fenv_t former;
    ph_status status = check_rows(session, request->num_rows);
    ph__cpu_float_enter(false, &former);
    if (status == PH_OK && (wanted == NULL || request->num_rows > session->max_batch))
        status = run_pass(session, context, request, NULL);
    if (status == PH_OK && wanted != NULL)
        status = run_pass(session, context, request, wanted);
    ph__cpu_float_leave(&former);
    release(session, context);
    return status;
}

static const size_t probability = PH_OUTPUT_PROBABILITY;

ph_status ph__session_run_probabilities(
    struct ph_session *session, struct ph__request *request, float *probabilities)
{
    const struct ph__wanted wanted = {1, &probability, &probabilities};
    return ph__session_run(session, request, &wanted);
}

struct cell_request {
    struct ph__request base;
    const struct ph__inputs *inputs;
    const struct ph_cell *cells; /* (num_rows, num_columns) */
};

static ph_status encode_cells(struct ph__request *base, struct ph__context *context, size_t row)
{
    const struct cell_request *request = (const struct cell_request *)base;
    const struct ph_cell *cells = request->cells + row * request->inputs->index.count;
    ph_status status = ph__inputs_encode(request->inputs, &context->row, cells, &context->rows);
    return status == PH_OK ? PH_OK : ph_fail(status, "row %zu: %s", row, ph_error_text());
}

ph_status ph_session_score(
    struct ph_session *session, size_t num_rows, const struct ph_cell *cells, float *probabilities)
{
    struct cell_request request = {{num_rows, encode_cells}, &session->inputs, cells};
    return ph__session_run_probabilities(session, &request.base, probabilities);
}

ph_status ph_session_score_outputs(struct ph_session *session, size_t num_rows, const struct ph_cell *cells,
    size_t num_outputs, const size_t *outputs, float *const *values)
{
    struct cell_request request = {{num_rows, encode_cells}, &session->inputs, cells};
    const struct ph__wanted wanted = {num_outputs, outputs, values};
    for (size_t i = 0; i < num_outputs; i++)
        if (outputs[i] >= session->num_outputs)
            return ph_fail(
                PH_ERROR_USAGE, "output %zu: the session has %zu", outputs[i], session->num_outputs);
    return ph__session_run(session, &request.base, &wanted);
}

struct arrow_request {
    struct ph__request base;
    struct ph__arrow_rows rows;
};

static ph_status encode_arrow(struct ph__request *base, struct ph__context *context, size_t row)
{
    struct arrow_request *request = (struct arrow_request *)base;
    ph_status status = ph__row_begin(&context->row, &context->rows);
    if (status == PH_OK)
        status = ph__arrow_rows_encode(&request->rows, &context->row, row);
    if (status == PH_OK)
        status = ph__row_commit(&context->row);
    return status == PH_OK ? PH_OK : ph_fail(status, "row %zu: %s", row, ph_error_text());
}

ph_status ph_session_score_arrow(struct ph_session *session, const struct ArrowArray *batch,
    const struct ArrowSchema *schema, float *probabilities)
{
    struct ph__arena arena = {0};
    struct ph__dataset_batch columns;
    struct arrow_request request = {.base.encode = encode_arrow};
    ph_status status = ph__dataset_batch_init(&arena, batch, schema, &columns);
    if (status == PH_OK)
        status =
            ph__arrow_rows_match(&request.rows, session->model.encoder, &columns, PH_ARROW_FEATURES_ALONE);
    if (status == PH_OK) {
        request.base.num_rows = (size_t)columns.num_rows;
        status = ph__session_run_probabilities(session, &request.base, probabilities);
    }
    ph__arrow_rows_fini(&request.rows);
    ph__arena_fini(&arena);
    return status;
}

/* ---- warming up ---- */

struct longest_request {
    struct ph__request base;
    size_t list_length;
};

/* Encodes a row of blanks and full lists, with an id of each in turn: no row needs more memory. */
static ph_status encode_longest(struct ph__request *base, struct ph__context *context, size_t row)
{
    const struct ph_encoder *encoder = context->encoder;
    const size_t list_length = ((const struct longest_request *)base)->list_length;
    (void)row;
    PH_TRY(ph__row_begin(&context->row, &context->rows));
    for (size_t i = 0; i < list_length; i++)
        for (size_t list = 0; list < encoder->num_lists; list++)
            PH_TRY(ph__row_integer_item(&context->row, encoder->sparse_columns[encoder->lists[list]], 0, 1));
    return ph__row_commit(&context->row);
}

/* Scores with every context. The session is not in use yet, so contexts are not taken from the pool. */
static ph_status warm_up(struct ph_session *session, size_t list_length)
{
    struct longest_request request = {{session->max_batch, encode_longest}, list_length};
    const size_t num_tasks = ph_encoder_num_tasks(session->model.encoder);
    float *probabilities = calloc(session->max_batch * num_tasks, sizeof *probabilities);
    if (probabilities == NULL)
        return ph__out_of_memory("%zu rows", session->max_batch);
    const struct ph__wanted wanted = {1, &probability, &probabilities};
    ph_status status = PH_OK;
    for (size_t i = 0; i < session->num_contexts && status == PH_OK; i++)
        status = run_pass(session, &session->contexts[i], &request.base, &wanted);
    free(probabilities);
    return status;
}

/* ---- opening ---- */

static ph_status choose(const char *what, size_t wanted, size_t standard, size_t most, size_t *chosen_out)
{
    if (wanted > most)
        return ph_fail(PH_ERROR_USAGE, "session: %s %zu must be at most %zu", what, wanted, most);
    *chosen_out = wanted > 0 ? wanted : standard;
    return PH_OK;
}

static ph_status open_contexts(struct ph_session *session, size_t num_contexts)
{
    session->contexts = calloc(num_contexts, sizeof *session->contexts);
    session->free_contexts = calloc(num_contexts, sizeof(struct ph__context *));
    if (session->contexts == NULL || session->free_contexts == NULL)
        return ph__out_of_memory("%zu contexts", num_contexts);
    for (size_t i = 0; i < num_contexts; i++) {
        session->num_contexts++;
        PH_TRY(ph__context_open(session, &session->contexts[i]));
        session->free_contexts[session->num_free++] = &session->contexts[i];
    }
    return PH_OK;
}

static ph_status open_session(
    struct ph_session *session, const char *folder, const struct ph_session_options *options)
{
    size_t num_contexts, list_length;
    PH_TRY(choose("max_batch", options->max_batch, DEFAULT_MAX_BATCH, MOST_BATCH, &session->max_batch));
    PH_TRY(choose("num_threads", options->num_threads, 1, PH_MAX_THREADS, &num_contexts));
    PH_TRY(choose("list_length", options->list_length, DEFAULT_LIST_LENGTH, MOST_LIST_LENGTH, &list_length));
    if ((unsigned)options->row_format >= PH_ROW_FORMAT_COUNT)
        return ph_fail(PH_ERROR_USAGE, "session: row_format %u is unknown", (unsigned)options->row_format);
    if ((unsigned)options->precision > PH_PRECISION_BF16)
        return ph_fail(PH_ERROR_USAGE, "session: precision %u is unknown", (unsigned)options->precision);
    const struct ph_store *donor = options->share_with != NULL ? options->share_with->model.store : NULL;
    PH_TRY(ph__model_config_read(&session->config, folder));
    PH_TRY(ph__model_folder_open(&session->model, folder, &session->config.model.settings,
        session->config.data.reading.negative_rate, options->row_format, donor));
    PH_TRY(ph__inputs_init(session->model.encoder, &session->inputs));
    PH_TRY(ph__lines_init(session->model.encoder, &session->lines));
    PH_TRY(ph__session_list_outputs(session));
    const struct ph_encoder *encoder = session->model.encoder;
    session->row_ids = encoder->num_sparse + encoder->num_lists * (list_length - 1);
    session->precision = options->precision;
    PH_TRY(open_contexts(session, num_contexts));
    return warm_up(session, list_length);
}

ph_status ph_session_open(
    const char *folder, const struct ph_session_options *options, struct ph_session **session_out)
{
    struct ph_session_options own;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_session_options"));
    struct ph_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return ph__out_of_memory("a session");
    pthread_mutex_init(&session->lock, NULL);
    pthread_mutex_init(&session->building, NULL);
    pthread_cond_init(&session->is_given_back, NULL);
    fenv_t former;
    ph__cpu_float_enter(false, &former); /* numbers are read from the files */
    ph_status status = open_session(session, folder, &own);
    ph__cpu_float_leave(&former);
    if (status == PH_OK)
        *session_out = session;
    else
        ph_session_close(session);
    return status;
}

void ph_session_close(struct ph_session *session)
{
    if (session == NULL)
        return;
    for (size_t i = 0; i < session->num_contexts; i++)
        ph__context_close(&session->contexts[i]);
    free(session->contexts);
    free(session->free_contexts);
    ph__lines_fini(&session->lines);
    ph__inputs_fini(&session->inputs);
    ph__model_folder_close(&session->model);
    ph__model_config_fini(&session->config);
    pthread_cond_destroy(&session->is_given_back);
    pthread_mutex_destroy(&session->building);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

/* ---- queries ---- */

size_t ph_session_num_columns(const struct ph_session *session)
{
    return session->inputs.index.count;
}

const char *ph_session_column_name(const struct ph_session *session, size_t column)
{
    return ph__name_index_text(&session->inputs.index, column);
}

size_t ph_session_find_column(const struct ph_session *session, const char *name)
{
    return ph__name_index_find(&session->inputs.index, name);
}

size_t ph_session_num_tasks(const struct ph_session *session)
{
    return ph_encoder_num_tasks(session->model.encoder);
}

uint64_t ph_session_weight_bytes(const struct ph_session *session)
{
    return ph_store_parameter_bytes(session->model.store);
}

size_t ph_session_num_outputs(const struct ph_session *session)
{
    return session->num_outputs;
}

const char *ph_session_output_name(const struct ph_session *session, size_t output)
{
    return session->outputs[output].name;
}

size_t ph_session_output_width(const struct ph_session *session, size_t output)
{
    return session->outputs[output].width;
}

size_t ph_session_find_output(const struct ph_session *session, const char *name)
{
    for (size_t i = 0; i < session->num_outputs; i++)
        if (strcmp(session->outputs[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}
