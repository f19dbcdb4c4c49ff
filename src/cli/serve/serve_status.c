/* phloem serve status ADDRESS: what a running server serves. Asks twice, and takes rates from the difference.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/buffer.h"
#include "base/thread/clock.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/serve/serve_verbs.h"
#include "net/link/socket.h"

#define CONNECT_MS 1000
#define ANSWER_MS 10000
#define MAX_ANSWER_BYTES ((size_t)64 << 20)

struct request {
    const char *address, *token_file;
    bool is_json;
    char authorization[700]; /* a line of the head, or empty */
};

/* ---- asking ---- */

static ph_status receive(int socket, const char *address, struct ph__buffer *answer)
{
    const uint64_t deadline = ph__clock_deadline(ANSWER_MS);
    ssize_t count = 1;
    while (count > 0) {
        struct pollfd descriptor = {.fd = socket, .events = POLLIN};
        if (poll(&descriptor, 1, ph__clock_ms_until(deadline)) <= 0 || answer->size > MAX_ANSWER_BYTES)
            return ph_fail(PH_ERROR_PEER, "%s: the server does not answer", address);
        char *room = ph__buffer_extend(answer, 1 << 16);
        if (room == NULL)
            return PH_ERROR_MEMORY;
        count = recv(socket, room, 1 << 16, MSG_DONTWAIT);
        answer->size -= (size_t)(1 << 16) - (size_t)(count > 0 ? count : 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            count = 1;
    }
    ph__buffer_append(answer, "", 1);
    return answer->has_failed ? PH_ERROR_MEMORY : PH_OK;
}

/* Asks over a connection of its own, and gives the JSON of the answer. */
static ph_status ask(
    const struct request *request, const char *method, const char *path, struct ph__json **json_out)
{
    int socket;
    char head[1200];
    struct ph__buffer answer = {0};
    PH_TRY(ph__socket_connect(request->address, CONNECT_MS, &socket));
    const int length = snprintf(head, sizeof head,
        "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n%sConnection: close\r\n\r\n", method, path,
        request->address, request->authorization);
    ph_status status = send(socket, head, (size_t)length, MSG_NOSIGNAL) == length
                           ? receive(socket, request->address, &answer)
                           : ph_fail(PH_ERROR_PEER, "%s: the connection was closed", request->address);
    close(socket);
    const char *text = (const char *)answer.bytes;
    const char *body = status == PH_OK ? strstr(text, "\r\n\r\n") : NULL;
    if (status == PH_OK && (body == NULL || strncmp(text, "HTTP/1.1 200", 12) != 0))
        status = ph_fail(PH_ERROR_PEER, "%s%s: the server answers '%.12s': %.300s", request->address, path,
            answer.size > 1 ? text : "", body != NULL ? body + 4 : "");
    if (status == PH_OK)
        status = ph__json_parse(body + 4, strlen(body + 4), request->address, PH_ERROR_PEER, json_out);
    ph__buffer_fini(&answer);
    return status;
}

/* ---- the table ---- */

static double figure(const struct ph__json *model, const char *group, const char *key)
{
    const struct ph__json *object =
        group != NULL ? ph__json_get(ph__json_get(model, "inference_stats"), group) : model;
    return ph__json_as_number(ph__json_get(object, key), 0);
}

static const char *text_of(const struct ph__json *object, const char *key)
{
    return ph__json_as_text(ph__json_get(object, key), "");
}

/* Finds the statistics of a version; NULL: it does not serve. */
static const struct ph__json *find(const struct ph__json *statistics, const struct ph__json *entry)
{
    const struct ph__json *models = ph__json_get(statistics, "model_stats");
    for (size_t i = 0; i < ph__json_size(models); i++) {
        const struct ph__json *model = ph__json_at(models, i);
        if (strcmp(text_of(model, "name"), text_of(entry, "name")) == 0 &&
            strcmp(text_of(model, "version"), text_of(entry, "version")) == 0)
            return model;
    }
    return NULL;
}

static ph_status print_table(
    const struct ph__json *index, const struct ph__json *before, const struct ph__json *after, double seconds)
{
    static const struct ph__text_column columns[] = {{"model", false}, {"version", true}, {"state", false},
        {"requests/s", true}, {"rows/s", true}, {"ms a request", true}, {"answered", true}, {"failed", true},
        {"reason", false}};
    struct ph__text_table table;
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < ph__json_size(index); i++) {
        const struct ph__json *entry = ph__json_at(index, i);
        const struct ph__json *now = find(after, entry), *then = find(before, entry);
        const double num_requests = figure(now, "success", "count") - figure(then, "success", "count");
        const double ns = figure(now, "success", "ns") - figure(then, "success", "ns");
        ph__text_table_cell(&table, "%s", text_of(entry, "name"));
        ph__text_table_cell(&table, "%s", text_of(entry, "version"));
        ph__text_table_cell(&table, "%s", text_of(entry, "state"));
        ph__text_table_number(&table, "%.0f", num_requests / seconds);
        ph__text_table_number(&table, "%.0f",
            (figure(now, NULL, "inference_count") - figure(then, NULL, "inference_count")) / seconds);
        ph__text_table_number(&table, "%.3f", ns / num_requests * 1e-6);
        ph__text_table_number(&table, "%.0f", figure(now, "success", "count"));
        ph__text_table_number(&table, "%.0f", figure(now, "fail", "count"));
        ph__text_table_cell(&table, "%s", text_of(entry, "reason"));
    }
    const ph_status status = cli_print_table(&table);
    ph__text_table_fini(&table);
    return status;
}

static ph_status read_token(struct request *request)
{
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    if (request->token_file == NULL)
        return PH_OK;
    ph_status status = ph__file_read(&arena, request->token_file, 4096, &text, &size);
    if (status == PH_OK)
        snprintf(request->authorization, sizeof request->authorization, "Authorization: Bearer %.*s\r\n",
            (int)strcspn(text, "\r\n "), text);
    ph__arena_fini(&arena);
    return status;
}

static ph_status show(struct request *request)
{
    struct ph__json *index = NULL, *before = NULL, *after = NULL;
    const struct timespec pause = {.tv_nsec = 500000000};
    PH_TRY(read_token(request));
    ph_status status = ask(request, "GET", "/v2/models/stats", &before);
    const double begun_s = ph__clock_seconds();
    if (status == PH_OK && !request->is_json)
        nanosleep(&pause, NULL);
    if (status == PH_OK)
        status = ask(request, "GET", "/v2/models/stats", &after);
    if (status == PH_OK)
        status = ask(request, "POST", "/v2/repository/index", &index);
    if (status == PH_OK)
        status = request->is_json ? cli_print_json(after)
                                  : print_table(index, before, after, ph__clock_seconds() - begun_s);
    ph__json_destroy(index);
    ph__json_destroy(before);
    ph__json_destroy(after);
    return status;
}

ph_status cli_serve_status(int argc, char **argv)
{
    struct request request = {.is_json = false};
    const struct cli_flag flags[] = {
        {"--token-file", CLI_TEXT, &request.token_file, "FILE", "bearer token of the server"},
        {"--json", CLI_SWITCH, &request.is_json, NULL, "prints the statistics as JSON instead of a table"},
    };
    const struct cli_command command = {"serve status", "serve status 127.0.0.1:8000",
        "Shows the models of the server at ADDRESS, its REST wire: what serves, how fast, and what does not.",
        "ADDRESS", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    request.address = arguments.positional[0];
    return show(&request);
}
