/* The REST wire: from paths and bodies to calls and messages, and from messages to bodies. Pure functions;
 * any thread. Errors are recorded, and given as codes. */
#ifndef PH_SERVE_REST_H
#define PH_SERVE_REST_H

#include "serve/wire/oip_calls.h"

#define PH_REST_HEADER "Inference-Header-Content-Length"

enum ph__rest_method { PH_REST_OTHER = 0, PH_REST_GET = 1, PH_REST_POST = 2 };

/* Finds the call of a path, "/v2/models/M/versions/V/infer", and puts model and version into the request.
 * Codes: NOT_FOUND; BAD_METHOD: the path wants another method. */
enum ph__oip_code ph__rest_route(enum ph__rest_method method, const char *path, struct ph__arena *arena,
    enum ph__oip_call *call_out, struct ph__oip_request *request_out);

/* Reads the body of any call but infer into a request that has been routed; an empty body is fine. */
enum ph__oip_code ph__rest_read(
    enum ph__oip_call call, struct ph__bytes body, struct ph__arena *arena, struct ph__oip_request *request);

/* Reads the body of infer. header: the value of PH_REST_HEADER; NULL: without. Afterwards `raw` is empty or
 * has one item an input, whose bytes are NULL where the input's data is JSON. */
enum ph__oip_code ph__rest_read_infer(struct ph__bytes body, const char *header, struct ph__arena *arena,
    struct ph__oip_infer_request *request_out);

/* Tells whether an output is wanted in binary: by its own parameters, or else by the request's. */
bool ph__rest_wants_binary(const struct ph__oip_infer_request *request, const struct ph__oip_tensor *output);

/* Appends the body of an answer; some have none. */
void ph__rest_write(enum ph__oip_call call, const void *response, struct ph__buffer *body);

/* Appends the body of an error. */
void ph__rest_write_error(const char *text, struct ph__buffer *body);

#endif
