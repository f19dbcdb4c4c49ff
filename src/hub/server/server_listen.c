/* Listens for connections, and limits how many descriptors strangers hold and for how long.
 *
 * A stranger is a connection that is not a worker's of a job, even while it waits for an answer. Strangers
 * that say nothing are closed after a while. Their number is limited to a part of the process's descriptors,
 * so that jobs find some. At that limit, or when no descriptor is left, the hub stops watching its listening
 * sockets for a moment: new connections wait in their queues, and the control thread works for the jobs. Then
 * strangers also have to go after a shorter while, whatever they say, except those that wait for a disk. */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/sizes.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "hub/server/server_state.h"

#define DEFAULT_ADDRESS "127.0.0.1:0"
#define PATIENCE_NS 10000000000u      /* limit for a stranger that says nothing */
#define SHORT_PATIENCE_NS 1000000000u /* limit for any stranger, while connections wait */
#define ACCEPT_PAUSE_NS 100000000u    /* pause when no descriptor is left */
#define PAUSED_TURN_MS 100            /* most between two looks whether there is room */
#define CONNECTIONS_A_TURN 32         /* taken of each listening socket a turn, since jobs wait */
#define STRANGERS_PART 8              /* share of descriptors for strangers, each of which may take two */
#define LEAST_STRANGERS 8u
#define MOST_STRANGERS 1024u

/* ---- descriptors ---- */

/* A hub sets descriptors aside, so that links and files of running jobs always find some.
 *
 * It sets aside: descriptors open when the hub had started, those that strangers may take
 * (find_max_strangers), those that files and metrics connections take for a moment, and for each joined
 * worker those of its links when its job begins. A worker for whose links none would be left is refused when
 * it joins. */

#define OF_STRANGER 2     /* a connection; over the local socket its process too */
#define OF_JOB 3          /* results; a checkpoint and that file's folder */
#define OF_LOCAL_WORKER 3 /* connection, process and region; links to core threads come on top */
#define OF_HUB 10         /* loops, bells and sockets, checkpoint folder, trace */
#define OF_CORE 3         /* a core thread's loop and bell */
#define FILES 8           /* services being created, the trace, files that the program opens beside its hub */

static ph_status count_one(void *count, const char *name)
{
    (void)name;
    ++*(uint64_t *)count;
    return PH_OK;
}

static uint64_t find_max_descriptors(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* Returns a worker's descriptors: connection and process, region, and a link to each core thread. */
static uint64_t of_worker(const struct ph_session *session, bool is_shared)
{
    return (uint64_t)1 + session->is_local + is_shared + session->server->num_cores;
}

static uint64_t of_tenant(const struct ph__tenant *tenant)
{
    uint64_t count = tenant->num_joined > 0 ? OF_JOB : 0;
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
        const struct ph__member *member = &tenant->members[i];
        if (member->session != NULL)
            count += of_worker(member->session, member->is_shared);
    }
    return count;
}

/* Returns the descriptors that a hub without jobs sets aside. A layout goes to one worker at a time: its
 * descriptors, and their copies. */
static uint64_t count_without_jobs(
    uint64_t num_own, uint64_t num_cores, uint64_t num_strangers, bool has_metrics)
{
    return num_own + OF_STRANGER * num_strangers + FILES + 2 * (num_cores + 2) +
           (has_metrics ? PH_HTTP_MAX_CONNECTIONS : 0);
}

static uint64_t count_spoken_for(const struct ph_hub_server *server)
{
    uint64_t count = count_without_jobs(server->num_own_descriptors, server->num_cores,
        ph__max(server->num_strangers, server->max_strangers), server->http != NULL);
    for (const struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next)
        count += of_tenant(tenant);
    return count;
}

ph_status ph__server_check_descriptors(
    const struct ph_session *session, const struct ph__tenant *tenant, bool is_shared)
{
    const uint64_t most = session->server->max_descriptors;
    const uint64_t spoken_for = count_spoken_for(session->server);
    const uint64_t wanted = of_worker(session, is_shared) + (tenant->num_joined == 0 ? OF_JOB : 0);
    if (spoken_for <= most && wanted <= most - spoken_for)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "service '%s': a worker takes %llu descriptors of the hub, which is limited to %llu (ulimit -n) and "
        "has reserved %llu: raise the limit",
        tenant->settings.name, (unsigned long long)wanted, (unsigned long long)most,
        (unsigned long long)spoken_for);
}

/* ---- descriptors at the start ---- */

ph_status ph__server_count_descriptors(struct ph_hub_server *server)
{
    server->num_own_descriptors = 0;
    return ph__directory_visit("/proc/self/fd", count_one, &server->num_own_descriptors);
}

/* Returns the most connections that are not a worker's. */
static uint32_t find_max_strangers(uint64_t max_descriptors)
{
    const uint64_t part = max_descriptors / STRANGERS_PART;
    if (part > MOST_STRANGERS)
        return MOST_STRANGERS;
    return part > LEAST_STRANGERS ? (uint32_t)part : LEAST_STRANGERS;
}

