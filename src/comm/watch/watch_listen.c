/* Waits on rank 0 for the other ranks: see watch.h. A connection is a candidate until it has proved itself:
 * HELLO, our CHALLENGE, PROOF. A candidate that says anything else is dropped. So is the one that has waited
 * longest when more wait than missing ranks and MAX_STRANGERS. */
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "comm/watch/watch_state.h"
#include "net/link/socket.h"

#define MAX_STRANGERS 16u   /* that wait */
#define OWN_DESCRIPTORS 64u /* for the process's files, and the watch's listening sockets */

struct candidate {
    struct ph__watch_listener *listener;
    struct ph__control_stream *stream;
    struct ph__event_source *source;
    bool is_challenged;
    struct ph__watch_who who; /* as the candidate claims */
    struct ph__challenge challenge;
    struct candidate *older, *newer;
};

struct place { /* an address that is listened at */
    struct ph__watch_listener *listener;
    int socket;
    struct ph__event_source *source;
};

struct ph__watch_listener {
    struct ph__watch_star *star;
    struct ph__secret secret;
    uint32_t timeout_ms;
    struct place places[PH_WATCH_MAX_ADDRESSES];
    size_t num_places;
    struct candidate *oldest, *newest;
    size_t num_candidates, num_missing;
};

/* ---- candidates ---- */

static void drop(struct candidate *candidate)
{
    struct ph__watch_listener *listener = candidate->listener;
    *(candidate->older != NULL ? &candidate->older->newer : &listener->oldest) = candidate->newer;
    *(candidate->newer != NULL ? &candidate->newer->older : &listener->newest) = candidate->older;
    listener->num_candidates--;
    ph__event_source_remove(candidate->source);
    ph__control_stream_destroy(candidate->stream);
    explicit_bzero(&candidate->challenge, sizeof candidate->challenge);
    free(candidate);
}

static ph_status challenge(struct candidate *candidate, const struct ph__control_frame *hello)
{
    const struct ph__watch_listener *listener = candidate->listener;
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__watch_hello greeting;
    struct ph__watch_answer answer;
    if (hello->type != PH_WATCH_HELLO)
        return ph_fail(PH_ERROR_PEER, "the peer did not begin with a hello");
    PH_TRY(ph__watch_get_hello(hello->body, hello->size, listener->star->world_size, &greeting));
    PH_TRY(ph__watch_challenge(&listener->secret, hello->body, hello->size, listener->star->world_size,
        &candidate->challenge, &answer));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_answer(&writer, &answer);
    candidate->who = greeting.who;
    candidate->is_challenged = true;
    return ph__watch_say(candidate->stream, PH_WATCH_CHALLENGE, body, writer.used);
}

/* Checks a candidate's proof; a rank that is here already must not come again. */
static ph_status check_proof(struct candidate *candidate, const struct ph__control_frame *proof)
{
    const struct ph__watch_listener *listener = candidate->listener;
    if (proof->type != PH_WATCH_PROOF || proof->size != PH_PROOF_BYTES)
        return ph_fail(PH_ERROR_PEER, "the peer sent no proof that it knows the secret");
    PH_TRY(ph__authenticate_check(
        &listener->secret, PH_SIDE_CLIENT, &candidate->challenge, proof->body, "the peer"));
    if (listener->star->peers[candidate->who.rank].stream != NULL)
        return ph_fail(PH_ERROR_PEER, "rank %u has joined already", candidate->who.rank);
    return ph__watch_say(candidate->stream, PH_WATCH_WELCOME, NULL, 0);
}

static ph_status heed(struct candidate *candidate, bool *has_proved_out)
{
    struct ph__control_frame frame;
    bool is_there;
    *has_proved_out = false;
    PH_TRY(ph__control_stream_receive(candidate->stream));
    while (!*has_proved_out) {
        PH_TRY(ph__control_stream_take(candidate->stream, &frame, &is_there));
        if (!is_there)
            return PH_OK;
        if (candidate->is_challenged) {
            PH_TRY(check_proof(candidate, &frame));
            *has_proved_out = true;
        } else {
            PH_TRY(challenge(candidate, &frame));
        }
    }
    return PH_OK;
}

/* Gives the watch up for the last error, and tells the ranks that are here. */
static void give_up(struct ph__watch_listener *listener, ph_status status)
{
    struct ph__comm_notice notice = {.rank = 0, .status = status};
    snprintf(notice.text, sizeof notice.text, "%s", ph_error_text());
    ph__watch_star_note(listener->star, &notice);
}

/* Turns the candidate into a peer. */
static void adopt(struct candidate *candidate)
{
    struct ph__watch_listener *listener = candidate->listener;
    struct ph__control_stream *stream = candidate->stream;
    const struct ph__watch_who who = candidate->who;
    candidate->stream = NULL;
    drop(candidate);
    const ph_status status = ph__watch_star_add(listener->star, &who, stream);
    if (status != PH_OK)
        give_up(listener, status);
    else
        listener->num_missing--;
}

