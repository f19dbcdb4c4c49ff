#include "cli/http_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "net/link/socket.h"

#define CONNECT_MS 1000
#define ANSWER_MS 10000
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define PIECE_BYTES ((size_t)1 << 16)

/* ---- life ---- */

ph_status cli_http_open(struct cli_http *http, const char *address, const char *token_file)
{
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    *http = (struct cli_http){.address = address, .socket = -1};
    if (token_file == NULL)
        return PH_OK;
    ph_status status = ph__file_read(&arena, token_file, 4096, &text, &size);
    if (status == PH_OK)
        snprintf(http->authorization, sizeof http->authorization, "Authorization: Bearer %.*s\r\n",
            (int)strcspn(text, "\r\n "), text);
    ph__arena_fini(&arena);
    return status;
}

static void disconnect(struct cli_http *http)
{
    if (http->socket >= 0)
        close(http->socket);
    http->socket = -1;
}

void cli_http_close(struct cli_http *http)
{
    disconnect(http);
    ph__buffer_fini(&http->request);
    ph__buffer_fini(&http->answer);
}

/* ---- one request ---- */

static ph_status fail(const struct cli_http *http, const char *problem)
{
    return ph_fail(PH_ERROR_PEER, "%s: %s", http->address, problem);
}

static ph_status fail_closed(struct cli_http *http)
{
    http->was_closed = http->answer.size == 0;
    return fail(http, "the server has closed the connection");
}

/* Waits until the socket is ready for these events. */
static bool wait_for(const struct cli_http *http, short events, uint64_t deadline)
{
    struct pollfd descriptor = {.fd = http->socket, .events = events};
    return poll(&descriptor, 1, ph__clock_ms_until(deadline)) > 0;
}

static ph_status send_request(struct cli_http *http, uint64_t deadline)
{
    for (size_t sent = 0; sent < http->request.size;) {
        const ssize_t count =
            send(http->socket, http->request.bytes + sent, http->request.size - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return fail_closed(http);
        if (count < 0 && !wait_for(http, POLLOUT, deadline))
            return fail(http, "the server does not take the request");
        sent += count > 0 ? (size_t)count : 0;
    }
    return PH_OK;
}

/* Receives what is there; *is_open_out false: the other side has closed. */
static ph_status receive_piece(struct cli_http *http, uint64_t deadline, bool *is_open_out)
{
    struct ph__buffer *answer = &http->answer;
    if (!wait_for(http, POLLIN, deadline) || answer->size > MAX_ANSWER_BYTES)
        return fail(http, "the server does not answer");
    char *room = ph__buffer_extend(answer, PIECE_BYTES);
    if (room == NULL)
        return PH_ERROR_MEMORY;
    const ssize_t count = recv(http->socket, room, PIECE_BYTES, MSG_DONTWAIT);
    answer->size -= PIECE_BYTES - (size_t)(count > 0 ? count : 0);
    *is_open_out = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    return PH_OK;
}

/* End and fields of the head of an answer. */
struct head {
    size_t size; /* 0: not all of it is there */
    size_t body_bytes;
    bool has_length, is_last; /* is_last: the server closes the connection */
};

/* Returns a field's value if the line begins with its name, which ends with a colon. */
static const char *field(const char *line, const char *name)
{
    const size_t length = strlen(name);
    return strncasecmp(line, name, length) == 0 ? line + length + strspn(line + length, " \t") : NULL;
}

static struct head read_head(const struct ph__buffer *answer)
{
    struct head head = {.size = 0};
    const char *text = (const char *)answer->bytes, *value;
    const char *end = answer->size > 0 ? memmem(text, answer->size, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return head;
    head.size = (size_t)(end - text) + 4;
    for (const char *line = text; line < end;
         line = (const char *)memchr(line, '\n', (size_t)(end + 2 - line)) + 1) {
        if ((value = field(line, "Content-Length:")) != NULL) {
            head.body_bytes = strtoul(value, NULL, 10);
            head.has_length = true;
        } else if ((value = field(line, "Connection:")) != NULL) {
            head.is_last = strncasecmp(value, "close", 5) == 0;
        }
    }
    return head;
}

static ph_status receive(struct cli_http *http, uint64_t deadline, struct cli_http_answer *answer_out)
{
    struct ph__buffer *answer = &http->answer;
    struct head head = {.size = 0};
    bool is_open = true;
    while (is_open && (head.size == 0 || !head.has_length || answer->size < head.size + head.body_bytes)) {
        PH_TRY(receive_piece(http, deadline, &is_open));
        head = read_head(answer);
    }
    if (head.size == 0 || (head.has_length && answer->size < head.size + head.body_bytes))
        return fail_closed(http);
    if (head.is_last || !is_open)
        disconnect(http);
    const size_t body_bytes = head.has_length ? head.body_bytes : answer->size - head.size;
    answer->size = head.size + body_bytes;
    ph__buffer_append(answer, "", 1);
    if (answer->has_failed)
        return PH_ERROR_MEMORY;
    const char *text = (const char *)answer->bytes, *space = memchr(text, ' ', head.size);
    answer_out->status = space != NULL ? atoi(space) : 0;
    answer_out->body = (struct ph__bytes){text + head.size, body_bytes};
    return PH_OK;
}

static ph_status ask_once(struct cli_http *http, struct cli_http_answer *answer_out)
{
    const uint64_t deadline = ph__clock_deadline(ANSWER_MS);
    http->was_closed = false;
    ph__buffer_recycle(&http->answer);
    if (http->socket < 0)
        PH_TRY(ph__socket_connect(http->address, CONNECT_MS, &http->socket));
    ph_status status = send_request(http, deadline);
    if (status == PH_OK)
        status = receive(http, deadline, answer_out);
    if (status != PH_OK)
        disconnect(http);
    return status;
}

ph_status cli_http_ask(struct cli_http *http, const char *method, const char *path, struct ph__bytes body,
    struct cli_http_answer *answer_out)
{
    char head[1400];
    const bool is_kept = http->socket >= 0;
    const int length =
        snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n%s\r\n", method,
            path, http->address, body.size, http->authorization);
    if (length < 0 || (size_t)length >= sizeof head)
        return ph_fail(PH_ERROR_USAGE, "%s: the address or the model's name is too long", http->address);
    ph__buffer_clear(&http->request);
    ph__buffer_append(&http->request, head, (size_t)length);
    ph__buffer_append(&http->request, body.bytes, body.size);
    if (http->request.has_failed)
        return PH_ERROR_MEMORY;
    const ph_status status = ask_once(http, answer_out);
    return is_kept && http->was_closed ? ask_once(http, answer_out) : status;
}

ph_status cli_http_ask_json(
    struct cli_http *http, const char *method, const char *path, struct ph__json **json_out)
{
    struct cli_http_answer answer;
    PH_TRY(cli_http_ask(http, method, path, (struct ph__bytes){"", 0}, &answer));
    if (answer.status != 200)
        return ph_fail(PH_ERROR_PEER, "%s%s: the server answers %d: %.300s", http->address, path,
            answer.status, answer.body.bytes);
    return ph__json_parse(answer.body.bytes, answer.body.size, http->address, PH_ERROR_PEER, json_out);
}
