/* An HTTP/1.1 server: pages of fixed paths, which a function writes at once, and exchanges for a handler,
 * which answers any request at any time.
 *
 * The server has no thread. Its driver polls the server's descriptor among others, for no longer than
 * ph__http_server_timeout_ms, and then calls ph__http_server_run, which never blocks. Sizes are limited: of a
 * request's head and body, of a page, and of the number of connections. A connection that is idle, or that
 * takes too long to send a request or to take an answer, is closed. Any method but GET of a page is answered
 * 405, an unknown path 404, a page that fails 500, input that is not HTTP 400. The server itself
 * authenticates nobody, so it binds to loopback unless told otherwise. One thread at a time. */
#ifndef PH_NET_HTTP_SERVER_H
#define PH_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "base/log.h"
#include "base/memory/buffer.h"
#include "phloem/status.h"

#define PH_HTTP_MAX_PAGE_BYTES ((size_t)4 << 20)
#define PH_HTTP_MAX_CONNECTIONS 32 /* at a time, unless the options say otherwise */

struct ph__http_page {
    const char *path; /* "/metrics"; a request's part from '?' on is ignored */
    const char *content_type;
    /* Writes the page, called by ph__http_server_run. An error is logged, and answered 500 without its
     * text. */
    ph_status (*write)(void *context, struct ph__writer *writer);
    void *context;
};

/* ---- exchanges: a request and its answer ---- */

/*     begin ──> handle ──> answer ──> end       all but `end` may refuse by answering at once
 *       └──────────┴──────────┴─────> end       the client has gone */
struct ph__http_exchange;

struct ph__http_handler {
    /* The head is there; body_bytes as announced, or UINT64_MAX. To answer here is to refuse: the body is not
     * read, and the connection is closed after the answer. */
    void (*begin)(void *context, struct ph__http_exchange *exchange, uint64_t body_bytes);
    /* The whole body is there, borrowed until `end`. */
    void (*handle)(void *context, struct ph__http_exchange *exchange, struct ph__bytes body);
    /* The answer has been sent, or will never be: was_cancelled. Called for each exchange that has begun; an
     * answer after it is not possible. */
    void (*end)(void *context, struct ph__http_exchange *exchange, bool was_cancelled);
    void *context;
};

/* Describe the request; texts are borrowed until `end`. */
const char *ph__http_exchange_method(const struct ph__http_exchange *exchange);
const char *ph__http_exchange_path(const struct ph__http_exchange *exchange);
const char *ph__http_exchange_header(
    const struct ph__http_exchange *exchange, const char *name); /* or NULL */

/* Returns the place of the handler's own pointer, NULL at first. */
void **ph__http_exchange_user(struct ph__http_exchange *exchange);

struct ph__http_header {
    const char *name, *value;
};
#define PH_HTTP_MAX_ANSWER_HEADERS 4

struct ph__http_answer {
    unsigned status;
    struct ph__http_header headers[PH_HTTP_MAX_ANSWER_HEADERS]; /* up to the first without a name; copied */
    struct ph__bytes body;                                      /* borrowed until `end` */
};
/* Answers, once. */
void ph__http_answer(struct ph__http_exchange *exchange, const struct ph__http_answer *answer);

/* ---- the server ---- */

/* All but handler and sizes that are 0 have a default. */
struct ph__http_options {
    const char *address;               /* "host:port" as of socket.h; NULL: a free port of 127.0.0.1 */
    const struct ph__http_page *pages; /* (num_pages), borrowed until destroy, with all that they point to */
    size_t num_pages;
    struct ph__log *log;                    /* borrowed until destroy; NULL: none */
    const struct ph__http_handler *handler; /* of all paths without a page; borrowed; NULL: none */
    size_t max_connections;                 /* 0: PH_HTTP_MAX_CONNECTIONS */
    size_t max_body_bytes;                  /* larger bodies end the connection; 0: none but empty ones */
    uint32_t client_timeout_ms; /* for a client to send a request, or to take an answer; 0: 10 s */
    uint32_t idle_timeout_ms;   /* between two requests of a connection; 0: client_timeout_ms */
};

struct ph__http_server;

/* Starts a server. PH_ERROR_CONFIG for an invalid address, PH_ERROR_PEER when it cannot be listened at,
 * naming it. */
ph_status ph__http_server_create(const struct ph__http_options *options, struct ph__http_server **server_out);
void ph__http_server_destroy(struct ph__http_server *server); /* NULL is fine; ends all connections */

/* Accepts no more connections, closes idle ones, and closes others after their next answer. */
void ph__http_server_drain(struct ph__http_server *server);
size_t ph__http_server_num_exchanges(const struct ph__http_server *server); /* that have not ended */

/* Returns "127.0.0.1:4711", with the real port; valid until destroy. */
const char *ph__http_server_address(const struct ph__http_server *server);

/* Returns a descriptor for poll(2) that is readable when there is work. */
int ph__http_server_descriptor(const struct ph__http_server *server);

/* Returns the milliseconds after which ph__http_server_run is due even if the descriptor is not readable; -1:
 * never, 0: at once. */
int ph__http_server_timeout_ms(const struct ph__http_server *server);

/* Does the pending work, without waiting. PH_ERROR_BUG when the server cannot go on. */
ph_status ph__http_server_run(struct ph__http_server *server);

#endif
