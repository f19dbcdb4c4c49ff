/* A hub's core threads: how many, where they run, and how they wait. */
#include "base/sizes.h"
#include "base/thread/cpu.h"
#include "hub/server/server_state.h"
#include "hub/shard/wait_policy.h"

/* ---- placement ---- */

static ph_status place_cores(struct ph_hub_server *server, size_t num_cores)
{
    PH_TRY(ph__machine_detect(&server->machine));
    if (ph__socket_is_wildcard(server->listening))
        ph__machine_keep_choice(&server->machine, !ph__socket_is_ipv4(server->listening));
    else
        ph__machine_forget_interfaces(&server->machine);
    return ph__placement_plan(&server->machine, num_cores, &server->placement);
}

static ph_status start_core(struct ph_hub_server *server, uint16_t index)
{
    const struct ph_thread_place *place = &server->placement.threads[index];
    const struct ph_core_options options = {
        .wait = ph__wait_policy(server->options.wait),
        .is_crowded = server->is_crowded,
        .max_shards = server->options.max_jobs,
        .max_links = PH_HUB_MAX_LINKS,
        .processor = place->processor != PH_NOWHERE ? (int)place->processor : -1,
        .others = server->cores,
        .num_others = server->placement.num_threads,
    };
    return ph__core_create(&options, &server->cores[index]);
}

size_t ph__server_wanted_cores(const struct ph_hub_server *server)
{
    const size_t num_threads = server->options.num_threads;
    return num_threads > 0 ? num_threads : ph__min(ph__cpu_count(), PH_HUB_MAX_CORES);
}

ph_status ph__server_start_cores(struct ph_hub_server *server)
{
    const size_t wanted = ph__server_wanted_cores(server);
    server->num_processors = ph__cpu_count();
    if (wanted > PH_HUB_MAX_CORES)
        return ph__server_name_option("threads",
            ph_fail(PH_ERROR_CONFIG, "%zu core threads; there are up to %d", wanted, PH_HUB_MAX_CORES));
    PH_TRY(place_cores(server, wanted));
    server->is_crowded = wanted > server->num_processors;
    for (; server->num_cores < wanted; server->num_cores++)
        PH_TRY(start_core(server, server->num_cores));
    return PH_OK;
}

const char *ph__server_host_of_core(const struct ph_session *session, uint16_t core)
{
    const struct ph_hub_server *server = session->server;
    const uint32_t interface = server->placement.threads[core].interface;
    const int socket = ph__control_stream_socket(session->stream);
    if (session->is_of_host || interface == PH_NOWHERE)
        return "";
    return server->machine.interfaces[interface].hosts[ph__socket_is_ipv4(socket) ? PH_IPV4 : PH_IPV6];
}

void ph__server_stop_cores(struct ph_hub_server *server)
{
    for (uint16_t i = 0; i < server->num_cores; i++)
        ph__core_destroy(server->cores[i]);
    server->num_cores = 0;
    ph__placement_fini(&server->placement);
    ph__machine_fini(&server->machine);
}

/* ---- crowds ---- */

/* Of workers of this host. Over TCP each has one for its links besides its own; the hub is not told of those that have none. */
static size_t count_local_threads(const struct ph_hub_server *server)
{
    size_t count = 0;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->tenant != NULL && session->is_of_host)
            count += session->tenant->members[session->rank].is_shared ? 1 : 2;
    }
    return count;
}

struct crowding {
    struct ph_core *core;
    bool is_crowded;
};

static void tell_core(void *context)
{
    const struct crowding *crowding = context;
    ph__core_set_crowded(crowding->core, crowding->is_crowded);
}

void ph__server_count_crowd(struct ph_hub_server *server)
{
    const bool is_crowded = server->num_cores + count_local_threads(server) > server->num_processors;
    if (is_crowded == server->is_crowded)
        return;
    server->is_crowded = is_crowded;
    for (uint16_t i = 0; i < server->num_cores; i++) {
        struct crowding crowding = {.core = server->cores[i], .is_crowded = is_crowded};
        ph__core_call(server->cores[i], tell_core, &crowding);
    }
}
