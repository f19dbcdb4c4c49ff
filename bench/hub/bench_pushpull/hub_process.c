/* Runs a hub and answers with its counters; see hub_process.h. */
#include "hub_process.h"

#include <pthread.h>
#include <stdio.h>

#include "figures.h"
#include "hub/server/server_state.h"
#include "pinned.h"

struct hub {
    struct ph_hub_server *server;
    int from, to;
};

static void add_shard(struct hub_counters *counters, const struct ph__tenant *tenant, uint16_t core)
{
    struct ph__shard *shard = tenant->shards[core];
    counters->waits_for_replies += ph__shard_counters(shard)->waits_for_replies;
    for (uint32_t worker = 0; worker < tenant->settings.service.num_workers; worker++) {
        const struct ph__link *link = ph__shard_link(shard, worker);
        if (link == NULL)
            continue;
        counters->messages += link->counters.messages_sent + link->counters.messages_received;
        counters->system_calls += link->counters.system_calls;
        counters->doorbells += link->counters.doorbells;
    }
}

/* Returns approximate counters: nothing moves during the call, and no job comes or goes. */
static struct hub_counters count(const struct ph_hub_server *server)
{
    struct hub_counters counters = {0};
    for (uint16_t core = 0; core < server->num_cores; core++) {
        const struct ph__core_counters of_core = ph__core_counters(server->cores[core]);
        counters.rounds += of_core.rounds;
        counters.idle_rounds += of_core.idle_rounds;
        counters.sleeps += of_core.sleeps;
        for (const struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next)
            if (tenant->state == PH_TENANT_RUNNING)
                add_shard(&counters, tenant, core);
    }
    return counters;
}

static void *answer_until_end(void *context)
{
    const struct hub *hub = context;
    char asked;
    while (child_has_order(hub->from, &asked, sizeof asked)) {
        const struct hub_counters counters = count(hub->server);
        child_answer(hub->to, &counters, sizeof counters);
    }
    ph_hub_server_stop(hub->server);
    return NULL;
}

void hub_process(void *context, int from, int to)
{
    const struct hub_process_options *options = context;
    struct hub hub = {.from = from, .to = to};
    char address[HUB_ADDRESS] = "";
    pthread_t thread;
    if (options->processor >= 0)
        bench_stay_on(options->processor);
    bench_check(ph_hub_server_create(&options->server, &hub.server));
    snprintf(address, sizeof address, "%s", ph_hub_server_address(hub.server));
    if (pthread_create(&thread, NULL, answer_until_end, &hub) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot start a thread for the hub"));
    child_answer(to, address, sizeof address);
    bench_check(ph_hub_server_run(hub.server, NULL));
    pthread_join(thread, NULL);
    ph_hub_server_destroy(hub.server);
}
