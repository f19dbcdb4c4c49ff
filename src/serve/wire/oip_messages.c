#include "serve/wire/oip_messages.h"

#include <stddef.h>

/* Words of the tables below: a field is {key in JSON, number in protobuf, type, place in the struct, ...}. */
#define TEXT .type = PH_FIELD_TYPE_TEXT
#define BYTES .type = PH_FIELD_TYPE_BYTES
#define BOOL .type = PH_FIELD_TYPE_BOOL
#define INT64 .type = PH_FIELD_TYPE_INT64
#define UINT64 .type = PH_FIELD_TYPE_UINT64
#define DOUBLE .type = PH_FIELD_TYPE_DOUBLE
#define NESTED(table) .type = PH_FIELD_TYPE_NESTED, .message = &(table)
#define LIST .form = PH_FIELD_FORM_LIST
#define MAP .form = PH_FIELD_FORM_MAP
#define ALWAYS .is_always = true
#define AT(struct_name, member) .offset = offsetof(struct struct_name, member)
#define MESSAGE(text, struct_name, fields)                                            \
    {                                                                                 \
        .name = (text), .size = sizeof(struct struct_name), PH_MESSAGE_FIELDS(fields) \
    }
#define STRICT_MESSAGE(text, struct_name, fields)                                                        \
    {                                                                                                    \
        .name = (text), .size = sizeof(struct struct_name), PH_MESSAGE_FIELDS(fields), .is_strict = true \
    }

/* ---- parameters ---- */

static const struct ph__field value_fields[] = {
    {NULL, 1, BOOL, AT(ph__oip_value, boolean)},
    {NULL, 2, INT64, AT(ph__oip_value, integer)},
    {NULL, 3, TEXT, AT(ph__oip_value, text)},
    {NULL, 4, DOUBLE, AT(ph__oip_value, real)},
    {NULL, 5, INT64, AT(ph__oip_value, integer)},
};
static const struct ph__message value = {.name = "InferParameter",
    .size = sizeof(struct ph__oip_value),
    PH_MESSAGE_FIELDS(value_fields),
    .is_choice = true,
    .choice = offsetof(struct ph__oip_value, choice)};

static const struct ph__field load_value_fields[] = {
    {NULL, 1, BOOL, AT(ph__oip_value, boolean)},
    {NULL, 2, INT64, AT(ph__oip_value, integer)},
    {NULL, 3, TEXT, AT(ph__oip_value, text)},
    {NULL, 4, BYTES, AT(ph__oip_value, text)},
};
static const struct ph__message load_value = {.name = "ModelRepositoryParameter",
    .size = sizeof(struct ph__oip_value),
    PH_MESSAGE_FIELDS(load_value_fields),
    .is_choice = true,
    .choice = offsetof(struct ph__oip_value, choice)};

static const struct ph__field parameter_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_parameter, key)},
    {NULL, 2, NESTED(value), AT(ph__oip_parameter, value)},
};
static const struct ph__message parameter = MESSAGE("a parameter", ph__oip_parameter, parameter_fields);

static const struct ph__field load_parameter_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_parameter, key)},
    {NULL, 2, NESTED(load_value), AT(ph__oip_parameter, value)},
};
static const struct ph__message load_parameter =
    MESSAGE("a parameter", ph__oip_parameter, load_parameter_fields);

const struct ph__oip_value *ph__oip_find_parameter(const struct ph__list *parameters, const char *name)
{
    const struct ph__oip_parameter *items = parameters->items;
    for (size_t i = 0; i < parameters->count; i++)
        if (ph__bytes_are(items[i].key, name))
            return &items[i].value;
    return NULL;
}

/* ---- inference ---- */

static const struct ph__field contents_fields[] = {
    {NULL, 1, BOOL, LIST, AT(ph__oip_contents, bools)},
    {NULL, 2, INT64, LIST, AT(ph__oip_contents, int32s)},
    {NULL, 3, INT64, LIST, AT(ph__oip_contents, int64s)},
    {NULL, 4, INT64, LIST, AT(ph__oip_contents, uint32s)},
    {NULL, 5, INT64, LIST, AT(ph__oip_contents, uint64s)},
    {NULL, 6, .type = PH_FIELD_TYPE_FLOAT, LIST, AT(ph__oip_contents, fp32s)},
    {NULL, 7, DOUBLE, LIST, AT(ph__oip_contents, fp64s)},
    {NULL, 8, BYTES, LIST, AT(ph__oip_contents, texts)},
};
static const struct ph__message contents = MESSAGE("InferTensorContents", ph__oip_contents, contents_fields);

