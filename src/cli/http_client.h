/* Requests to a server over HTTP/1.1, one after another on a connection that is kept. One thread at a time.
 */
#ifndef PH_CLI_HTTP_CLIENT_H
#define PH_CLI_HTTP_CLIENT_H

#include "base/memory/buffer.h"
#include "phloem/status.h"

struct cli_http {
    const char *address;     /* "127.0.0.1:8000"; borrowed */
    char authorization[700]; /* a line of the head; empty: none */
    int socket;              /* -1: not connected */
    struct ph__buffer request, answer;
    bool was_closed; /* the last request failed since the connection was closed before any answer */
};

/* Connects at the first request. token_file: a bearer token; NULL: none. PH_ERROR_DATA: it cannot be read. */
ph_status cli_http_open(struct cli_http *http, const char *address, const char *token_file);
void cli_http_close(struct cli_http *http);

struct cli_http_answer {
    int status;            /* "200" */
    struct ph__bytes body; /* borrowed until the next request; a NUL stands behind it */
};

/* Asks, and waits for the answer. A kept connection that the server has closed is opened anew. PH_ERROR_PEER:
 * the server cannot be reached, or does not answer within ten seconds. */
ph_status cli_http_ask(struct cli_http *http, const char *method, const char *path, struct ph__bytes body,
    struct cli_http_answer *answer_out);

struct ph__json;

/* Asks without a body, and gives the JSON of an answer of status 200; PH_ERROR_PEER quotes any other one. */
ph_status cli_http_ask_json(
    struct cli_http *http, const char *method, const char *path, struct ph__json **json_out);

#endif