/* Returns the fewest descriptors with which a hub that has not started can serve one worker over the local
 * socket. A loop, because more descriptors admit more strangers. */
static uint64_t count_least(const struct ph_hub_server *server, uint64_t num_cores)
{
    const bool has_metrics = server->options.metrics_address != NULL;
    const uint64_t num_own = server->num_own_descriptors + OF_HUB + OF_CORE * num_cores;
    uint64_t least = 0, wanted = 1;
    while (wanted > least) {
        least = wanted;
        wanted = count_without_jobs(num_own, num_cores, find_max_strangers(least), has_metrics) + OF_JOB +
                 OF_LOCAL_WORKER + num_cores;
    }
    return least;
}

ph_status ph__server_check_first_worker(struct ph_hub_server *server, size_t num_cores)
{
    const uint64_t most = find_max_descriptors();
    PH_TRY(ph__server_count_descriptors(server));
    const uint64_t least = count_least(server, num_cores);
    if (least <= most)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "a hub with %zu core threads needs %llu descriptors to serve a worker, and may have %llu: raise the "
        "limit (ulimit -n %llu) before it starts",
        num_cores, (unsigned long long)least, (unsigned long long)most, (unsigned long long)least);
}

/* ---- taking connections ---- */

static void watch(struct ph_hub_server *server, uint32_t events)
{
    for (size_t i = 0; i < 2; i++)
        (void)!ph__event_source_change(server->sources[i], events); /* cannot fail: it allocates nothing */
}

static void log_pause(struct ph_hub_server *server, const char *why)
{
    server->counts.refusals_to_listen++;
    PH_LOG(server->log, PH_LOG_WARNING, "connections_wait", ph__log_text("reason", why));
}

static void pause_accepting(struct ph_hub_server *server, const char *why, uint64_t pause_ns)
{
    log_pause(server, why);
    server->is_accept_paused = true;
    server->accept_resume_ns = ph__clock_ns() + pause_ns;
    watch(server, 0);
}

static void take_connection(struct ph_hub_server *server, int connected, bool is_local)
{
    if (is_local && !ph__socket_is_same_user(connected))
        close(connected);
    else if (ph__session_open(server, connected, is_local) == PH_OK) /* else the peer sees the close */
        server->num_strangers++;
}

static void take_connections(struct ph_hub_server *server, int listening, bool is_local)
{
    int connected;
    for (int i = 0; i < CONNECTIONS_A_TURN && !server->is_accept_paused; i++) {
        if (server->num_strangers >= server->max_strangers) {
            pause_accepting(server, "too many connections without a worker", 0);
        } else if (ph__socket_accept(listening, &connected) != PH_OK) {
            pause_accepting(server, ph_error_text(), ACCEPT_PAUSE_NS);
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

/* Returns why the stranger has to go, or NULL if it may stay. */
static const char *why_not_to_stay(const struct ph_session *session, uint64_t now_ns)
{
    const bool waits_for_disk = session->awaited != NULL && !session->awaited->must_end;
    if (waits_for_disk)
        return NULL;
    if (session->server->is_accept_paused && is_over(session->stranger_ns, SHORT_PATIENCE_NS, now_ns))
        return "the hub has no room for more connections, and this one has no worker";
    if (session->awaited == NULL && is_over(session->moved_ns, PATIENCE_NS, now_ns))
        return "the connection timed out: the peer sent nothing";
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
    if (!server->is_accept_paused || now_ns < server->accept_resume_ns ||
        server->num_strangers >= server->max_strangers)
        return;
    server->is_accept_paused = false;
    watch(server, EPOLLIN);
}

int ph__server_listen_timeout_ms(const struct ph_hub_server *server)
{
    return server->is_accept_paused ? PAUSED_TURN_MS : -1;
}

/* ---- listening ---- */

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
    server->max_descriptors = find_max_descriptors();
    server->max_strangers = find_max_strangers(server->max_descriptors);
    PH_TRY(ph__server_name_option("address", ph__socket_listen(address, &server->listening)));
    PH_TRY(ph__socket_address(server->listening, server->address));
    if (server->secret == NULL && !ph__socket_is_loopback(server->listening))
        return ph_fail(PH_ERROR_CONFIG,
            "address (hub.address): '%s' can be reached from other hosts: requires secret_file "
            "(hub.secret_file)",
            server->address);
    PH_TRY(choose_local_name(server));
    PH_TRY(ph__socket_listen_local(server->local_socket, &server->listening_local));
    PH_TRY(
        ph__event_loop_add(server->loop, server->listening, EPOLLIN, knocked, server, &server->sources[0]));
    return ph__event_loop_add(
        server->loop, server->listening_local, EPOLLIN, knocked_locally, server, &server->sources[1]);
}
