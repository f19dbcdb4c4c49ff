#include "serve/wire/oip_calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- codes ---- */

enum ph__oip_code ph__oip_fail(enum ph__oip_code code, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)ph_fail(PH_ERROR_DATA, "%s", text);
    return code;
}

enum ph__oip_code ph__oip_code_of(ph_status status)
{
    switch (status) {
    case PH_OK:
        return PH_OIP_OK;
    case PH_ERROR_MEMORY:
        return PH_OIP_UNAVAILABLE;
    case PH_ERROR_BUG:
        return PH_OIP_INTERNAL;
    default:
        return PH_OIP_INVALID;
    }
}

static const struct {
    unsigned grpc, http;
} codes[] = {
#define X(name, grpc, http) {grpc, http},
    PH_OIP_CODES(X)
#undef X
};

unsigned ph__oip_http_status(enum ph__oip_code code)
{
    return codes[code].http;
}

unsigned ph__oip_grpc_code(enum ph__oip_code code)
{
    return codes[code].grpc;
}

/* ---- calls ---- */

static const struct {
    const char *rpc;
    const struct ph__message *request, *response;
} calls[] = {
#define X(name, rpc, request, response) {rpc, &ph__oip_##request##_message, &ph__oip_##response##_message},
    PH_OIP_CALLS(X)
#undef X
};

const struct ph__message *ph__oip_request_of(enum ph__oip_call call)
{
    return calls[call].request;
}

const struct ph__message *ph__oip_response_of(enum ph__oip_call call)
{
    return calls[call].response;
}

enum ph__oip_call ph__oip_find_rpc(struct ph__bytes path)
{
    static const char service[] = "/inference.GRPCInferenceService/";
    const size_t prefix = sizeof service - 1;
    if (ph__bytes_are(path, "/grpc.health.v1.Health/Check"))
        return PH_OIP_CALL_HEALTH;
    if (path.size <= prefix || memcmp(path.bytes, service, prefix) != 0)
        return PH_OIP_NUM_CALLS;
    const struct ph__bytes rpc = {path.bytes + prefix, path.size - prefix};
    for (size_t i = 0; i < PH_OIP_NUM_CALLS; i++)
        if (calls[i].rpc != NULL && ph__bytes_are(rpc, calls[i].rpc))
            return (enum ph__oip_call)i;
    return PH_OIP_NUM_CALLS;
}
