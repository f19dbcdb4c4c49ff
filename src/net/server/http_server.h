/* A small HTTP endpoint, for figures and state: GET of a few fixed paths, each answered by a function that
 * writes its page.
 *
 * It has no thread. Whoever drives it waits for its descriptor among others, for no longer than it says, and
 * then lets it run: nothing in it blocks. Sizes are limited: of a request's head, of a page, of the number of
 * connections, which are closed when they idle. Anything but GET is answered 405, another path 404, a page
 * that fails 500, what is not HTTP 400. It authenticates nobody and so binds to loopback unless told
 * otherwise. One thread at a time. */
#ifndef PH_NET_HTTP_SERVER_H
#define PH_NET_HTTP_SERVER_H

#include <stddef.h>

#include "base/file/stream.h"
#include "base/log.h"
#include "phloem/status.h"

#define PH_HTTP_MAX_PAGE_BYTES ((size_t)4 << 20)
#define PH_HTTP_MAX_CONNECTIONS 32 /* at a time */

struct ph__http_page {
    const char *path; /* "/metrics"; what follows a '?' in a request does not count */
    const char *content_type;
    /* Called by ph__http_server_run; what it returns but PH_OK is logged, and answered 500 without a word
     * about it. */
    ph_status (*write)(void *context, struct ph__writer *writer);
    void *context;
};

struct ph__http_options {
    const char *address;               /* "host:port" as of socket.h; NULL: a free port of 127.0.0.1 */
    const struct ph__http_page *pages; /* (num_pages), borrowed until destroy, as all that they name */
    size_t num_pages;
    struct ph__log *log; /* borrowed until destroy; NULL: none */
};

struct ph__http_server;

/* PH_ERROR_CONFIG for an address that is none, PH_ERROR_PEER for one that cannot be listened at, naming it.
 */
ph_status ph__http_server_create(const struct ph__http_options *options, struct ph__http_server **server_out);
void ph__http_server_destroy(struct ph__http_server *server); /* NULL is fine; ends all connections */

/* "127.0.0.1:4711", with the port that was had; until destroy. */
const char *ph__http_server_address(const struct ph__http_server *server);

/* Readable when there is something to do; for poll(2) and its like. */
int ph__http_server_descriptor(const struct ph__http_server *server);

/* After so many milliseconds ph__http_server_run is due even if the descriptor is not readable; -1: never, 0:
 * at once. */
int ph__http_server_timeout_ms(const struct ph__http_server *server);

/* Does what there is to do, without waiting. PH_ERROR_BUG when that cannot be found out any more. */
ph_status ph__http_server_run(struct ph__http_server *server);

#endif
