#include "support/hub_turns.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct ph_hub_server *hub_turns_begin(struct ph_hub_server_options options)
{
    struct ph_hub_server *server;
    options.size = sizeof options;
    options.num_threads = options.num_threads > 0 ? options.num_threads : 1;
    options.wait = PH_HUB_WAIT_SLEEP;
    assert_ok(ph_hub_server_create(&options, &server));
    return server;
}

void hub_turns_take(struct ph_hub_server *server)
{
    for (int i = 0; i < 3; i++)
        assert_ok(ph__server_turn(server, 0));
}

int hub_turns_connect(struct ph_hub_server *server, bool is_local)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_ok(ph__session_open(server, ends[0], is_local));
    return ends[1];
}

/* ---- sending ---- */

void hub_turns_put(int socket, uint16_t type, const void *body, size_t size)
{
    unsigned char head[8];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, head, sizeof head);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, type);
    ph__wire_put_u16(&writer, 0);
    assert_int_equal(send(socket, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    if (size > 0)
        assert_int_equal(send(socket, body, size, MSG_NOSIGNAL), size);
}

void hub_turns_say(struct ph_hub_server *server, int socket, uint16_t type, const void *body, size_t size)
{
    hub_turns_put(socket, type, body, size);
    hub_turns_take(server);
}

void hub_turns_greet(struct ph_hub_server *server, int socket)
{
    unsigned char bytes[64];
    struct ph__wire_writer writer;
    const struct ph__hello hello = {.api_version = PH_HUB_API_VERSION};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_hello(&writer, &hello);
    hub_turns_say(server, socket, PH_FRAME_HELLO, bytes, writer.used);
}

size_t hub_turns_service(unsigned char body_out[PH_HUB_MAX_BODY])
{
    struct ph__wire_writer writer;
    const struct ph_hub_service service = hub_thread_service("job", 2);
    ph__wire_writer_init(&writer, body_out, PH_HUB_MAX_BODY);
    ph__put_service(&writer, &service, &(struct ph__hub_share){.num_hubs = 1});
    return writer.used;
}

size_t hub_turns_which(uint32_t rank, unsigned char body_out[PH_HUB_MAX_BODY])
{
    struct ph__wire_writer writer;
    const struct ph__join wish = {
        .name = "job", .nonce = HUB_THREAD_NONCE, .rank = rank, .share = {.num_hubs = 1}};
    ph__wire_writer_init(&writer, body_out, PH_HUB_MAX_BODY);
    ph__put_join(&writer, &wish);
    return writer.used;
}

void hub_turns_join(struct ph_hub_server *server, int socket, uint32_t rank)
{
    unsigned char body[PH_HUB_MAX_BODY];
    hub_turns_greet(server, socket);
    size_t size = hub_turns_service(body);
    hub_turns_say(server, socket, PH_FRAME_CREATE, body, size);
    size = hub_turns_which(rank, body);
    hub_turns_say(server, socket, PH_FRAME_JOIN, body, size);
}

void hub_turns_init(struct ph_hub_server *server, int socket)
{
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const struct ph_hub_key key = {.num_elements = 10, .dtype = PH_F32};
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__put_keys(&writer, &key, 1);
    hub_turns_say(server, socket, PH_FRAME_INIT, body, writer.used);
}

/* ---- receiving ---- */

bool hub_turns_answer(int socket, struct ph__answer *answer_out)
{
    unsigned char head[8], body[1 << 16];
    struct ph__wire_reader reader;
    while (recv(socket, head, sizeof head, MSG_DONTWAIT) == sizeof head) {
        ph__wire_reader_init(&reader, head, sizeof head);
        const size_t size = ph__wire_get_u32(&reader);
        const uint16_t type = ph__wire_get_u16(&reader);
        assert_true(size <= sizeof body);
        if (size > 0)
            assert_int_equal(recv(socket, body, size, MSG_DONTWAIT), size);
        if (type != PH_FRAME_ANSWER && type != PH_FRAME_FAILED)
            continue;
        assert_ok(ph__get_answer(body, size, answer_out));
        return true;
    }
    return false;
}

bool hub_turns_is_closed(int socket)
{
    char bytes[4096];
    ssize_t received;
    do
        received = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
    while (received > 0);
    return received == 0 || errno != EAGAIN;
}