static const struct ph__field tensor_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_tensor, name)},
    {"datatype", 2, TEXT, AT(ph__oip_tensor, datatype)},
    {"shape", 3, INT64, LIST, AT(ph__oip_tensor, shape), ALWAYS},
    {"parameters", 4, NESTED(parameter), MAP, AT(ph__oip_tensor, parameters)},
    {NULL, 5, NESTED(contents), AT(ph__oip_tensor, contents)},
    {"data", 0, .type = PH_FIELD_TYPE_JSON, AT(ph__oip_tensor, data)},
};
static const struct ph__message tensor = MESSAGE("a tensor", ph__oip_tensor, tensor_fields);

static const struct ph__field wanted_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_tensor, name)},
    {"parameters", 2, NESTED(parameter), MAP, AT(ph__oip_tensor, parameters)},
};
static const struct ph__message wanted = MESSAGE("an output", ph__oip_tensor, wanted_fields);

static const struct ph__field infer_request_fields[] = {
    {"model_name", 1, TEXT, AT(ph__oip_infer_request, model_name)},
    {"model_version", 2, TEXT, AT(ph__oip_infer_request, model_version)},
    {"id", 3, TEXT, AT(ph__oip_infer_request, id)},
    {"parameters", 4, NESTED(parameter), MAP, AT(ph__oip_infer_request, parameters)},
    {"inputs", 5, NESTED(tensor), LIST, AT(ph__oip_infer_request, inputs)},
    {"outputs", 6, NESTED(wanted), LIST, AT(ph__oip_infer_request, outputs)},
    {NULL, 7, BYTES, LIST, AT(ph__oip_infer_request, raw)},
};
const struct ph__message ph__oip_infer_request_message =
    MESSAGE("ModelInferRequest", ph__oip_infer_request, infer_request_fields);

static const struct ph__field infer_response_fields[] = {
    {"model_name", 1, TEXT, AT(ph__oip_infer_response, model_name), ALWAYS},
    {"model_version", 2, TEXT, AT(ph__oip_infer_response, model_version), ALWAYS},
    {"id", 3, TEXT, AT(ph__oip_infer_response, id)},
    {"parameters", 4, NESTED(parameter), MAP, AT(ph__oip_infer_response, parameters)},
    {"outputs", 5, NESTED(tensor), LIST, AT(ph__oip_infer_response, outputs), ALWAYS},
    {NULL, 6, BYTES, LIST, AT(ph__oip_infer_response, raw)},
};
const struct ph__message ph__oip_infer_response_message =
    MESSAGE("ModelInferResponse", ph__oip_infer_response, infer_response_fields);

static const struct ph__field stream_response_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_stream_response, error_message)},
    {NULL, 2, NESTED(ph__oip_infer_response_message), AT(ph__oip_stream_response, response)},
};
const struct ph__message ph__oip_stream_response_message =
    MESSAGE("ModelStreamInferResponse", ph__oip_stream_response, stream_response_fields);

/* ---- all other requests ---- */

const struct ph__message ph__oip_empty_message = {
    .name = "an empty message", .size = sizeof(struct ph__oip_request)};

static const struct ph__field model_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_request, name)},
    {NULL, 2, TEXT, AT(ph__oip_request, version)},
};
const struct ph__message ph__oip_model_message = MESSAGE("a model", ph__oip_request, model_fields);

static const struct ph__field service_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_request, service)},
};
const struct ph__message ph__oip_service_message =
    MESSAGE("HealthCheckRequest", ph__oip_request, service_fields);

static const struct ph__field index_request_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_request, repository)},
    {"ready", 2, BOOL, AT(ph__oip_request, is_ready_only)},
};
const struct ph__message ph__oip_index_request_message =
    MESSAGE("RepositoryIndexRequest", ph__oip_request, index_request_fields);

static const struct ph__field load_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_request, repository)},
    {NULL, 2, TEXT, AT(ph__oip_request, name)},
    {"parameters", 3, NESTED(load_parameter), MAP, AT(ph__oip_request, parameters)},
};
const struct ph__message ph__oip_load_message =
    MESSAGE("RepositoryModelLoadRequest", ph__oip_request, load_fields);

