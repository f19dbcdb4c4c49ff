/* Joins a process to its job: opens the transport, meets all ranks, and attaches the watch by which ranks
 * learn of each other's ends. */
#include <string.h>

#include "base/memory/caller.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"
#include "comm/watch/watch.h"
#include "comm/wire/transport_open.h"

#define NS_PER_MS 1000000u

static ph_status pass_invitation(struct ph_comm *comm, struct ph__watch_invitation *invitation)
{
    return ph__comm_broadcast_once(comm, "invitation to the watch", 0, invitation, sizeof *invitation);
}

/* Invites the others, on rank 0. Where it cannot listen, the invitation tells them. */
static ph_status invite(struct ph_comm *comm, const struct ph__watch_options *options,
    struct ph__watch_invitation *invitation, struct ph__comm_watch *watch_out)
{
    struct ph__watch_listener *listener = NULL;
    const ph_status listening = ph__watch_listen(options, invitation, &listener);
    const ph_status passed = pass_invitation(comm, invitation);
    if (passed != PH_OK) {
        ph__watch_listener_destroy(listener);
        return passed;
    }
    if (listening != PH_OK)
        return ph_fail(listening, "%s", invitation->text);
    return ph__watch_accept(listener, watch_out);
}

static ph_status be_invited(struct ph_comm *comm, const struct ph__watch_options *options,
    struct ph__watch_invitation *invitation, struct ph__comm_watch *watch_out)
{
    PH_TRY(pass_invitation(comm, invitation));
    return ph__watch_join(options, invitation, watch_out);
}

static ph_status attach_watch(struct ph_comm *comm)
{
    const struct ph__watch_options options = {
        .rank = comm->transport.rank,
        .world_size = comm->transport.world_size,
        .is_one_host = comm->places.num_neighbours == comm->transport.world_size,
        .timeout_ms = (uint32_t)ph__min((size_t)(comm->timeout_ns / NS_PER_MS), INT32_MAX),
    };
    struct ph__watch_invitation invitation;
    struct ph__comm_watch watch;
    if (options.world_size == 1)
        return PH_OK;
    memset(&invitation, 0, sizeof invitation);
    const ph_status status = options.rank == 0 ? invite(comm, &options, &invitation, &watch)
                                               : be_invited(comm, &options, &invitation, &watch);
    explicit_bzero(&invitation, sizeof invitation);
    PH_TRY(status);
    if (options.rank == 0)
        (void)ph__watch_attend(&watch); /* no thread on failure: rank 0 passes notices on when it looks */
    ph__comm_attach_watch(comm, &watch);
    return PH_OK;
}

ph_status ph_comm_create(const struct ph_comm_options *options, struct ph_comm **comm_out)
{
    struct ph__transport transport;
    struct ph_comm_options own;
    *comm_out = NULL;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_comm_options"));
    PH_TRY(ph__transport_open(own.transport, &transport));
    PH_TRY(ph__comm_create_on(&transport, &own, comm_out));
    const ph_status status = attach_watch(*comm_out); /* fails on all ranks: there is nobody to tell */
    return status == PH_OK ? PH_OK : ph__comm_fail_early(*comm_out, 0, status, ph_error_text());
}
