#include "comm/probe/probe_agent.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
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
    int socket;   /* -1: the place is free */
    int measured; /* the connection to another agent; -1: none */
};

struct ph__netprobe_agent {
    int listening;
    char address[PH_ADDRESS_BYTES];
    struct ph__secret secret;
    uint64_t id;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t ended; /* a connection has */
    bool is_ending;
    size_t num_connections;
    struct connection connections[MOST_CONNECTIONS];
};

const struct ph__secret ph__netprobe_no_secret = {.size = PH_SECRET_MIN_BYTES};

/* ---- one connection ---- */

/* Sets or, by -1, forgets the connection to another agent. Returns false when the agent is ending. */
static bool set_measured(struct connection *connection, int socket)
{
    pthread_mutex_lock(&connection->agent->lock);
    connection->measured = socket;
    const bool is_ending = connection->agent->is_ending;
    pthread_mutex_unlock(&connection->agent->lock);
    return !is_ending;
}

static ph_status measure_over(const struct connection *connection, struct ph__netprobe_link *other,
    const struct ph__netprobe_ask *ask, uint64_t asked_ns, struct ph__netprobe_answer *answer)
{
    uint64_t id;
    PH_TRY(ph__netprobe_greet(other, &connection->agent->secret, &id));
    if (ask->id != 0 && id != ask->id)
        return ph_fail(PH_ERROR_PEER, "%s is another host's agent", other->peer);
    return ph__netprobe_measure(other, ask, asked_ns, answer);
}

static ph_status measure(
    struct connection *connection, const struct ph__netprobe_ask *ask, struct ph__netprobe_answer *answer)
{
    const uint64_t asked_ns = ph__clock_ns();
    const struct ph__timeout timeout = {.ms = ask->limit_ms < CONNECT_MS ? ask->limit_ms : CONNECT_MS};
    struct ph__netprobe_link other = {.deadline_ns = ph__clock_deadline(ask->limit_ms)};
    memcpy(other.peer, ask->address, sizeof other.peer);
    PH_TRY(ph__socket_connect_while(ask->address, timeout, connection->socket, &other.socket));
    ph_status status = set_measured(connection, other.socket)
                           ? measure_over(connection, &other, ask, asked_ns, answer)
                           : ph_fail(PH_ERROR_PEER, "the agent is ending");
    set_measured(connection, -1);
    close(other.socket);
    return status;
}

static ph_status answer_ask(struct connection *connection, const struct ph__netprobe_link *link,
    const struct ph__netprobe_message *message)
{
    unsigned char body[PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__netprobe_answer answer = {0};
    struct ph__netprobe_ask ask;
    PH_TRY(ph__netprobe_get_ask(message->body, message->size, &ask));
    answer.status = measure(connection, &ask, &answer);
    if (answer.status != PH_OK)
        strncat(answer.text, ph_error_text(), sizeof answer.text - 1);
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__netprobe_put_answer(&writer, &answer);
    return ph__netprobe_say(link, PH_NETPROBE_ANSWER, body, writer.used);
}

static ph_status answer_next(struct connection *connection, const struct ph__netprobe_link *link)
{
    struct ph__netprobe_message message;
    PH_TRY(ph__netprobe_hear(link, &message));
    switch (message.kind) {
    case PH_NETPROBE_ASK:
        return answer_ask(connection, link, &message);
    case PH_NETPROBE_ECHO:
        return ph__netprobe_echo(link, &message);
    case PH_NETPROBE_SEND:
        return ph__netprobe_take(link, &message);
    default:
        return ph_fail(PH_ERROR_PEER, "%s asked for %u, which no agent knows", link->peer, message.kind);
    }
}

/* Serves a connection until its client leaves, or says what cannot be. */
static void serve(struct connection *connection)
{
    const struct ph__netprobe_agent *agent = connection->agent;
    struct ph__netprobe_link link = {
        .socket = connection->socket, .deadline_ns = ph__clock_deadline(GREETING_MS)};
    if (ph__socket_peer(link.socket, link.peer) != PH_OK ||
        ph__netprobe_admit(&link, &agent->secret, agent->id) != PH_OK)
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
    const bool has_room = place < agent->connections + MOST_CONNECTIONS && !agent->is_ending;
    if (has_room)
        *place = (struct connection){agent, socket, -1};
    if (has_room && ph__thread_start(&thread, run_connection, place) == 0) {
        agent->num_connections++;
    } else {
        if (has_room)
            place->socket = -1;
        close(socket);
    }
    pthread_mutex_unlock(&agent->lock);
}

static bool is_ending(struct ph__netprobe_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    const bool is_ending = agent->is_ending;
    pthread_mutex_unlock(&agent->lock);
    return is_ending;
}

static void *accept_all(void *context)
{
    struct ph__netprobe_agent *agent = context;
    struct pollfd polled = {.fd = agent->listening, .events = POLLIN};
    int socket;
    while (!is_ending(agent)) {
        if (poll(&polled, 1, -1) > 0 && ph__socket_accept(agent->listening, &socket) == PH_OK && socket >= 0)
            admit(agent, socket);
    }
    return NULL;
}

/* ---- begin and end ---- */

static ph_status open_agent(const char *address, bool has_secret, struct ph__netprobe_agent *agent)
{
    PH_TRY(ph__random_bytes(&agent->id, sizeof agent->id));
    agent->id |= 1; /* 0 stands for any agent */
    PH_TRY(ph__socket_listen(address, &agent->listening));
    PH_TRY(ph__socket_address(agent->listening, agent->address));
    if (!has_secret && !ph__socket_is_loopback(agent->listening))
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
    ph__secret_fini(&agent->secret);
    free(agent);
}

ph_status ph__netprobe_agent_create(
    const char *address, const struct ph__secret *secret, struct ph__netprobe_agent **agent_out)
{
    struct ph__netprobe_agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL)
        return ph__out_of_memory("an agent");
    agent->listening = -1;
    agent->secret = secret != NULL ? *secret : ph__netprobe_no_secret;
    for (size_t i = 0; i < MOST_CONNECTIONS; i++)
        agent->connections[i].socket = -1;
    pthread_mutex_init(&agent->lock, NULL);
    pthread_cond_init(&agent->ended, NULL);
    const ph_status status = open_agent(address, secret != NULL, agent);
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
    pthread_mutex_lock(&agent->lock);
    agent->is_ending = true;
    shutdown(agent->listening, SHUT_RDWR); /* ends the wait for connections */
    for (size_t i = 0; i < MOST_CONNECTIONS; i++) {
        if (agent->connections[i].socket < 0)
            continue;
        shutdown(agent->connections[i].socket, SHUT_RDWR);
        if (agent->connections[i].measured >= 0)
            shutdown(agent->connections[i].measured, SHUT_RDWR);
    }
    while (agent->num_connections > 0)
        pthread_cond_wait(&agent->ended, &agent->lock);
    pthread_mutex_unlock(&agent->lock);
    pthread_join(agent->thread, NULL);
    free_agent(agent);
}

const char *ph__netprobe_agent_address(const struct ph__netprobe_agent *agent)
{
    return agent->address;
}
