#include "serve/repository/served.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"

/* ---- outputs ---- */

static ph_status add_output(struct ph__served *served, const struct ph__served_output *output)
{
    for (size_t i = 0; i < served->num_outputs; i++)
        if (strcmp(served->outputs[i].name, output->name) == 0)
            return PH_OK; /* a label named as an output that every model has */
    served->outputs[served->num_outputs++] = *output;
    return PH_OK;
}

static ph_status add_named(void *context, struct ph__bytes name)
{
    struct ph__served *served = context;
    struct ph_session *session = served->session;
    if (ph__served_find_output(served, name) != NULL)
        return PH_OK;
    for (size_t i = 0; i < ph_session_num_outputs(session); i++)
        if (ph__bytes_are(name, ph_session_output_name(session, i)))
            return add_output(served, &(struct ph__served_output){ph_session_output_name(session, i), i,
                                          PH_NO_TASK, ph_session_output_width(session, i)});
    return ph_fail(PH_ERROR_CONFIG, "outputs: model '%s' has no output '%.*s'", served->model, (int)name.size,
        name.bytes);
}

/* Lists what every request gets, and behind it what the settings offer. */
static ph_status list_outputs(struct ph__served *served)
{
    const struct ph_encoder *encoder = served->session->model.encoder;
    const size_t num_tasks = ph_session_num_tasks(served->session);
    const size_t capacity = 2 + num_tasks + ph_session_num_outputs(served->session);
    served->outputs = ph__arena_alloc_array(&served->arena, capacity, sizeof *served->outputs);
    if (served->outputs == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < 2; i++)
        PH_TRY(add_output(served, &(struct ph__served_output){
                                      ph_session_output_name(served->session, i), i, PH_NO_TASK, num_tasks}));
    for (size_t i = 0; i < encoder->num_columns && num_tasks > 1; i++)
        if (encoder->columns[i].kind == PH_FIELD_LABEL)
            PH_TRY(add_output(served,
                &(struct ph__served_output){encoder->columns[i].name, 0, encoder->columns[i].slot, 1}));
    served->num_standard = served->num_outputs;
    return ph__list_visit(served->settings.outputs, add_named, served);
}

const struct ph__served_output *ph__served_find_output(const struct ph__served *served, struct ph__bytes name)
{
    for (size_t i = 0; i < served->num_outputs; i++)
        if (ph__bytes_are(name, served->outputs[i].name))
            return &served->outputs[i];
    return NULL;
}

/* ---- life ---- */

static ph_status open_session(struct ph__served *served, const struct ph__served_options *options)
{
    const struct ph_served_settings *settings = &served->settings;
    const struct ph_session_options session = {.size = sizeof session,
        .max_batch = settings->max_batch,
        .num_threads = options->num_workers,
        .row_format = settings->row_format,
        .precision = settings->precision,
        .share_with = options->former != NULL ? options->former->session : NULL};
    PH_TRY(ph_session_open(options->folder, &session, &served->session));
    PH_TRY(list_outputs(served));
    const struct ph__queue_options queue = {.session = served->session,
        .max_batch = settings->max_batch,
        .max_delay_us = settings->max_queue_delay_us,
        .max_rows = settings->max_queue_rows,
        .max_bytes = settings->max_queue_bytes};
    return ph__queue_create(options->scheduler, &queue, &served->queue);
}

static bool is_busy(const void *scheduler)
{
    return ph__scheduler_is_busy(scheduler);
}

static ph_status start_speculator(struct ph__served *served, const struct ph__served_options *options)
{
    return ph__speculator_create(&(struct ph__speculator_options){.settings = &served->settings.speculation,
                                     .model = served->model,
                                     .log = options->log,
                                     .is_busy = is_busy,
                                     .context = options->scheduler},
        &served->speculator);
}

/* Takes the speculation of the version before, or starts one. */
static ph_status open_speculator(struct ph__served *served, const struct ph__served_options *options)
{
    const struct ph_speculation_settings *settings = &served->settings.speculation;
    struct ph__speculator *former = options->former != NULL ? options->former->speculator : NULL;
    if (settings->teacher[0] == '\0')
        return PH_OK;
    if (former != NULL)
        served->speculator = ph__speculator_share(former, settings);
    if (served->speculator == NULL)
        PH_TRY(start_speculator(served, options));
    return ph__speculator_check(served->speculator, served->session, served->model);
}

