/* What an HTTP client sends over loopback: an answer is one of HTTP, what is given with 200 is a whole page
 * that was written, and the server runs on. */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/server/http_server.h"
#include "support/fuzz_support.h"

enum { MAX_ANSWER = 1 << 20 };

static unsigned num_pages_written;

static ph_status write_page(void *context, struct ph__writer *writer)
{
    (void)context;
    num_pages_written++;
    return ph__writer_printf(writer, "fine\n");
}

static const struct ph__http_page page = {.path = "/p", .content_type = "text/plain", .write = write_page};

static struct ph__http_server *start_server(void)
{
    struct ph__http_server *server = NULL;
    const struct ph__http_options options = {.pages = &page, .num_pages = 1};
    fuzz_require(ph__http_server_create(&options, &server) == PH_OK);
    return server;
}

/* Its close resets the connection, so that no port stays taken for a while. */
static int connect_client(const struct ph__http_server *server)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    const int port = atoi(strrchr(ph__http_server_address(server), ':') + 1);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fuzz_require(connect(client, (const struct sockaddr *)&to, sizeof to) == 0);
    fuzz_require(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    return client;
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
    const int client = connect_client(server);
    size_t used = run_server(server, client, answer, 0);
    for (size_t half = 0; half < 2; half++) {
        const size_t start = half * (size / 2), end = half == 0 ? size / 2 : size;
        send(client, data + start, end - start,
            MSG_NOSIGNAL | MSG_DONTWAIT); /* no more where the server has closed */
        used = run_server(server, client, answer, used);
    }
    fuzz_require(used == 0 || strncmp(answer, "HTTP/1.", 7) == 0);
    fuzz_require(count_pages(answer) <= num_pages_written);
    close(client);
    run_server(server, client, answer, 0);
    return 0;
}