static const struct ph__field texts_fields[] = {
    {NULL, 1, TEXT, LIST, AT(ph__oip_texts, texts)},
};
static const struct ph__message texts = MESSAGE("a setting's value", ph__oip_texts, texts_fields);

static const struct ph__field setting_fields[] = {
    {NULL, 1, TEXT, AT(ph__oip_setting, key)},
    {NULL, 2, NESTED(texts), AT(ph__oip_setting, value)},
};
static const struct ph__message setting = MESSAGE("a setting", ph__oip_setting, setting_fields);

static const struct ph__field trace_request_fields[] = {
    {NULL, 1, NESTED(setting), MAP, AT(ph__oip_request, settings)},
    {NULL, 2, TEXT, AT(ph__oip_request, name)},
};
const struct ph__message ph__oip_trace_request_message =
    MESSAGE("TraceSettingRequest", ph__oip_request, trace_request_fields);

static const struct ph__field trace_settings_fields[] = {
    {"trace_file", 0, TEXT, AT(ph__oip_trace_settings, file), ALWAYS},
    {"trace_level", 0, TEXT, LIST, AT(ph__oip_trace_settings, levels), ALWAYS},
    {"trace_rate", 0, TEXT, AT(ph__oip_trace_settings, rate), ALWAYS},
    {"trace_count", 0, TEXT, AT(ph__oip_trace_settings, count), ALWAYS},
    {"log_frequency", 0, TEXT, AT(ph__oip_trace_settings, log_frequency), ALWAYS},
};
const struct ph__message ph__oip_trace_settings_message =
    MESSAGE("trace settings", ph__oip_trace_settings, trace_settings_fields);

/* ---- all other responses ---- */

static const struct ph__field speculation_fields[] = {
    {"none", 0, UINT64, AT(ph__oip_speculation, none), ALWAYS},
    {"pair", 0, UINT64, AT(ph__oip_speculation, pair), ALWAYS},
    {"user", 0, UINT64, AT(ph__oip_speculation, user), ALWAYS},
    {"near", 0, UINT64, AT(ph__oip_speculation, near), ALWAYS},
    {"orders", 0, UINT64, AT(ph__oip_speculation, orders), ALWAYS},
    {"waiting", 0, UINT64, AT(ph__oip_speculation, waiting), ALWAYS},
    {"worker", 0, BOOL, AT(ph__oip_speculation, worker), ALWAYS},
};
const struct ph__message ph__oip_speculation_message =
    MESSAGE("speculation", ph__oip_speculation, speculation_fields);

static const struct ph__field is_true_fields[] = {
    {NULL, 1, BOOL, AT(ph__oip_is_true, is_true)},
};
const struct ph__message ph__oip_is_true_message =
    MESSAGE("ServerLiveResponse", ph__oip_is_true, is_true_fields);

static const struct ph__field health_fields[] = {
    {NULL, 1, INT64, AT(ph__oip_health, status)},
};
const struct ph__message ph__oip_health_message =
    MESSAGE("HealthCheckResponse", ph__oip_health, health_fields);

static const struct ph__field server_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_server, name), ALWAYS},
    {"version", 2, TEXT, AT(ph__oip_server, version), ALWAYS},
    {"extensions", 3, TEXT, LIST, AT(ph__oip_server, extensions), ALWAYS},
};
const struct ph__message ph__oip_server_message =
    MESSAGE("ServerMetadataResponse", ph__oip_server, server_fields);

static const struct ph__field tensor_type_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_tensor_type, name), ALWAYS},
    {"datatype", 2, TEXT, AT(ph__oip_tensor_type, datatype), ALWAYS},
    {"shape", 3, INT64, LIST, AT(ph__oip_tensor_type, shape), ALWAYS},
};
static const struct ph__message tensor_type =
    MESSAGE("TensorMetadata", ph__oip_tensor_type, tensor_type_fields);

static const struct ph__field model_response_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_model, name), ALWAYS},
    {"versions", 2, TEXT, LIST, AT(ph__oip_model, versions), ALWAYS},
    {"platform", 3, TEXT, AT(ph__oip_model, platform), ALWAYS},
    {"inputs", 4, NESTED(tensor_type), LIST, AT(ph__oip_model, inputs), ALWAYS},
    {"outputs", 5, NESTED(tensor_type), LIST, AT(ph__oip_model, outputs), ALWAYS},
};
const struct ph__message ph__oip_model_response_message =
    MESSAGE("ModelMetadataResponse", ph__oip_model, model_response_fields);

