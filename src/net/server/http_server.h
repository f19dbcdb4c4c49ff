/* A small HTTP endpoint for figures and state: GET of a few fixed paths, each answered by a function that
 * writes its page.
 *
 * The server has no thread. Its driver polls the server's descriptor among others, for no longer than
 * ph__http_server_timeout_ms, and then calls ph__http_server_run, which never blocks. Sizes are limited: of a
 * request's head, of a page, and of the number of connections, which are closed when they idle. Any method
 * but GET is answered 405, an unknown path 404, a page that fails 500, input that is not HTTP 400. There is
 * no authentication, so the server binds to loopback unless told otherwise. One thread at a time. */
#ifndef PH_NET_HTTP_SERVER_H
#define PH_NET_HTTP_SERVER_H

#include <stddef.h>

#include "base/file/stream.h"
#include "base/log.h"
#include "phloem/status.h"

#define PH_HTTP_MAX_PAGE_BYTES ((size_t)4 << 20)
#define PH_HTTP_MAX_CONNECTIONS 32 /* at a time */

struct ph__http_page {
    const char *path; /* "/metrics"; a request's part from '?' on is ignored */
    const char *content_type;
    /* Writes the page, called by ph__http_server_run. An error is logged, and answered 500 without its
     * text. */
    ph_status (*write)(void *context, struct ph__writer *writer);
    void *context;
};

struct ph__http_options {
    const char *address;               /* "host:port" as of socket.h; NULL: a free port of 127.0.0.1 */
    const struct ph__http_page *pages; /* (num_pages), borrowed until destroy, with all that they point to */
    size_t num_pages;
    struct ph__log *log; /* borrowed until destroy; NULL: none */
};

struct ph__http_server;

/* Starts a server. PH_ERROR_CONFIG for an invalid address, PH_ERROR_PEER when it cannot be listened at,
 * naming it. */
ph_status ph__http_server_create(const struct ph__http_options *options, struct ph__http_server **server_out);
void ph__http_server_destroy(struct ph__http_server *server); /* NULL is fine; ends all connections */

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
