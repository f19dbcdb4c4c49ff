/* What an HTTP client sends over loopback: an answer is one of HTTP, what is given with 200 is a whole page
 * that was written, every exchange ends, and the server runs on. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/server/http_server.h"
#include "support/fuzz_client.h"
#include "support/fuzz_support.h"

enum { MAX_ANSWER = 1 << 20, MAX_BODY = 256, MAX_TURNS = 10000 };

static unsigned num_pages_written;

static ph_status write_page(void *context, struct ph__writer *writer)
{
    (void)context;
    num_pages_written++;
    return ph__writer_printf(writer, "fine\n");
}

static const struct ph__http_page page = {.path = "/p", .content_type = "text/plain", .write = write_page};

/* ---- exchanges: any path but the page's; /later is answered when all bytes have been sent ---- */

static size_t num_begun, num_ended;
static struct ph__http_exchange *waiting;

static void give(struct ph__http_exchange *exchange, unsigned status)
{
    const struct ph__http_answer answer = {
        .status = status, .headers = {{"Content-Type", "text/plain"}}, .body = ph__bytes_of("fine\n")};
    num_pages_written += status == 200;
    ph__http_answer(exchange, &answer);
}

static void begun(void *context, struct ph__http_exchange *exchange, uint64_t body_bytes)
{
    (void)context;
    num_begun++;
    if (body_bytes > MAX_BODY && body_bytes != UINT64_MAX)
        give(exchange, 413);
}

static void handle(void *context, struct ph__http_exchange *exchange, struct ph__bytes body)
{
    (void)context;
    fuzz_require(body.size <= MAX_BODY);
    if (waiting == NULL && strcmp(ph__http_exchange_path(exchange), "/later") == 0)
        waiting = exchange;
    else
        give(exchange, 200);
}

static void ended(void *context, struct ph__http_exchange *exchange, bool was_cancelled)
{
    (void)context, (void)was_cancelled;
    num_ended++;
    if (waiting == exchange)
        waiting = NULL;
}

static const struct ph__http_handler handler = {begun, handle, ended, NULL};

static struct ph__http_server *start_server(void)
{
    struct ph__http_server *server = NULL;
    const struct ph__http_options options = {
        .pages = &page, .num_pages = 1, .handler = &handler, .max_body_bytes = MAX_BODY};
    fuzz_require(ph__http_server_create(&options, &server) == PH_OK);
    return server;
}

/* Lets the server run while it has anything to do; what comes is put behind the first `used` bytes. */
static size_t run_server(struct ph__http_server *server, int client, char *answer, size_t used)
{
    struct pollfd descriptor = {.fd = ph__http_server_descriptor(server), .events = POLLIN};
    while (poll(&descriptor, 1, 0) > 0 || ph__http_server_timeout_ms(server) == 0) {
        fuzz_require(ph__http_server_run(server) == PH_OK);
        const ssize_t count = recv(client, answer + used, MAX_ANSWER - 1 - used, MSG_DONTWAIT);
        used += count > 0 ? (size_t)count : 0;
    }
    answer[used] = '\0';
    return used;
}

static unsigned count_pages(const char *answer)
{
    static const char end[] = "\r\n\r\nfine\n";
    unsigned count = 0;
    for (const char *at = strstr(answer, " 200 OK\r\n"); at != NULL;
         at = strstr(at + 1, " 200 OK\r\n"), count++) {
        const char *head_end = strstr(at, "\r\n\r\n");
        fuzz_require(head_end != NULL && strncmp(head_end, end, strlen(end)) == 0);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph__http_server *server;
    static char answer[MAX_ANSWER];
    if (server == NULL)
        server = start_server();
    num_pages_written = 0;
    const int client = fuzz_connect(ph__http_server_address(server));
    size_t used = run_server(server, client, answer, 0);
    for (size_t half = 0; half < 2; half++) {
        const size_t start = half * (size / 2), end = half == 0 ? size / 2 : size;
        send(client, data + start, end - start,
            MSG_NOSIGNAL | MSG_DONTWAIT); /* no more where the server has closed */
        used = run_server(server, client, answer, used);
    }
    if (waiting != NULL) {
        give(waiting, 200);
        used = run_server(server, client, answer, used);
    }
    fuzz_require(used == 0 || strncmp(answer, "HTTP/1.", 7) == 0);
    fuzz_require(count_pages(answer) <= num_pages_written);
    close(client);
    for (int i = 0; i < MAX_TURNS && num_ended < num_begun; i++)
        run_server(server, client, answer, 0);
    fuzz_require(num_ended == num_begun);
    return 0;
}
