/* What a stranger says to a hub: an input is a list of control frames – a type, the size of a body in two bytes, the body – that are
 * said over one connection, local or not as its first byte says, behind a proper greeting or without one. The hub answers
 * or ends the connection; afterwards it has no job and no connection left, and as many bytes in use as before. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/server_state.h"
#include "support/fuzz_support.h"

enum { MAX_FRAMES = 12, HEAD_BYTES = 8 };

static struct ph_hub_server *server;

static void start_server(void)
{
    const struct ph_hub_server_options options = {
        .num_threads = 1, .wait = PH_HUB_WAIT_SLEEP, .max_bytes = (uint64_t)1 << 20, .max_jobs = 4};
    fuzz_require(ph_hub_server_create(&options, &server) == PH_OK);
}

static void take_turns(void)
{
    for (int i = 0; i < 3; i++)
        fuzz_require(ph__server_turn(server, 0) == PH_OK);
}

static void say(int socket, uint16_t type, const void *body, size_t size)
{
    unsigned char frame[HEAD_BYTES + 1024];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, frame, sizeof frame);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, type);
    ph__wire_put_u16(&writer, 0);
    ph__wire_put_bytes(&writer, body, size);
    /* A hub that has closed the connection does not listen any more. */
    (void)!send(socket, frame, HEAD_BYTES + size, MSG_NOSIGNAL | MSG_DONTWAIT);
    take_turns();
}

static void greet(int socket)
{
    unsigned char bytes[64];
    struct ph_wire_writer writer;
    const struct ph_hello hello = {.api_version = PH_HUB_API_VERSION};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_hello(&writer, &hello);
    say(socket, PH_FRAME_HELLO, bytes, writer.used);
}

static void say_all(int socket, const uint8_t *data, size_t size)
{
    for (int i = 0; i < MAX_FRAMES && size >= 3; i++) {
        const size_t wanted = data[1] | (size_t)data[2] << 8, left = size - 3;
        const size_t body = wanted < left ? wanted : left;
        if (body > 1000)
            return;
        say(socket, data[0], data + 3, body);
        data += 3 + body;
        size -= 3 + body;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    if (size < 1)
        return 0;
    if (server == NULL)
        start_server();
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    fuzz_require(ph__session_open(server, ends[0], (data[0] & 1) != 0) == PH_OK);
    if ((data[0] & 2) == 0)
        greet(ends[1]);
    say_all(ends[1], data + 1, size - 1);
    close(ends[1]);
    while (server->sessions != NULL)
        take_turns();
    ph__server_end_tenants(server);
    fuzz_require(server->tenants == NULL);
    return 0;
}
