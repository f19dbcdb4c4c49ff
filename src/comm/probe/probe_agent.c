#include "comm/probe/probe_agent.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "comm/probe/probe_measure.h"
#include "net/link/socket.h"

#define MOST_CONNECTIONS 64 /* a further one is closed at once */
#define GREETING_MS 10000
#define CONNECT_MS 5000

struct connection {
    struct ph__netprobe_agent *agent;
    int socket; /* -1: the place is free */
};

struct ph__netprobe_agent {
    int listening;
    char address[PH_ADDRESS_BYTES];
    const struct ph__secret *secret; /* borrowed; NULL: none */
    uint64_t id;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t ended; /* a connection has */
    size_t num_connections;
    struct connection connections[MOST_CONNECTIONS];
};

/* ---- one connection ---- */

static ph_status measure_over(const struct ph__netprobe_link *other, const struct ph__secret *secret,
    const struct ph__netprobe_ask *ask, uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    uint64_t id;
    PH_TRY(ph__netprobe_greet(other, secret, &id));
    return id == ask->id ? ph__netprobe_measure(other, ask, asked_ns, answer)
                         : ph_fail(PH_ERROR_PEER, "%s is another host's agent", other->peer);
}

/* Measures until the client leaves, or the agent ends. */
static ph_status measure(const struct connection *connection, const struct ph__netprobe_ask *ask,
    struct ph__netprobe_answer *answer)
{
    const uint64_t asked_ns = ph__clock_ns();
    const struct ph__timeout timeout = {.ms = (uint32_t)ph__min(ask->limit_ms, CONNECT_MS)};
    struct ph__netprobe_link other = {
        .watched = connection->socket, .deadline_ns = ph__clock_deadline((uint32_t)ask->limit_ms)};
    memcpy(other.peer, ask->address, sizeof other.peer);
    PH_TRY(ph__socket_connect_while(ask->address, timeout, connection->socket, &other.socket));
    const ph_status status = measure_over(&other, connection->agent->secret, ask, asked_ns, answer);
    close(other.socket);
    return status;
}

static ph_status answer_next(const struct connection *connection, const struct ph__netprobe_link *link)
{
    struct ph__netprobe_body body;
    struct ph__netprobe_ask ask;
    struct ph__netprobe_echo echo;
    struct ph__netprobe_send send;
    struct ph__netprobe_answer answer = {.error = ""};
    PH_TRY(ph__netprobe_hear(link, &body));
    switch (body.kind) {
    case PH_NETPROBE_ASK:
        PH_TRY(ph__netprobe_get(body.kind, body.bytes, body.size, &ask));
        if (measure(connection, &ask, &answer) != PH_OK)
            strncat(answer.error, ph_error_text(), sizeof answer.error - 1);
        return ph__netprobe_say(link, PH_NETPROBE_ANSWER, &answer);
    case PH_NETPROBE_ECHO:
        PH_TRY(ph__netprobe_get(body.kind, body.bytes, body.size, &echo));
        return ph__netprobe_say(link, PH_NETPROBE_ECHO, &echo);
    case PH_NETPROBE_SEND:
        PH_TRY(ph__netprobe_get(body.kind, body.bytes, body.size, &send));
        return ph__netprobe_take(link, send.bytes);
    default:
        return ph_fail(PH_ERROR_PEER, "%s asked for %d, which no agent knows", link->peer, body.kind);
    }
}

/* Serves a connection until its client leaves, or asks for what cannot be. */
static void serve(const struct connection *connection)
{
    const struct ph__netprobe_agent *agent = connection->agent;
    struct ph__netprobe_link link = {
        .socket = connection->socket, .watched = -1, .deadline_ns = ph__clock_deadline(GREETING_MS)};
    if (ph__socket_peer(link.socket, link.peer) != PH_OK ||
        ph__netprobe_admit(&link, agent->secret, agent->id) != PH_OK)
        return;
    link.deadline_ns = UINT64_MAX;
    while (answer_next(connection, &link) == PH_OK)
        ;
}