static const char *const data_types[] = {"TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16",
    "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16", "TYPE_INT32", "TYPE_INT64", "TYPE_FP16",
    "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16", NULL};
#define DATA_TYPE .type = PH_FIELD_TYPE_WORD, .words = data_types

static const struct ph__field input_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_config_tensor, name), ALWAYS},
    {"data_type", 2, DATA_TYPE, AT(ph__oip_config_tensor, data_type), ALWAYS},
    {"dims", 4, INT64, LIST, AT(ph__oip_config_tensor, dims), ALWAYS},
    {"allow_ragged_batch", 7, BOOL, AT(ph__oip_config_tensor, allow_ragged_batch), ALWAYS},
    {"optional", 8, BOOL, AT(ph__oip_config_tensor, is_optional), ALWAYS},
};
static const struct ph__message input = STRICT_MESSAGE("ModelInput", ph__oip_config_tensor, input_fields);

static const struct ph__field output_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_config_tensor, name), ALWAYS},
    {"data_type", 2, DATA_TYPE, AT(ph__oip_config_tensor, data_type), ALWAYS},
    {"dims", 3, INT64, LIST, AT(ph__oip_config_tensor, dims), ALWAYS},
};
static const struct ph__message output = STRICT_MESSAGE("ModelOutput", ph__oip_config_tensor, output_fields);

static const struct ph__field batching_fields[] = {
    {"max_queue_delay_microseconds", 2, UINT64, AT(ph__oip_batching, max_queue_delay_us), ALWAYS},
};
static const struct ph__message batching =
    STRICT_MESSAGE("ModelDynamicBatching", ph__oip_batching, batching_fields);

static const struct ph__field latest_fields[] = {
    {"num_versions", 0, UINT64, AT(ph__oip_latest, num_versions)},
};
static const struct ph__message latest = STRICT_MESSAGE("Latest", ph__oip_latest, latest_fields);

static const struct ph__field specific_fields[] = {
    {"versions", 0, INT64, LIST, AT(ph__oip_specific, versions)},
};
static const struct ph__message specific = STRICT_MESSAGE("Specific", ph__oip_specific, specific_fields);

static const struct ph__field policy_fields[] = {
    {"latest", 0, NESTED(latest), AT(ph__oip_policy, latest)},
    {"all", 0, .type = PH_FIELD_TYPE_JSON, AT(ph__oip_policy, all)},
    {"specific", 0, NESTED(specific), AT(ph__oip_policy, specific)},
};
static const struct ph__message policy = STRICT_MESSAGE("ModelVersionPolicy", ph__oip_policy, policy_fields);

/* Strict: what a client's config asks for beyond this cannot be given. */
static const struct ph__field config_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_config, name), ALWAYS},
    {"platform", 2, TEXT, AT(ph__oip_config, platform), ALWAYS},
    {"version_policy", 0, NESTED(policy), AT(ph__oip_config, policy)},
    {"max_batch_size", 4, INT64, AT(ph__oip_config, max_batch_size), ALWAYS},
    {"input", 5, NESTED(input), LIST, AT(ph__oip_config, inputs), ALWAYS},
    {"output", 6, NESTED(output), LIST, AT(ph__oip_config, outputs), ALWAYS},
    {"dynamic_batching", 11, NESTED(batching), AT(ph__oip_config, batching), ALWAYS},
    {"backend", 17, TEXT, AT(ph__oip_config, backend)},
};
const struct ph__message ph__oip_config_message =
    STRICT_MESSAGE("ModelConfig", ph__oip_config, config_fields);

static const struct ph__field config_response_fields[] = {
    {NULL, 1, NESTED(ph__oip_config_message), AT(ph__oip_config_response, config)},
};
const struct ph__message ph__oip_config_response_message =
    MESSAGE("ModelConfigResponse", ph__oip_config_response, config_response_fields);

/* ---- statistics ---- */

static const struct ph__field duration_fields[] = {
    {"count", 1, UINT64, AT(ph__oip_duration, count), ALWAYS},
    {"ns", 2, UINT64, AT(ph__oip_duration, ns), ALWAYS},
};
static const struct ph__message duration = MESSAGE("StatisticDuration", ph__oip_duration, duration_fields);

