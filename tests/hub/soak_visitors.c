/* See soak_visitors.h. */
#include "hub/soak_visitors.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "hub/client/client_operator.h"
#include "hub/soak_job.h"
#include "net/link/socket.h"

enum { MAX_GARBAGE = 4096 };

static struct ph_hub_options options_of(const struct soak_hub *hub)
{
    return (struct ph_hub_options){
        .size = sizeof(struct ph_hub_options), .address = hub->address, .timeout_ms = SOAK_TIMEOUT_MS};
}

static struct ph_hub_service service_of(const char *name)
{
    static const struct ph_hub_optimizer none = {.is_none = true};
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = name,
        .nonce = SOAK_NONCE,
        .num_workers = 2,
        .optimizers = &none,
        .num_optimizers = 1};
}

/* ---- strangers ---- */

/* Takes what is said until the other side ends. */
static ph_status drain(int connected, char *first, size_t capacity)
{
    char rest[4096];
    size_t used = 0;
    for (;;) {
        struct pollfd polled = {.fd = connected, .events = POLLIN};
        const bool has_room = used + 1 < capacity;
        if (poll(&polled, 1, SOAK_TIMEOUT_MS) != 1)
            return ph_fail(PH_ERROR_DATA, "the hub does not end a connection");
        const ssize_t received = has_room ? recv(connected, first + used, capacity - 1 - used, 0)
                                          : recv(connected, rest, sizeof rest, 0);
        if (received <= 0)
            break;
        used += has_room ? (size_t)received : 0;
    }
    first[used] = '\0';
    return PH_OK;
}

static ph_status talk(const char *address, const char *bytes, size_t size, char *first, size_t capacity)
{
    int connected;
    PH_TRY(ph__socket_connect(address, SOAK_TIMEOUT_MS, &connected));
    (void)!send(connected, bytes, size, MSG_NOSIGNAL); /* the hub may have enough of it before all is said */
    shutdown(connected, SHUT_WR);
    const ph_status status = drain(connected, first, capacity);
    close(connected);
    return status;
}

static ph_status hang_up(const struct soak_hub *hub)
{
    char answer[64];
    return talk(hub->address, "", 0, answer, sizeof answer);
}

static ph_status say_nonsense(const struct soak_hub *hub, struct ph__rng_sequence *chances)
{
    char garbage[MAX_GARBAGE], answer[64];
    const size_t size = 1 + ph__rng_below(chances, MAX_GARBAGE);
    for (size_t i = 0; i < size; i++)
        garbage[i] = (char)ph__rng_next(chances);
    return talk(hub->address, garbage, size, answer, sizeof answer);
}

static ph_status scrape(const struct soak_hub *hub)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n";
    char answer[64];
    int connected;
    PH_TRY(ph__socket_connect(hub->metrics, SOAK_TIMEOUT_MS, &connected));
    (void)!send(connected, request, sizeof request - 1, MSG_NOSIGNAL);
    const ph_status status = drain(connected, answer, sizeof answer);
    close(connected);
    PH_TRY(status);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0
               ? PH_OK
               : ph_fail(PH_ERROR_DATA, "no metrics, but '%.40s'", answer);
}

static ph_status look(const struct soak_hub *hub)
{
    const struct ph_hub_options options = options_of(hub);
    struct ph__json *json;
    PH_TRY(ph__hub_status(&options, NULL, &json));
    ph__json_destroy(json);
    return PH_OK;
}

/* ---- jobs that come to nothing ---- */

/* PH_OK when the call has failed as it should. */
static ph_status refused(ph_status status, ph_status wanted, const char *what)
{
    if (status == wanted)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "%s: %d instead of %d", what, status, wanted);
}

/* One of two workers comes, and goes without a word. */
static ph_status come_alone(const struct soak_hub *hub, const char *name)
{
    const struct ph_hub_options options = options_of(hub);
    const struct ph_hub_service service = service_of(name);
    struct ph_hub_client *client;
    PH_TRY(ph_hub_create_service(&options, &service));
    PH_TRY(ph_hub_connect(&options, name, SOAK_NONCE, 1, &client));
    ph_hub_client_destroy(client);
    return ph_hub_destroy_service(&options, name, SOAK_NONCE);
}

