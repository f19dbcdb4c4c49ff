/* Creates, describes and destroys one rank's communicator. */
#include "comm/collective/comm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory/memory.h"
#include "comm/collective/comm_inside.h"

#define DEFAULT_TIMEOUT_NS 3e11
#define MOST_TIMEOUT_SECONDS 1e9

/* Pause at the end of ranks that print nothing, so that the rank that reports the failure ends first: Open
 * MPI's mpirun ends with the last rank, and may lose what was printed in that moment. */
static const struct timespec LISTENING = {.tv_nsec = 200000000};

static bool is_time(double seconds)
{
    return seconds >= 0 && seconds <= MOST_TIMEOUT_SECONDS;
}

static void describe(struct ph_comm *comm)
{
    const struct ph__transport *transport = &comm->transport;
    snprintf(comm->description, sizeof comm->description, "%s, rank %zu of %zu, host %zu of %zu",
        transport->name, transport->rank, transport->world_size, comm->places.own_host,
        comm->places.num_hosts);
}

static ph_status init(struct ph_comm *comm, const struct ph_comm_options *options)
{
    const size_t world_size = comm->transport.world_size;
    const double seconds = options->timeout_seconds;
    enum ph__isa isa = PH_ISA_REF;
    (void)ph__cpu_isa(&isa); /* all give the same bits; an error in PHLOEM_ISA is reported by the first code
                                that computes, once ranks have met */
    comm->kernels = ph__kernels_for(isa);
    comm->timeout_ns = (uint64_t)(is_time(seconds) && seconds > 0 ? seconds * 1e9 : DEFAULT_TIMEOUT_NS);
    comm->cut_bytes = PH_TRANSPORT_MAX_BYTES;
    comm->sent_bytes = calloc(world_size, sizeof *comm->sent_bytes);
    comm->sent_messages = calloc(world_size, sizeof *comm->sent_messages);
    if (comm->sent_bytes == NULL || comm->sent_messages == NULL)
        return ph__out_of_memory("%zu ranks", world_size);
    PH_TRY(ph__comm_meet(comm, options));
    if (!is_time(seconds)) /* checked once all have met, so that all ranks fail */
        return ph_fail(PH_ERROR_CONFIG, "timeout_seconds must be from 0 to 1e9, not %g", seconds);
    describe(comm);
    return PH_OK;
}

static void close_and_free(struct ph_comm *comm, bool is_clean)
{
    if (comm->is_watched)
        comm->watch.close(comm->watch.context, is_clean);
    comm->transport.close(comm->transport.context, is_clean);
    ph__operations_fini(&comm->operations);
    ph__comm_places_fini(&comm->places);
    ph__choices_fini(&comm->choices);
    free(comm->sent_bytes);
    free(comm->sent_messages);
    free(comm);
}

ph_status ph__comm_create_on(
    const struct ph__transport *transport, const struct ph_comm_options *options, struct ph_comm **comm_out)
{
    struct ph_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        transport->close(transport->context, false);
        return ph__out_of_memory("a communicator");
    }
    comm->transport = *transport;
    const ph_status status = init(comm, options);
    *comm_out = comm;
    if (status == PH_OK)
        return PH_OK;
    return status == PH_ERROR_CONFIG /* ranks that disagree have met: each has the error */
               ? ph__comm_fail_alike(comm, status, ph_error_text())
               : ph__comm_fail_early(comm, transport->rank, status, ph_error_text());
}

/* Meets the others twice. After the last meeting a transport waits for the others without learning of deaths.
 * The first meeting says that all have come, some of them long ago; the second, that all were still alive
 * when the last one had come. */
ph_status ph_comm_leave(struct ph_comm *comm)
{
    PH_TRY(ph__comm_check(comm));
    if (comm->has_left)
        return PH_OK;
    PH_TRY(ph__comm_meet_for(comm, "the end of the job"));
    PH_TRY(ph__comm_meet_for(comm, "the end of the job"));
    comm->has_left = true;
    return PH_OK;
}

/* Leaves the job unless something is in flight. A failure that is the same on all ranks does not keep them
 * from leaving. */
static bool leave_if_settled(struct ph_comm *comm)
{
    const struct ph__comm_failure failure = comm->failure;
    if (comm->operations.num_flying > 0 || (failure.has_failed && !failure.is_alike))
        return false;
    comm->failure.has_failed = false;
    const bool has_left = ph_comm_leave(comm) == PH_OK;
    if (failure.has_failed)
        comm->failure = failure;
    return has_left;
}

