/* Messages of the Open Inference Protocol v2 with Triton's extensions, one struct and one table each: JSON of
 * the REST wire and protobuf of the gRPC wire follow from the table (base/format/message.h). Sources:
 * github.com/kserve/open-inference-protocol, and Triton's protobuf/grpc_service.proto, model_config.proto and
 * docs/protocol. */
#ifndef PH_SERVE_OIP_MESSAGES_H
#define PH_SERVE_OIP_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format/message.h"

/* ---- parameters ---- */

/* Fields of a value, by their numbers in protobuf. */
enum ph__oip_choice {
    PH_OIP_NOTHING,
    PH_OIP_BOOL,
    PH_OIP_INTEGER,
    PH_OIP_TEXT,
    PH_OIP_REAL,     /* of a load's parameters: bytes, in `text` */
    PH_OIP_UNSIGNED, /* in `integer` */
};

struct ph__oip_value {
    uint32_t choice;
    bool boolean;
    int64_t integer;
    struct ph__bytes text;
    double real;
};

struct ph__oip_parameter {
    struct ph__bytes key;
    struct ph__oip_value value;
};

/* Returns the parameter of this name, or NULL; `parameters` is a list of ph__oip_parameter. */
const struct ph__oip_value *ph__oip_find_parameter(const struct ph__list *parameters, const char *name);

/* ---- inference ---- */

/* Values of a tensor in a message of protobuf: one list, by the datatype. */
struct ph__oip_contents {
    struct ph__list bools, int32s, int64s, uint32s, uint64s, fp32s, fp64s, texts;
};

struct ph__oip_tensor {
    struct ph__bytes name, datatype;
    struct ph__list shape;      /* int64_t */
    struct ph__list parameters; /* struct ph__oip_parameter */
    struct ph__oip_contents contents;
    struct ph__bytes data; /* JSON: a nested or flat array */
};

struct ph__oip_infer_request {
    struct ph__bytes model_name, model_version, id;
    struct ph__list parameters;
    struct ph__list inputs;  /* struct ph__oip_tensor */
    struct ph__list outputs; /* struct ph__oip_tensor: name and parameters alone */
    struct ph__list raw;     /* struct ph__bytes, one an input; protobuf only */
};

struct ph__oip_infer_response {
    struct ph__bytes model_name, model_version, id;
    struct ph__list parameters;
    struct ph__list outputs; /* struct ph__oip_tensor */
    struct ph__list raw;     /* struct ph__bytes, one an output; protobuf only */
};

struct ph__oip_stream_response {
    struct ph__bytes error_message;
    struct ph__oip_infer_response response;
};

/* ---- all other requests ---- */

/* Fields of every other request: each request's table names those that it has. */
struct ph__oip_request {
    struct ph__bytes name, version; /* of a model */
    struct ph__bytes service, repository;
    bool is_ready_only;
    struct ph__list parameters; /* struct ph__oip_parameter */
    struct ph__list settings;   /* struct ph__oip_setting */
};

struct ph__oip_setting {
    struct ph__bytes key;
    struct ph__oip_texts {
        struct ph__list texts; /* struct ph__bytes */
    } value;
};

/* Trace settings as REST has them. */
struct ph__oip_trace_settings {
    struct ph__bytes file;
    struct ph__list levels;
    struct ph__bytes rate, count, log_frequency;
};

/* ---- all other responses ---- */

/* Rows that a model's speculation has looked up, by where they were found. */
struct ph__oip_speculation {
    uint64_t none, pair, user, near;
    uint64_t orders, waiting; /* removals, and requests, that the worker has not taken yet */
    bool worker;              /* it computes */
};

struct ph__oip_is_true { /* live, ready */
    bool is_true;
};

struct ph__oip_health {
    int64_t status; /* 1 serving, 2 not serving */
};

struct ph__oip_server {
    struct ph__bytes name, version;
    struct ph__list extensions; /* struct ph__bytes */
};

struct ph__oip_tensor_type {
    struct ph__bytes name, datatype;
    struct ph__list shape; /* int64_t */
};

struct ph__oip_model {
    struct ph__bytes name;
    struct ph__list versions; /* struct ph__bytes */
    struct ph__bytes platform;
    struct ph__list inputs, outputs; /* struct ph__oip_tensor_type */
};

struct ph__oip_config_tensor {
    struct ph__bytes name;
    int64_t data_type;
    struct ph__list dims; /* int64_t, without the batch's */
    bool allow_ragged_batch, is_optional;
};

struct ph__oip_config {
    struct ph__bytes name, platform, backend;
    int64_t max_batch_size;
    struct ph__oip_policy { /* one of the three; read only */
        struct ph__oip_latest {
            uint64_t num_versions;
        } latest;
        struct ph__bytes all; /* empty: not there */
        struct ph__oip_specific {
            struct ph__list versions; /* int64_t */
        } specific;
    } policy;
    struct ph__list inputs, outputs; /* struct ph__oip_config_tensor */
    struct ph__oip_batching {
        uint64_t max_queue_delay_us;
    } batching;
};
struct ph__oip_config_response {
    struct ph__oip_config config;
};

struct ph__oip_duration {
    uint64_t count, ns;
};
struct ph__oip_durations {
    struct ph__oip_duration success, fail, queue, compute_input, compute_infer, compute_output;
};
struct ph__oip_batch_statistics {
    uint64_t batch_size;
    struct ph__oip_duration compute_input, compute_infer, compute_output;
};
struct ph__oip_memory {
    struct ph__bytes type;
    int64_t id;
    uint64_t byte_size;
};
struct ph__oip_model_statistics {
    struct ph__bytes name, version;
    uint64_t last_inference; /* ms since 1970 */
    uint64_t inference_count, execution_count;
    struct ph__oip_durations durations;
    struct ph__list batches; /* struct ph__oip_batch_statistics */
    struct ph__list memory;  /* struct ph__oip_memory */
};
struct ph__oip_statistics {
    struct ph__list models; /* struct ph__oip_model_statistics */
};

struct ph__oip_index_entry {
    struct ph__bytes name, version, state, reason;
};
struct ph__oip_index {
    struct ph__list models; /* struct ph__oip_index_entry */
};

struct ph__oip_trace {
    struct ph__list settings; /* struct ph__oip_setting */
};

/* ---- tables ---- */

extern const struct ph__message ph__oip_infer_request_message, ph__oip_infer_response_message,
    ph__oip_stream_response_message;
/* of struct ph__oip_request: */
extern const struct ph__message ph__oip_empty_message, ph__oip_model_message, ph__oip_service_message,
    ph__oip_index_request_message, ph__oip_load_message, ph__oip_trace_request_message;
extern const struct ph__message ph__oip_is_true_message, ph__oip_health_message, ph__oip_server_message,
    ph__oip_model_response_message, ph__oip_config_message, ph__oip_config_response_message,
    ph__oip_statistics_message, ph__oip_index_message, ph__oip_index_entry_message, ph__oip_trace_message,
    ph__oip_trace_settings_message, ph__oip_speculation_message;

#endif
