/* Calls of the Open Inference Protocol: what can be asked, which messages belong to it, and the codes of
 * errors on both wires. */
#ifndef PH_SERVE_OIP_CALLS_H
#define PH_SERVE_OIP_CALLS_H

#include "phloem/status.h"
#include "serve/wire/oip_messages.h"

/* ---- codes ---- */

/* X(NAME, code of gRPC, status of HTTP) */
#define PH_OIP_CODES(X)     \
    X(OK, 0, 200)           \
    X(CANCELLED, 1, 400)    \
    X(INVALID, 3, 400)      \
    X(DEADLINE, 4, 503)     \
    X(NOT_FOUND, 5, 404)    \
    X(BAD_METHOD, 12, 405)  \
    X(FORBIDDEN, 7, 403)    \
    X(TOO_LARGE, 8, 413)    \
    X(UNSUPPORTED, 12, 501) \
    X(INTERNAL, 13, 500)    \
    X(UNAVAILABLE, 14, 503) \
    X(UNAUTHENTICATED, 16, 401)

enum ph__oip_code {
#define X(name, grpc, http) PH_OIP_##name,
    PH_OIP_CODES(X)
#undef X
};

/* Records the text as ph_fail does, and returns the code. */
enum ph__oip_code ph__oip_fail(enum ph__oip_code code, const char *format, ...) PH_PRINTF(2, 3);
/* Returns the code for a status, whose text is recorded. */
enum ph__oip_code ph__oip_code_of(ph_status status);
unsigned ph__oip_http_status(enum ph__oip_code code);
unsigned ph__oip_grpc_code(enum ph__oip_code code);

/* ---- calls ---- */

/* X(NAME, rpc of inference.GRPCInferenceService, request, response); the structs are those of the tables. */
#define PH_OIP_CALLS(X)                                                       \
    X(LIVE, "ServerLive", empty, is_true)                                     \
    X(READY, "ServerReady", empty, is_true)                                   \
    X(MODEL_READY, "ModelReady", model, is_true)                              \
    X(SERVER_METADATA, "ServerMetadata", empty, server)                       \
    X(MODEL_METADATA, "ModelMetadata", model, model_response)                 \
    X(CONFIG, "ModelConfig", model, config_response)                          \
    X(STATISTICS, "ModelStatistics", model, statistics)                       \
    X(INDEX, "RepositoryIndex", index_request, index)                         \
    X(LOAD, "RepositoryModelLoad", load, empty)                               \
    X(UNLOAD, "RepositoryModelUnload", load, empty)                           \
    X(TRACE, "TraceSetting", trace_request, trace)                            \
    X(SPECULATION, NULL, load, speculation) /* our own, REST alone */         \
    X(HEALTH, NULL, service, health)        /* grpc.health.v1.Health/Check */ \
    X(INFER, "ModelInfer", infer_request, infer_response)                     \
    X(STREAM, "ModelStreamInfer", infer_request, stream_response)

enum ph__oip_call {
#define X(name, rpc, request, response) PH_OIP_CALL_##name,
    PH_OIP_CALLS(X)
#undef X
        PH_OIP_NUM_CALLS
};

const struct ph__message *ph__oip_request_of(enum ph__oip_call call);
const struct ph__message *ph__oip_response_of(enum ph__oip_call call);

/* Finds the call of a gRPC path, "/inference.GRPCInferenceService/ModelInfer". PH_OIP_NUM_CALLS: none. */
enum ph__oip_call ph__oip_find_rpc(struct ph__bytes path);

#endif