void ph_comm_destroy(struct ph_comm *comm)
{
    char text[1024];
    if (comm == NULL)
        return;
    snprintf(text, sizeof text, "%s", ph_error_text());
    const bool is_clean = leave_if_settled(comm);
    const bool is_listener = comm->is_watched && comm->failure.has_failed && !ph_comm_speaks(comm);
    close_and_free(comm, is_clean);
    if (is_listener)
        nanosleep(&LISTENING, NULL);
    ph_fail(PH_OK, "%s", text);
}

void ph__comm_attach_watch(struct ph_comm *comm, const struct ph__comm_watch *watch)
{
    comm->watch = *watch;
    comm->is_watched = true;
}

void ph__comm_set_threads(struct ph_comm *comm, size_t num_threads)
{
    comm->patience.is_crowded = comm->places.num_neighbours * num_threads > comm->places.num_processors;
}

void ph__comm_simulate(struct ph_comm *comm, const struct ph__comm_simulation *simulation)
{
    comm->simulation = *simulation;
}

void ph__comm_set_counting(struct ph_comm *comm, bool is_counting)
{
    comm->is_uncounted = !is_counting;
}

bool ph__comm_is_simulated(const struct ph_comm *comm)
{
    return comm->simulation.work != NULL;
}

void ph__comm_set_cut(struct ph_comm *comm, size_t bytes)
{
    comm->cut_bytes = bytes;
}

ph_status ph__comm_set_collectives(struct ph_comm *comm, const struct ph__collective_choice *choices,
    size_t num_choices, const uint32_t *groups)
{
    assert(comm->operations.num_flying == 0);
    return ph__choices_set(&comm->choices, &comm->places.world, choices, num_choices, groups);
}

enum ph_collective ph__comm_collective(
    const struct ph_comm *comm, const struct ph__group *group, uint64_t bytes)
{
    return ph__choices_of(&comm->choices, group, bytes);
}

void ph__comm_vary_collectives(struct ph_comm *comm)
{
    comm->choices.may_change = true;
}

bool ph__comm_always_exchanges(const struct ph_comm *comm, const struct ph__group *group, uint64_t bytes)
{
    const bool may_change = comm->choices.may_change && group->size == comm->choices.world_size;
    return !may_change && ph__comm_collective(comm, group, bytes) == PH_COLLECTIVE_EXCHANGE;
}

/* ---- properties ---- */

size_t ph_comm_rank(const struct ph_comm *comm)
{
    return comm->transport.rank;
}

size_t ph_comm_world_size(const struct ph_comm *comm)
{
    return comm->transport.world_size;
}

size_t ph_comm_num_hosts(const struct ph_comm *comm)
{
    return comm->places.num_hosts;
}

size_t ph_comm_ranks_per_host(const struct ph_comm *comm)
{
    return comm->places.ranks_per_host;
}

const char *ph_comm_describe(const struct ph_comm *comm)
{
    return comm->description;
}

const struct ph__group *ph__comm_world(const struct ph_comm *comm)
{
    return &comm->places.world;
}

const struct ph__group *ph__comm_host(const struct ph_comm *comm)
{
    return &comm->places.host;
}

const struct ph__group *ph__comm_peers(const struct ph_comm *comm)
{
    return &comm->places.peers;
}

struct ph__comm_counters ph__comm_counters(const struct ph_comm *comm)
{
    return (struct ph__comm_counters){.sent_bytes = comm->sent_bytes,
        .sent_messages = comm->sent_messages,
        .waited_seconds = (double)comm->waited_ns * 1e-9,
        .num_operations = comm->operations.num_started};
}

const char *ph__comm_transport(const struct ph_comm *comm)
{
    return comm->transport.name;
}

size_t ph__comm_own_host(const struct ph_comm *comm)
{
    return comm->places.own_host;
}

bool ph__comm_are_neighbours(const struct ph_comm *comm, size_t a, size_t b)
{
    return ph__comm_places_are_neighbours(&comm->places, a, b);
}

size_t ph__comm_num_neighbours(const struct ph_comm *comm)
{
    return comm->places.num_neighbours;
}

const char *ph__comm_machine_name(const struct ph_comm *comm, size_t rank)
{
    return comm->places.greetings[rank].host;
}