static void *run_connection(void *context)
{
    struct connection *connection = context;
    struct ph__netprobe_agent *agent = connection->agent;
    pthread_detach(pthread_self());
    serve(connection);
    pthread_mutex_lock(&agent->lock);
    close(connection->socket);
    connection->socket = -1;
    agent->num_connections--;
    pthread_cond_signal(&agent->ended);
    pthread_mutex_unlock(&agent->lock);
    return NULL;
}

/* ---- all connections ---- */

static void admit(struct ph__netprobe_agent *agent, int socket)
{
    pthread_t thread;
    struct connection *place = agent->connections;
    pthread_mutex_lock(&agent->lock);
    while (place < agent->connections + MOST_CONNECTIONS && place->socket >= 0)
        place++;
    if (place == agent->connections + MOST_CONNECTIONS) {
        close(socket);
    } else {
        *place = (struct connection){agent, socket};
        agent->num_connections++;
        if (ph__thread_start(&thread, run_connection, place) != 0) {
            close(socket);
            place->socket = -1;
            agent->num_connections--;
        }
    }
    pthread_mutex_unlock(&agent->lock);
}

/* Accepts connections until the listening socket is shut down. */
static void *accept_all(void *context)
{
    struct ph__netprobe_agent *agent = context;
    struct pollfd polled = {.fd = agent->listening, .events = POLLIN};
    int socket;
    while (poll(&polled, 1, -1) < 0 || (polled.revents & POLLHUP) == 0)
        if (ph__socket_accept(agent->listening, &socket) == PH_OK && socket >= 0)
            admit(agent, socket);
    return NULL;
}

/* ---- begin and end ---- */

static ph_status open_agent(const char *address, struct ph__netprobe_agent *agent)
{
    PH_TRY(ph__random_bytes(&agent->id, sizeof agent->id));
    agent->id &= INT64_MAX;
    PH_TRY(ph__socket_listen(address, &agent->listening));
    PH_TRY(ph__socket_address(agent->listening, agent->address));
    if (agent->secret == NULL && !ph__socket_is_loopback(agent->listening))
        return ph_fail(PH_ERROR_CONFIG,
            "'%s' can be reached from other hosts: requires --secret-file FILE, the same on all hosts",
            address);
    return ph__thread_start(&agent->thread, accept_all, agent) == 0 ? PH_OK : ph__out_of_memory("a thread");
}

static void free_agent(struct ph__netprobe_agent *agent)
{
    if (agent->listening >= 0)
        close(agent->listening);
    pthread_cond_destroy(&agent->ended);
    pthread_mutex_destroy(&agent->lock);
    free(agent);
}

ph_status ph__netprobe_agent_create(
    const char *address, const struct ph__secret *secret, struct ph__netprobe_agent **agent_out)
{
    struct ph__netprobe_agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL)
        return ph__out_of_memory("an agent");
    agent->listening = -1;
    agent->secret = secret;
    for (size_t i = 0; i < MOST_CONNECTIONS; i++)
        agent->connections[i].socket = -1;
    pthread_mutex_init(&agent->lock, NULL);
    pthread_cond_init(&agent->ended, NULL);
    const ph_status status = open_agent(address, agent);
    if (status == PH_OK)
        *agent_out = agent;
    else
        free_agent(agent);
    return status;
}

void ph__netprobe_agent_destroy(struct ph__netprobe_agent *agent)
{
    if (agent == NULL)
        return;
    shutdown(agent->listening, SHUT_RDWR);
    pthread_join(agent->thread, NULL);
    pthread_mutex_lock(&agent->lock);
    for (size_t i = 0; i < MOST_CONNECTIONS; i++)
        if (agent->connections[i].socket >= 0)
            shutdown(agent->connections[i].socket, SHUT_RDWR);
    while (agent->num_connections > 0)
        pthread_cond_wait(&agent->ended, &agent->lock);
    pthread_mutex_unlock(&agent->lock);
    free_agent(agent);
}

const char *ph__netprobe_agent_address(const struct ph__netprobe_agent *agent)
{
    return agent->address;
}
