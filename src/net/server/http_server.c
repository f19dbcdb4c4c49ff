/* The HTTP server, over libmicrohttpd in its mode without threads: it waits with an epoll descriptor of its
 * own, which can itself be polled. */
#include "net/server/http_server.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/memory/memory.h"
#include "net/link/socket.h"

#define MAX_HEAD_BYTES ((size_t)16 << 10) /* of a connection, its request's head included */
#define IDLE_SECONDS 10
#define DEFAULT_ADDRESS "127.0.0.1:0"

struct ph__http_server {
    struct MHD_Daemon *daemon;
    int descriptor; /* the daemon's */
    char address[PH_ADDRESS_BYTES];
    const struct ph__http_page *pages;
    size_t num_pages;
    struct ph__log *log;
};

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned code, const char *header,
    const char *value, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO; /* which ends the connection */
    enum MHD_Result result = MHD_add_response_header(response, header, value);
    if (result == MHD_YES)
        result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

/* Sends an error; `text` is static. */
static enum MHD_Result refuse(
    struct MHD_Connection *connection, unsigned code, const char *header, const char *value, char *text)
{
    return send_response(connection, code, header, value,
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_PERSISTENT));
}

static ph_status write_page(const struct ph__http_page *page, char **text_out, size_t *size_out)
{
    struct ph__writer *writer = NULL;
    PH_TRY(ph__writer_open_memory(page->path, PH_HTTP_MAX_PAGE_BYTES, &writer));
    ph_status status = page->write(page->context, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    if (status == PH_OK)
        *text_out = ph__writer_take(writer, size_out);
    ph__writer_close(writer);
    return status;
}

static enum MHD_Result send_page(
    const struct ph__http_server *server, struct MHD_Connection *connection, const struct ph__http_page *page)
{
    static char failed[] = "the page could not be made\n";
    char *text = NULL;
    size_t size = 0;
    if (write_page(page, &text, &size) != PH_OK) {
        PH_LOG(server->log, PH_LOG_WARNING, "http_page_failed", ph__log_text("path", page->path),
            ph__log_text("error", ph_error_text()));
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "Content-Type", "text/plain", failed);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(text);
    return send_response(connection, MHD_HTTP_OK, "Content-Type", page->content_type, response);
}

/* Called when a request's head has arrived, for each piece of its body, and at its end. Answers at the end,
 * which leaves the connection open for the next request. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
    const char *method, const char *version, const char *body, size_t *body_size, void **has_begun)
{
    static char not_allowed[] = "only GET\n", not_found[] = "not found\n";
    struct ph__http_server *server = context;
    (void)version, (void)body;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET", not_allowed);
    if (*body_size > 0) /* no GET needs a body */
        return MHD_NO;
    if (*has_begun == NULL) {
        *has_begun = server;
        return MHD_YES;
    }
    for (size_t i = 0; i < server->num_pages; i++)
        if (strcmp(server->pages[i].path, path) == 0)
            return send_page(server, connection, &server->pages[i]);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "Content-Type", "text/plain", not_found);
}

/* ---- the server ---- */

/* Starts the daemon, which owns the socket even after an error. */
static ph_status start_daemon(struct ph__http_server *server, int listener)
{
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, server, MHD_OPTION_LISTEN_SOCKET,
        listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)PH_HTTP_MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_HEAD_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (server->daemon == NULL)
        return ph_fail(PH_ERROR_MEMORY, "cannot begin to serve HTTP at %s", server->address);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL)
        return ph_fail(PH_ERROR_BUG, "libmicrohttpd was built without epoll");
    server->descriptor = info->epoll_fd;
    return PH_OK;
}

static ph_status start_server(struct ph__http_server *server, const char *address)
{
    int listener = -1;
    PH_TRY(ph__socket_listen(address, &listener));
    const ph_status status = ph__socket_address(listener, server->address);
    if (status != PH_OK) {
        close(listener);
        return status;
    }
    return start_daemon(server, listener);
}

ph_status ph__http_server_create(const struct ph__http_options *options, struct ph__http_server **server_out)
{
    struct ph__http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ph__out_of_memory("an HTTP server");
    server->pages = options->pages;
    server->num_pages = options->num_pages;
    server->log = options->log;
    const ph_status status =
        start_server(server, options->address != NULL ? options->address : DEFAULT_ADDRESS);
    if (status == PH_OK)
        *server_out = server;
    else
        ph__http_server_destroy(server);
    return status;
}

void ph__http_server_destroy(struct ph__http_server *server)
{
    if (server == NULL)
        return;
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    free(server);
}

/* ---- running ---- */

const char *ph__http_server_address(const struct ph__http_server *server)
{
    return server->address;
}

int ph__http_server_descriptor(const struct ph__http_server *server)
{
    return server->descriptor;
}

int ph__http_server_timeout_ms(const struct ph__http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    if (MHD_get_timeout(server->daemon, &timeout) != MHD_YES)
        return -1;
    return timeout < INT_MAX ? (int)timeout : INT_MAX;
}

ph_status ph__http_server_run(struct ph__http_server *server)
{
    if (MHD_run(server->daemon) != MHD_YES)
        return ph_fail(PH_ERROR_BUG, "the HTTP server at %s has failed", server->address);
    return PH_OK;
}