ph_status ph__served_open(const struct ph__served_options *options, struct ph__served **served_out)
{
    const uint64_t begun_ns = ph__clock_ns();
    struct ph__served *served = calloc(1, sizeof *served);
    if (served == NULL)
        return ph__out_of_memory("a model");
    served->version = options->version;
    snprintf(served->version_text, sizeof served->version_text, "%" PRIu64, options->version);
    served->model = ph__arena_strdup(&served->arena, options->model);
    ph_status status = served->model != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__served_settings_copy(options->settings, &served->arena, &served->settings);
    if (status == PH_OK)
        status = open_session(served, options);
    if (status == PH_OK)
        status = open_speculator(served, options);
    if (status != PH_OK) {
        ph__served_close(served);
        return status;
    }
    served->load_ns = ph__clock_ns() - begun_ns;
    *served_out = served;
    return PH_OK;
}

void ph__served_close(struct ph__served *served)
{
    if (served == NULL)
        return;
    ph__queue_destroy(served->queue);
    ph__speculator_release(served->speculator);
    ph_session_close(served->session);
    ph__arena_fini(&served->arena);
    free(served);
}

/* ---- figures ---- */

static enum ph__served_failure failure_of(enum ph__oip_code code)
{
    switch (code) {
    case PH_OIP_UNAVAILABLE:
    case PH_OIP_DEADLINE:
        return PH_FAILURE_REJECTED;
    case PH_OIP_CANCELLED:
        return PH_FAILURE_CANCELED;
    case PH_OIP_INTERNAL:
        return PH_FAILURE_BACKEND;
    default:
        return PH_FAILURE_OTHER;
    }
}

static size_t bucket_of(uint64_t ns)
{
    size_t bucket = 0;
    while (bucket + 1 < PH_LATENCY_BUCKETS && ns > (uint64_t)PH_FIRST_LATENCY_NS << bucket)
        bucket++;
    return bucket;
}

void ph__served_book(struct ph__served *served, const struct ph__work *work, uint64_t arrived_ns)
{
    struct ph__served_figures *figures = &served->figures;
    const struct ph__work_times *times = &work->times;
    const uint64_t now_ns = ph__clock_ns();
    figures->last_request_ms = ph__clock_utc_ms();
    if (work->code != PH_OIP_OK) {
        figures->failures[failure_of(work->code)]++;
        figures->failures_ns += now_ns - arrived_ns;
        return;
    }
    figures->successes++;
    figures->request_ns += now_ns - arrived_ns;
    figures->latencies[bucket_of(now_ns - arrived_ns)]++;
    if (times->scored == 0)
        return; /* without rows */
    figures->queue_ns += times->begun - times->queued;
    figures->encode_ns += times->encoded - times->begun;
    figures->score_ns += times->scored - times->encoded;
    figures->output_ns += times->done - times->scored;
}

struct ph__served_figures ph__served_figures(struct ph__served *served)
{
    struct ph__served_figures figures = served->figures;
    struct ph__queue_figures queue;
    ph__queue_figures(served->queue, &queue);
    figures.rows = queue.num_rows;
    figures.batches = queue.batches.count;
    return figures;
}

void ph__served_sample(struct ph__served *served)
{
    struct ph__served_history *history = &served->history;
    const struct ph__served_figures figures = ph__served_figures(served);
    if (history->count == PH_HISTORY)
        memmove(history->samples, history->samples + 1, --history->count * sizeof *history->samples);
    struct ph__served_sample *sample = &history->samples[history->count++];
    *sample = (struct ph__served_sample){
        .ns = ph__clock_ns(), .successes = figures.successes, .rows = figures.rows};
    for (size_t i = 0; i < PH_NUM_FAILURES; i++)
        sample->failures += figures.failures[i];
    memcpy(sample->latencies, figures.latencies, sizeof sample->latencies);
}