static void hear_candidate(void *context, uint32_t events)
{
    struct candidate *candidate = context;
    bool has_proved;
    (void)events;
    if (heed(candidate, &has_proved) != PH_OK)
        drop(candidate);
    else if (has_proved)
        adopt(candidate);
}

static ph_status add_candidate(struct ph__watch_listener *listener, struct ph__control_stream *stream)
{
    struct candidate *candidate = calloc(1, sizeof *candidate);
    if (candidate == NULL)
        return ph__out_of_memory("a connection");
    const ph_status status = ph__event_loop_add(listener->star->loop, ph__control_stream_socket(stream),
        EPOLLIN, hear_candidate, candidate, &candidate->source);
    if (status != PH_OK) {
        free(candidate);
        return status;
    }
    candidate->listener = listener;
    candidate->stream = stream;
    candidate->older = listener->newest;
    *(listener->newest != NULL ? &listener->newest->newer : &listener->oldest) = candidate;
    listener->newest = candidate;
    listener->num_candidates++;
    return PH_OK;
}

ph_status ph__watch_listener_admit(struct ph__watch_listener *listener, int socket)
{
    struct ph__control_stream *stream;
    PH_TRY(ph__watch_stream_create(socket, &stream));
    const ph_status status = add_candidate(listener, stream);
    if (status != PH_OK)
        ph__control_stream_destroy(stream);
    if (listener->num_candidates > listener->num_missing + MAX_STRANGERS)
        drop(listener->oldest);
    return status;
}

/* ---- addresses ---- */

/* Addresses at which other ranks may find this one (getifaddrs(3)). Link-local addresses (fe80::/10) are left
 * out: they would need the name that the link has on the other host. */