static const struct ph__field durations_fields[] = {
    {"success", 1, NESTED(duration), AT(ph__oip_durations, success), ALWAYS},
    {"fail", 2, NESTED(duration), AT(ph__oip_durations, fail), ALWAYS},
    {"queue", 3, NESTED(duration), AT(ph__oip_durations, queue), ALWAYS},
    {"compute_input", 4, NESTED(duration), AT(ph__oip_durations, compute_input), ALWAYS},
    {"compute_infer", 5, NESTED(duration), AT(ph__oip_durations, compute_infer), ALWAYS},
    {"compute_output", 6, NESTED(duration), AT(ph__oip_durations, compute_output), ALWAYS},
};
static const struct ph__message durations = MESSAGE("InferStatistics", ph__oip_durations, durations_fields);

static const struct ph__field batch_fields[] = {
    {"batch_size", 1, UINT64, AT(ph__oip_batch_statistics, batch_size), ALWAYS},
    {"compute_input", 2, NESTED(duration), AT(ph__oip_batch_statistics, compute_input), ALWAYS},
    {"compute_infer", 3, NESTED(duration), AT(ph__oip_batch_statistics, compute_infer), ALWAYS},
    {"compute_output", 4, NESTED(duration), AT(ph__oip_batch_statistics, compute_output), ALWAYS},
};
static const struct ph__message batch =
    MESSAGE("InferBatchStatistics", ph__oip_batch_statistics, batch_fields);

static const struct ph__field memory_fields[] = {
    {"type", 1, TEXT, AT(ph__oip_memory, type), ALWAYS},
    {"id", 2, INT64, AT(ph__oip_memory, id), ALWAYS},
    {"byte_size", 3, UINT64, AT(ph__oip_memory, byte_size), ALWAYS},
};
static const struct ph__message memory = MESSAGE("MemoryUsage", ph__oip_memory, memory_fields);

static const struct ph__field model_statistics_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_model_statistics, name), ALWAYS},
    {"version", 2, TEXT, AT(ph__oip_model_statistics, version), ALWAYS},
    {"last_inference", 3, UINT64, AT(ph__oip_model_statistics, last_inference), ALWAYS},
    {"inference_count", 4, UINT64, AT(ph__oip_model_statistics, inference_count), ALWAYS},
    {"execution_count", 5, UINT64, AT(ph__oip_model_statistics, execution_count), ALWAYS},
    {"inference_stats", 6, NESTED(durations), AT(ph__oip_model_statistics, durations), ALWAYS},
    {"batch_stats", 7, NESTED(batch), LIST, AT(ph__oip_model_statistics, batches), ALWAYS},
    {"memory_usage", 8, NESTED(memory), LIST, AT(ph__oip_model_statistics, memory), ALWAYS},
};
static const struct ph__message model_statistics =
    MESSAGE("ModelStatistics", ph__oip_model_statistics, model_statistics_fields);

static const struct ph__field statistics_fields[] = {
    {"model_stats", 1, NESTED(model_statistics), LIST, AT(ph__oip_statistics, models), ALWAYS},
};
const struct ph__message ph__oip_statistics_message =
    MESSAGE("ModelStatisticsResponse", ph__oip_statistics, statistics_fields);

/* ---- the repository ---- */

static const struct ph__field index_entry_fields[] = {
    {"name", 1, TEXT, AT(ph__oip_index_entry, name), ALWAYS},
    {"version", 2, TEXT, AT(ph__oip_index_entry, version)},
    {"state", 3, TEXT, AT(ph__oip_index_entry, state)},
    {"reason", 4, TEXT, AT(ph__oip_index_entry, reason)},
};
const struct ph__message ph__oip_index_entry_message =
    MESSAGE("ModelIndex", ph__oip_index_entry, index_entry_fields);

/* REST answers with the list alone (rest.c). */
static const struct ph__field index_fields[] = {
    {"models", 1, NESTED(ph__oip_index_entry_message), LIST, AT(ph__oip_index, models), ALWAYS},
};
const struct ph__message ph__oip_index_message =
    MESSAGE("RepositoryIndexResponse", ph__oip_index, index_fields);

static const struct ph__field trace_fields[] = {
    {NULL, 1, NESTED(setting), MAP, AT(ph__oip_trace, settings)},
};
const struct ph__message ph__oip_trace_message = MESSAGE("TraceSettingResponse", ph__oip_trace, trace_fields);
