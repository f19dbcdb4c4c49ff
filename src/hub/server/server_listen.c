/* How a hub listens, and for how long whoever has connected may keep a descriptor of it.
 *
 * A connection is a stranger's unless it is a worker's of a job, also while it waits for an answer. Strangers that say nothing are
 * closed after a while; there are never more of them than a part of the descriptors that the process may have, so that jobs find
 * some. When there are as many, or none can be had, the listening sockets are not watched for a moment: what comes waits in their
 * queues, and the control thread has its time for the jobs. Then strangers have to go whatever they say, when they have been there
 * for a shorter while: all but those that wait for a disk. */
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "hub/server/server_state.h"

#define DEFAULT_ADDRESS "127.0.0.1:0"
#define PATIENCE_NS 10000000000u      /* with a stranger that says nothing */
#define SHORT_PATIENCE_NS 1000000000u /* with any, while others wait */
#define DEAF_NS 100000000u            /* when no descriptor can be had */
#define DEAF_TURN_MS 100              /* at most, to look again whether there is room */
#define CONNECTIONS_A_TURN 32         /* of each listening socket: jobs wait meanwhile */
#define STRANGERS_PART 8              /* of the descriptors: each may take two */
#define LEAST_STRANGERS 8u
#define MOST_STRANGERS 1024u

/* ---- taking connections ---- */

static void watch(struct ph_hub_server *server, uint32_t events)
{
    for (size_t i = 0; i < 2; i++)
        (void)!ph__event_source_change(server->sources[i], events); /* needs nothing that could be missing */
}

static void stop_listening(struct ph_hub_server *server, const char *why, uint64_t pause_ns)
{
    ph__server_log_deaf(server, why);
    server->is_deaf = true;
    server->deaf_until_ns = ph__clock_ns() + pause_ns;
    watch(server, 0);
}

static void take_connection(struct ph_hub_server *server, int connected, bool is_local)
{
    if (is_local && !ph__socket_is_same_user(connected))
        close(connected);
    else if (ph__session_open(server, connected, is_local) == PH_OK) /* else the other side sees the end */
        server->num_strangers++;
}

static void take_connections(struct ph_hub_server *server, int listening, bool is_local)
{
    int connected;
    for (int i = 0; i < CONNECTIONS_A_TURN && !server->is_deaf; i++) {
        if (server->num_strangers >= server->max_strangers) {
            stop_listening(server, "there are as many connections that are no worker's as there may be", 0);
        } else if (ph__socket_accept(listening, &connected) != PH_OK) {
            stop_listening(server, ph_error_text(), DEAF_NS);
        } else if (connected >= 0) {
            take_connection(server, connected, is_local);
        } else {
            return;
        }
    }
}

static void knocked(void *context, uint32_t events)
{
    (void)events;
    take_connections(context, ((struct ph_hub_server *)context)->listening, false);
}

static void knocked_locally(void *context, uint32_t events)
{
    (void)events;
    take_connections(context, ((struct ph_hub_server *)context)->listening_local, true);
}

/* ---- strangers ---- */

static bool is_over(uint64_t begin_ns, uint64_t patience_ns, uint64_t now_ns)
{
    return now_ns > begin_ns && now_ns - begin_ns > patience_ns;
}

/* Why the stranger has to go; NULL: it need not. */
static const char *why_not_to_stay(const struct ph_session *session, uint64_t now_ns)
{
    const bool waits_for_disk = session->awaited != NULL && !session->awaited->must_end;
    if (waits_for_disk)
        return NULL;
    if (session->server->is_deaf && is_over(session->stranger_ns, SHORT_PATIENCE_NS, now_ns))
        return "the hub has no room for more connections, and this is no worker's";
    if (session->awaited == NULL && is_over(session->moved_ns, PATIENCE_NS, now_ns))
        return "the hub has heard nothing for too long";
    return NULL;
}

static uint32_t count_strangers(struct ph_hub_server *server, uint64_t now_ns)
{
    uint32_t count = 0;
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->is_closing || session->tenant != NULL)
            continue;
        const char *why = why_not_to_stay(session, now_ns);
        if (why != NULL)
            ph__session_give_up(session, why);
        else
            count++;
    }
    return count;
}

void ph__server_sweep_sessions(struct ph_hub_server *server)
{
    const uint64_t now_ns = ph__clock_ns();
    server->num_strangers = count_strangers(server, now_ns);
    for (struct ph_session *session = server->sessions, *next; session != NULL; session = next) {
        next = session->next;
        if (session->is_closing)
            ph__session_close(session);
    }
    if (!server->is_deaf || now_ns < server->deaf_until_ns || server->num_strangers >= server->max_strangers)
        return;
    server->is_deaf = false;
    watch(server, EPOLLIN);
}

int ph__server_listen_timeout_ms(const struct ph_hub_server *server)
{
    return server->is_deaf ? DEAF_TURN_MS : -1;
}

/* ---- listening ---- */

uint32_t ph__server_max_strangers(uint64_t max_descriptors)
{
    const uint64_t part = max_descriptors / STRANGERS_PART;
    if (part > MOST_STRANGERS)
        return MOST_STRANGERS;
    return part > LEAST_STRANGERS ? (uint32_t)part : LEAST_STRANGERS;
}

static ph_status choose_local_name(struct ph_hub_server *server)
{
    unsigned char drawn[16];
    PH_TRY(ph__random_bytes(drawn, sizeof drawn));
    size_t used = (size_t)snprintf(server->local_socket, sizeof server->local_socket, "phloem-hub-");
    for (size_t i = 0; i < sizeof drawn; i++)
        used += (size_t)snprintf(
            server->local_socket + used, sizeof server->local_socket - used, "%02x", drawn[i]);
    return PH_OK;
}

ph_status ph__server_listen(struct ph_hub_server *server)
{
    const char *address = server->options.address != NULL ? server->options.address : DEFAULT_ADDRESS;
    server->max_descriptors = ph__server_max_descriptors();
    server->max_strangers = ph__server_max_strangers(server->max_descriptors);
    PH_TRY(ph__server_name_option("address", ph__socket_listen(address, &server->listening)));
    PH_TRY(ph__socket_address(server->listening, server->address));
    if (server->secret == NULL && !ph__socket_is_loopback(server->listening))
        return ph_fail(PH_ERROR_CONFIG,
            "address (hub.address): '%s' can be reached from other hosts: that needs a secret_file "
            "(hub.secret_file)",
            server->address);
    PH_TRY(choose_local_name(server));
    PH_TRY(ph__socket_listen_local(server->local_socket, &server->listening_local));
    PH_TRY(
        ph__event_loop_add(server->loop, server->listening, EPOLLIN, knocked, server, &server->sources[0]));
    return ph__event_loop_add(
        server->loop, server->listening_local, EPOLLIN, knocked_locally, server, &server->sources[1]);
}
