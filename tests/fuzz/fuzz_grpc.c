/* What a client sends over loopback behind HTTP/2's preface: the server answers with frames of HTTP/2, ends
 * every call, and serves the next client. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/server/grpc_server.h"
#include "support/fuzz_client.h"
#include "support/fuzz_support.h"

enum { MAX_ANSWER = 1 << 16, MAX_MESSAGE = 1 << 16, MAX_TURNS = 10000 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"; /* and empty SETTINGS */

/* A call of /e: its head without compression, and the message "alive", which ends it. */
static const char good_call[] = "\0\0\x53\1\4\0\0\0\1"
                                "\0\7:method\4POST\0\7:scheme\4http\0\5:path\2/e\0\12:authority\1h"
                                "\0\14content-type\20application/grpc"
                                "\0\0\xa\0\1\0\0\0\1\0\0\0\0\5alive";

static const char good_answer[] = "\0\0\0\0\5alive";
static const char settings[] = "\4\0\0\0\0\0"; /* the head of the server's own */

static size_t num_begun, num_ended;

static void begin(void *context, struct ph__grpc_call *call)
{
    (void)context, (void)call;
    num_begun++;
}

static void message(void *context, struct ph__grpc_call *call, struct ph__buffer *bytes)
{
    (void)context;
    fuzz_require(bytes->size <= MAX_MESSAGE);
    ph__grpc_send(call, bytes->bytes, bytes->size);
}

static void half_closed(void *context, struct ph__grpc_call *call)
{
    (void)context;
    ph__grpc_finish(call, 0, "");
}

static void end(void *context, struct ph__grpc_call *call, bool was_cancelled)
{
    (void)context, (void)call, (void)was_cancelled;
    num_ended++;
}

static const struct ph__grpc_handler handler = {begin, message, half_closed, end, NULL};

static struct ph__grpc_server *start_server(void)
{
    struct ph__grpc_server *server = NULL;
    const struct ph__grpc_options options = {.handler = &handler, .max_message_bytes = MAX_MESSAGE};
    fuzz_require(ph__grpc_server_create(&options, &server) == PH_OK);
    return server;
}

/* Lets the server run while it has anything to do, the first time for up to first_ms; what comes is put
 * behind the first `used` bytes, and what there is no room for is dropped. */
static size_t run_server(struct ph__grpc_server *server, int client, char *answer, size_t used, int first_ms)
{
    struct pollfd descriptor = {.fd = ph__grpc_server_descriptor(server), .events = POLLIN};
    for (int ms = first_ms; poll(&descriptor, 1, ms) > 0 || ph__grpc_server_timeout_ms(server) == 0; ms = 0) {
        fuzz_require(ph__grpc_server_run(server) == PH_OK);
        const ssize_t count = recv(client, answer + used, MAX_ANSWER - used, MSG_DONTWAIT);
        used += count > 0 ? (size_t)count : 0;
        if (used == MAX_ANSWER)
            used /= 2;
    }
    return used;
}

/* Sends bytes, and lets the server work on them; a server that has closed takes no more. */
static size_t deliver(
    struct ph__grpc_server *server, int client, const void *bytes, size_t size, char *answer, size_t used)
{
    const bool has_sent = send(client, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    return run_server(server, client, answer, used, has_sent ? 1 : 0);
}

/* Sends a connection's bytes in two halves, and awaits this part of an answer. */
static void talk(struct ph__grpc_server *server, const char *bytes, size_t size, const char *part,
    size_t part_size, char *answer)
{
    const int client = fuzz_connect(ph__grpc_server_address(server));
    size_t used = deliver(server, client, preface, sizeof preface - 1, answer, 0);
    used = deliver(server, client, bytes, size / 2, answer, used);
    used = deliver(server, client, bytes + size / 2, size - size / 2, answer, used);
    for (int i = 0; i < MAX_TURNS && memmem(answer, used, part, part_size) == NULL; i++)
        used = run_server(server, client, answer, used, 1);
    close(client);
    fuzz_require(memmem(answer, used, part, part_size) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph__grpc_server *server;
    static char answer[MAX_ANSWER];
    if (server == NULL)
        server = start_server();
    talk(server, (const char *)data, size, settings, sizeof settings - 1, answer);
    talk(server, good_call, sizeof good_call - 1, good_answer, sizeof good_answer - 1, answer);
    for (int i = 0; i < MAX_TURNS && ph__grpc_server_num_calls(server) > 0; i++)
        run_server(server, -1, answer, 0, 1);
    fuzz_require(ph__grpc_server_num_calls(server) == 0 && num_begun == num_ended);
    return 0;
}
