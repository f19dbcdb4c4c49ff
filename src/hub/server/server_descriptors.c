/* How many descriptors a hub has to give away, so that links and files of jobs that run always find some.
 *
 * Set aside of those that the process may have are: what was open when the hub had started, what strangers may take
 * (server_listen.c), what files and whoever asks for metrics take for a moment, and for each worker that has joined what its
 * links take when its job begins. A worker for whose links there would be none is refused when it joins. */
#include <sys/resource.h>

#include "base/file/directory.h"
#include "base/sizes.h"
#include "hub/server/server_state.h"

#define OF_STRANGER 2     /* its connection; over the local socket its process besides */
#define OF_JOB 3          /* its results; a checkpoint and the folder that this is in */
#define OF_LOCAL_WORKER 3 /* its connection, process and region; its links to core threads come on top */
#define OF_HUB 10         /* its loops, bells and sockets, its folder, its trace */
#define OF_CORE 3         /* a core thread's loop and bell */
#define FILES 8           /* services that are created, the trace, what a program opens beside its hub */

static ph_status count_one(void *count, const char *name)
{
    (void)name;
    ++*(uint64_t *)count;
    return PH_OK;
}

uint64_t ph__server_max_descriptors(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* Its connection and process; its region; a link to each core thread. */
static uint64_t of_worker(const struct ph_session *session, bool is_shared)
{
    return (uint64_t)1 + session->is_local + is_shared + session->server->num_cores;
}

static uint64_t of_tenant(const struct ph_tenant *tenant)
{
    uint64_t count = tenant->num_joined > 0 ? OF_JOB : 0;
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
        const struct ph_member *member = &tenant->members[i];
        if (member->session != NULL)
            count += of_worker(member->session, member->is_shared);
    }
    return count;
}

/* Counts what a hub without jobs sets aside. A layout is sent to one worker at a time: what goes with it, and copies of that. */
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
    for (const struct ph_tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next)
        count += of_tenant(tenant);
    return count;
}

ph_status ph__server_check_descriptors(
    const struct ph_session *session, const struct ph_tenant *tenant, bool is_shared)
{
    const uint64_t most = session->server->max_descriptors;
    const uint64_t spoken_for = count_spoken_for(session->server);
    const uint64_t wanted = of_worker(session, is_shared) + (tenant->num_joined == 0 ? OF_JOB : 0);
    if (spoken_for <= most && wanted <= most - spoken_for)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "service '%s': a worker takes %llu descriptors of the hub, which may have %llu (ulimit -n) and has "
        "promised %llu of them already",
        tenant->settings.name, (unsigned long long)wanted, (unsigned long long)most,
        (unsigned long long)spoken_for);
}

/* ---- at the start ---- */

ph_status ph__server_count_descriptors(struct ph_hub_server *server)
{
    server->num_own_descriptors = 0;
    return ph__directory_visit("/proc/self/fd", count_one, &server->num_own_descriptors);
}

/* Counts the descriptors with which a hub that has not started can serve one worker, over the local socket. The more it may have, the
 * more strangers it lets come. */
static uint64_t count_least(const struct ph_hub_server *server, uint64_t num_cores)
{
    const bool has_metrics = server->options.metrics_address != NULL;
    const uint64_t num_own = server->num_own_descriptors + OF_HUB + OF_CORE * num_cores;
    uint64_t least = 0, wanted = 1;
    while (wanted > least) {
        least = wanted;
        wanted = count_without_jobs(num_own, num_cores, ph__server_max_strangers(least), has_metrics) +
                 OF_JOB + OF_LOCAL_WORKER + num_cores;
    }
    return least;
}

ph_status ph__server_check_first_worker(struct ph_hub_server *server)
{
    const uint64_t num_cores = ph__min(ph__server_wanted_cores(server), PH_HUB_MAX_CORES);
    const uint64_t most = ph__server_max_descriptors();
    PH_TRY(ph__server_count_descriptors(server));
    const uint64_t least = count_least(server, num_cores);
    if (least <= most)
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "a hub with %llu core threads needs %llu descriptors to serve a worker, and may have %llu: raise the "
        "limit (ulimit -n %llu) before it starts",
        (unsigned long long)num_cores, (unsigned long long)least, (unsigned long long)most,
        (unsigned long long)least);
}