static ph_status ask_for_too_much(const struct soak_hub *hub, const char *name)
{
    const struct ph_hub_options options = options_of(hub);
    const struct ph_hub_key key = {.num_elements = hub->max_job_bytes, .dtype = PH_F16};
    struct ph_hub_service service = service_of(name);
    struct ph_hub_client *client;
    service.num_workers = 1;
    PH_TRY(ph_hub_create_service(&options, &service));
    PH_TRY(ph_hub_connect(&options, name, SOAK_NONCE, 0, &client));
    const ph_status status = ph_hub_init(client, &key, 1, NULL);
    ph_hub_client_destroy(client);
    PH_TRY(refused(status, PH_ERROR_MEMORY, "a job beyond the quota"));
    return ph_hub_destroy_service(&options, name, SOAK_NONCE);
}

/* A service of the same name with another nonce, a worker that there is not. */
static ph_status ask_for_what_is_not(const struct soak_hub *hub, const char *name)
{
    const struct ph_hub_options options = options_of(hub);
    struct ph_hub_service service = service_of(name);
    struct ph_hub_client *client;
    PH_TRY(ph_hub_create_service(&options, &service));
    service.nonce++;
    PH_TRY(refused(ph_hub_create_service(&options, &service), PH_ERROR_USAGE, "another nonce"));
    PH_TRY(refused(ph_hub_connect(&options, name, SOAK_NONCE, 2, &client), PH_ERROR_USAGE, "rank 2 of 2"));
    return ph_hub_destroy_service(&options, name, SOAK_NONCE);
}

ph_status soak_visit(const struct soak_hub *hub, const char *name, uint64_t seed)
{
    struct ph__rng_sequence chances = {.key = {.seed = seed}};
    switch (ph__rng_below(&chances, 7)) {
    case 0:
        return hang_up(hub);
    case 1:
        return say_nonsense(hub, &chances);
    case 2:
        return scrape(hub);
    case 3:
        return look(hub);
    case 4:
        return come_alone(hub, name);
    case 5:
        return ask_for_too_much(hub, name);
    default:
        return ask_for_what_is_not(hub, name);
    }
}

/* ---- the whole hub ---- */

ph_status soak_fill(const struct soak_hub *hub)
{
    const struct ph_hub_options options = options_of(hub);
    char name[32];
    for (uint32_t i = 0; i <= hub->max_jobs; i++) {
        snprintf(name, sizeof name, "filler-%u", i);
        const struct ph_hub_service service = service_of(name);
        const ph_status status = ph_hub_create_service(&options, &service);
        PH_TRY(refused(status, i < hub->max_jobs ? PH_OK : PH_ERROR_MEMORY, "a service of a hub that fills"));
    }
    for (uint32_t i = 0; i < hub->max_jobs; i++) {
        snprintf(name, sizeof name, "filler-%u", i);
        PH_TRY(ph_hub_destroy_service(&options, name, SOAK_NONCE));
    }
    return PH_OK;
}

ph_status soak_is_idle(const struct soak_hub *hub)
{
    const struct ph_hub_options options = options_of(hub);
    struct ph__json *json;
    PH_TRY(ph__hub_status(&options, NULL, &json));
    const size_t num_jobs = ph__json_size(ph__json_get(json, "jobs"));
    const int64_t num_connections = ph__json_as_integer(ph__json_get(json, "connections"), -1);
    const int64_t used_bytes = ph__json_as_integer(ph__json_get(json, "used_bytes"), -1);
    ph__json_destroy(json);
    if (num_jobs == 0 && num_connections == 1 && used_bytes == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "the hub has %zu jobs, %lld connections and %lld bytes of jobs", num_jobs,
        (long long)num_connections, (long long)used_bytes);
}