/* Returns 0 when the address is not of IPv4 or IPv6. */
static socklen_t address_size(const struct sockaddr *address)
{
    if (address == NULL)
        return 0;
    if (address->sa_family == AF_INET)
        return sizeof(struct sockaddr_in);
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

static bool is_of_one_link(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_wanted(const struct ifaddrs *interface, bool is_loopback)
{
    return (interface->ifa_flags & IFF_UP) != 0 && address_size(interface->ifa_addr) > 0 &&
           ph__is_loopback(interface->ifa_addr) == is_loopback && !is_of_one_link(interface->ifa_addr);
}

ph_status ph__watch_hosts(
    bool is_loopback, char hosts_out[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t *num_out)
{
    struct ifaddrs *interfaces;
    size_t num = 0;
    if (getifaddrs(&interfaces) != 0)
        return ph_fail(PH_ERROR_PEER, "cannot list the addresses of this host: %s", strerror(errno));
    for (const struct ifaddrs *at = interfaces; at != NULL && num < PH_WATCH_MAX_ADDRESSES;
         at = at->ifa_next) {
        if (!is_wanted(at, is_loopback))
            continue;
        num += getnameinfo(at->ifa_addr, address_size(at->ifa_addr), hosts_out[num], PH_HOST_BYTES, NULL, 0,
                   NI_NUMERICHOST) == 0;
    }
    freeifaddrs(interfaces);
    *num_out = num;
    return PH_OK;
}

/* ---- listening ---- */

/* Accepts one connection a call, so that those accepted before have their turn first. */
static void hear_place(void *context, uint32_t events)
{
    const struct place *place = context;
    int connected;
    (void)events;
    ph_status status = ph__socket_accept(place->socket, &connected);
    if (status == PH_OK && connected >= 0)
        status = ph__watch_listener_admit(place->listener, connected);
    if (status != PH_OK)
        give_up(place->listener, status);
}

static ph_status add_place(
    struct ph__watch_listener *listener, int socket, char address_out[PH_ADDRESS_BYTES])
{
    struct place *place = &listener->places[listener->num_places];
    *place = (struct place){.listener = listener, .socket = socket};
    PH_TRY(ph__socket_address(socket, address_out));
    return ph__event_loop_add(listener->star->loop, socket, EPOLLIN, hear_place, place, &place->source);
}

static ph_status listen_at(
    struct ph__watch_listener *listener, const char *host, char address_out[PH_ADDRESS_BYTES])
{
    char any_port[PH_HOST_BYTES + sizeof "[]:0"];
    int socket;
    snprintf(any_port, sizeof any_port, strchr(host, ':') != NULL ? "[%s]:0" : "%s:0", host);
    PH_TRY(ph__socket_listen(any_port, &socket));
    const ph_status status = add_place(listener, socket, address_out);
    if (status == PH_OK)
        listener->num_places++;
    else
        close(socket);
    return status;
}

/* Listens at all addresses where that is possible. */
static ph_status listen_at_all(
    struct ph__watch_listener *listener, bool is_one_host, struct ph__watch_invitation *invitation)
{
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    ph_status status = PH_OK;
    PH_TRY(ph__watch_hosts(is_one_host, hosts, &num_hosts));
    for (size_t i = 0; i < num_hosts; i++) {
        status = listen_at(listener, hosts[i], invitation->addresses[listener->num_places]);
        if (status == PH_ERROR_MEMORY)
            return status;
    }
    if (num_hosts == 0)
        return ph_fail(PH_ERROR_PEER, "the host of rank 0 has no address %s",
            is_one_host ? "on the loopback interface" : "that other hosts can reach");
    if (listener->num_places == 0)
        return status;
    invitation->num_addresses = (uint32_t)listener->num_places;
    return PH_OK;
}

/* Raises the soft limit where it is too low and the hard one allows it. */
static ph_status check_descriptors(size_t world_size)
{
    const size_t wanted = world_size + MAX_STRANGERS + OWN_DESCRIPTORS;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
        return PH_OK;
    const struct rlimit raised = {.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (wanted <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "rank 0 needs %zu descriptors in a world of %zu ranks, but may open %llu: raise `ulimit -n`", wanted,
        world_size, (unsigned long long)limit.rlim_max);
}

static ph_status draw_secret(struct ph__watch_listener *listener, struct ph__watch_invitation *invitation)
{
    PH_TRY(ph__random_bytes(invitation->secret, sizeof invitation->secret));
    listener->secret.size = sizeof invitation->secret;
    memcpy(listener->secret.bytes, invitation->secret, sizeof invitation->secret);
    return PH_OK;
}

static ph_status open_listener(const struct ph__watch_options *options, struct ph__watch_listener *listener,
    struct ph__watch_invitation *invitation)
{
    listener->timeout_ms = options->timeout_ms;
    listener->num_missing = options->world_size - 1;
    PH_TRY(check_descriptors(options->world_size));
    PH_TRY(draw_secret(listener, invitation));
    PH_TRY(ph__watch_star_create(0, options->world_size, &listener->star));
    return listen_at_all(listener, options->is_one_host, invitation);
}

ph_status ph__watch_listen(const struct ph__watch_options *options,
    struct ph__watch_invitation *invitation_out, struct ph__watch_listener **listener_out)
{
    assert(options->rank == 0 && options->world_size > 1);
    struct ph__watch_listener *listener = calloc(1, sizeof *listener);
    memset(invitation_out, 0, sizeof *invitation_out);
    const ph_status status =
        listener != NULL ? open_listener(options, listener, invitation_out) : ph__out_of_memory("the watch");
    if (status == PH_OK) {
        *listener_out = listener;
        return PH_OK;
    }
    invitation_out->status = status;
    snprintf(invitation_out->text, sizeof invitation_out->text, "%s", ph_error_text());
    ph__watch_listener_destroy(listener);
    return status;
}

void ph__watch_listener_destroy(struct ph__watch_listener *listener)
{
    if (listener == NULL)
        return;
    while (listener->oldest != NULL)
        drop(listener->oldest);
    for (size_t i = 0; i < listener->num_places; i++) {
        ph__event_source_remove(listener->places[i].source);
        close(listener->places[i].socket);
    }
    ph__watch_star_destroy(listener->star);
    ph__secret_fini(&listener->secret);
    free(listener);
}

/* ---- accepting ---- */

static void note_missing(struct ph__watch_listener *listener)
{
    uint32_t rank = 1;
    char others[64] = "";
    while (listener->star->peers[rank].stream != NULL)
        rank++;
    if (listener->num_missing == 2)
        snprintf(others, sizeof others, ", nor has another rank");
    else if (listener->num_missing > 2)
        snprintf(others, sizeof others, ", nor have %zu other ranks", listener->num_missing - 1);
    struct ph__comm_notice notice = {.rank = rank, .status = PH_ERROR_PEER, .has_died = true};
    snprintf(notice.text, sizeof notice.text, "rank %u has not joined the watch of rank 0 within %g s%s",
        rank, listener->timeout_ms / 1e3, others);
    ph__watch_star_note(listener->star, &notice);
}

static ph_status await_all(struct ph__watch_listener *listener)
{
    struct ph__watch_star *star = listener->star;
    const uint64_t deadline_ns = ph__clock_deadline(listener->timeout_ms);
    while (listener->num_missing > 0 && !star->has_notice && ph__clock_ns() < deadline_ns)
        ph__watch_star_turn(star, ph__clock_ms_until(deadline_ns));
    if (listener->num_missing > 0 && !star->has_notice)
        note_missing(listener);
    if (!star->has_notice)
        return PH_OK;
    return ph_fail(star->notice.status, "%s", star->notice.text);
}

ph_status ph__watch_accept(struct ph__watch_listener *listener, struct ph__comm_watch *watch_out)
{
    const ph_status status = await_all(listener);
    if (status == PH_OK) {
        ph__watch_star_send(listener->star, PH_WATCH_BEGIN, NULL, 0);
        *watch_out = ph__watch_star_table(listener->star);
        listener->star = NULL;
    }
    ph__watch_listener_destroy(listener);
    return status;
}

struct ph__watch_star *ph__watch_listener_star(struct ph__watch_listener *listener)
{
    return listener->star;
}