/* Interpolates within the bucket that the quantile lies in. */
double ph__served_quantile_ms(
    const struct ph__served_sample *from, const struct ph__served_sample *to, double share)
{
    const double wanted = share * (double)(to->successes - from->successes);
    double sum = 0, low = 0;
    if (to->successes == from->successes)
        return (double)NAN;
    for (size_t i = 0; i < PH_LATENCY_BUCKETS; i++) {
        const double high = (double)((uint64_t)PH_FIRST_LATENCY_NS << i) * 1e-6;
        const double count = (double)(to->latencies[i] - from->latencies[i]);
        if (count > 0 && sum + count >= wanted)
            return low + (high - low) * (wanted - sum) / count;
        sum += count;
        low = high;
    }
    return low;
}

static ph_status list_batches(
    const struct ph__served *served, struct ph__arena *arena, struct ph__list *batches_out)
{
    const size_t max_batch = served->settings.max_batch;
    struct ph__batch_figures *figures = ph__arena_alloc_array(arena, max_batch + 1, sizeof *figures);
    if (figures == NULL)
        return PH_ERROR_MEMORY;
    ph__queue_batch_figures(served->queue, figures);
    for (size_t rows = 1; rows <= max_batch; rows++) {
        const uint64_t count = figures[rows].count;
        if (count == 0)
            continue;
        struct ph__oip_batch_statistics *batch = ph__list_add(batches_out, sizeof *batch, arena);
        if (batch == NULL)
            return PH_ERROR_MEMORY;
        *batch = (struct ph__oip_batch_statistics){.batch_size = rows,
            .compute_input = {count, figures[rows].encode_ns},
            .compute_infer = {count, figures[rows].score_ns},
            .compute_output = {count, figures[rows].output_ns}};
    }
    return PH_OK;
}

ph_status ph__served_statistics(
    struct ph__served *served, struct ph__arena *arena, struct ph__oip_model_statistics *statistics_out)
{
    const struct ph__served_figures figures = ph__served_figures(served);
    uint64_t num_failures = 0;
    struct ph__oip_memory *memory = ph__arena_alloc(arena, sizeof *memory);
    if (memory == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < PH_NUM_FAILURES; i++)
        num_failures += figures.failures[i];
    *memory = (struct ph__oip_memory){ph__bytes_of("CPU"), 0, ph_session_weight_bytes(served->session)};
    *statistics_out = (struct ph__oip_model_statistics){
        .name = ph__bytes_of(served->model),
        .version = ph__bytes_of(served->version_text),
        .last_inference = figures.last_request_ms,
        .inference_count = figures.rows,
        .execution_count = figures.batches,
        .durations =
            {
                .success = {figures.successes, figures.request_ns},
                .fail = {num_failures, figures.failures_ns},
                .queue = {figures.successes, figures.queue_ns},
                .compute_input = {figures.successes, figures.encode_ns},
                .compute_infer = {figures.successes, figures.score_ns},
                .compute_output = {figures.successes, figures.output_ns},
            },
        .memory = {memory, 1},
    };
    return list_batches(served, arena, &statistics_out->batches);
}

/* ---- descriptions ---- */

/* A tensor as metadata and config describe it: shape [-1], or [-1, width]. */
struct described {
    struct ph__bytes name;
    enum ph__tensor_type type;
    size_t width; /* 0: one dimension alone */
    bool is_ragged;
};

/* Gives the tensors to `add`, one by one. */
typedef ph_status describe_function(void *context, struct ph__arena *arena, const struct described *tensor);

static enum ph__tensor_type type_of(const struct ph_session *session, size_t column)
{
    const struct ph__column *feature = session->inputs.features[session->inputs.first[column]];
    return feature->kind == PH_FIELD_DENSE ? PH_TENSOR_FP32 : PH_TENSOR_BYTES;
}

static bool is_list(const struct ph_session *session, size_t column)
{
    return session->inputs.features[session->inputs.first[column]]->is_list;
}

static ph_status describe_ending(const char *column, const char *ending, enum ph__tensor_type type,
    struct ph__arena *arena, describe_function *add, void *context)
{
    const char *name = ph__arena_printf(arena, "%s%s", column, ending);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    return add(context, arena, &(struct described){ph__bytes_of(name), type, 0, true});
}

/* Describes columns that are the foundation model's alone. */
static ph_status describe_more_inputs(
    const struct ph__served *served, struct ph__arena *arena, describe_function *add, void *context)
{
    const struct ph__name_index *columns = ph__speculator_columns(served->speculator);
    for (size_t i = 0; i < columns->count; i++) {
        const char *name = ph__name_index_text(columns, i);
        if (ph_session_find_column(served->session, name) == SIZE_MAX)
            PH_TRY(add(context, arena, &(struct described){ph__bytes_of(name), PH_TENSOR_BYTES, 1, false}));
    }
    return PH_OK;
}

static ph_status describe_inputs(
    const struct ph__served *served, struct ph__arena *arena, describe_function *add, void *context)
{
    const struct ph_session *session = served->session;
    for (size_t i = 0; i < ph_session_num_columns(session); i++) {
        const char *name = ph_session_column_name(session, i);
        if (served->speculator != NULL && ph__speculator_fills(served->speculator, name))
            continue;
        PH_TRY(add(context, arena, &(struct described){ph__bytes_of(name), type_of(session, i), 1, false}));
        if (!is_list(session, i))
            continue;
        PH_TRY(describe_ending(name, "__values", PH_TENSOR_INT64, arena, add, context));
        PH_TRY(describe_ending(name, "__offsets", PH_TENSOR_INT32, arena, add, context));
    }
    if (served->speculator != NULL)
        return describe_more_inputs(served, arena, add, context);
    if (session->lines.kind == PH_LINES_NONE)
        return PH_OK;
    return add(context, arena, &(struct described){ph__bytes_of("lines"), PH_TENSOR_BYTES, 1, false});
}

static ph_status describe_outputs(
    const struct ph__served *served, struct ph__arena *arena, describe_function *add, void *context)
{
    for (size_t i = 0; i < served->num_outputs; i++)
        PH_TRY(add(context, arena,
            &(struct described){
                ph__bytes_of(served->outputs[i].name), PH_TENSOR_FP32, served->outputs[i].width, false}));
    return PH_OK;
}

static ph_status add_dim(struct ph__list *dims, int64_t dim, struct ph__arena *arena)
{
    int64_t *place = ph__list_add(dims, sizeof dim, arena);
    if (place == NULL)
        return PH_ERROR_MEMORY;
    *place = dim;
    return PH_OK;
}

static ph_status add_type(void *context, struct ph__arena *arena, const struct described *tensor)
{
    struct ph__oip_tensor_type *type = ph__list_add(context, sizeof *type, arena);
    if (type == NULL)
        return PH_ERROR_MEMORY;
    type->name = tensor->name;
    type->datatype = ph__bytes_of(ph__tensor_type_name(tensor->type));
    PH_TRY(add_dim(&type->shape, -1, arena));
    return tensor->width > 0 ? add_dim(&type->shape, (int64_t)tensor->width, arena) : PH_OK;
}

ph_status ph__served_metadata(
    const struct ph__served *served, struct ph__arena *arena, struct ph__oip_model *model_out)
{
    *model_out =
        (struct ph__oip_model){.name = ph__bytes_of(served->model), .platform = ph__bytes_of("phloem")};
    PH_TRY(describe_inputs(served, arena, add_type, &model_out->inputs));
    return describe_outputs(served, arena, add_type, &model_out->outputs);
}

static ph_status add_config(void *context, struct ph__arena *arena, const struct described *tensor)
{
    struct ph__oip_config_tensor *config = ph__list_add(context, sizeof *config, arena);
    if (config == NULL)
        return PH_ERROR_MEMORY;
    config->name = tensor->name;
    config->data_type = tensor->type;
    config->is_optional = true;
    config->allow_ragged_batch = tensor->is_ragged;
    return add_dim(&config->dims, tensor->width > 0 ? (int64_t)tensor->width : -1, arena);
}

ph_status ph__served_config(
    const struct ph__served *served, struct ph__arena *arena, struct ph__oip_config *config_out)
{
    *config_out = (struct ph__oip_config){
        .name = ph__bytes_of(served->model),
        .platform = ph__bytes_of("phloem"),
        .max_batch_size = (int64_t)served->settings.max_batch,
        .batching = {.max_queue_delay_us = served->settings.max_queue_delay_us},
    };
    PH_TRY(describe_inputs(served, arena, add_config, &config_out->inputs));
    return describe_outputs(served, arena, add_config, &config_out->outputs);
}
