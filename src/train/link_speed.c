#include "train/link_speed.h"

#include <stdlib.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "train/rank_channels.h"

enum { ROUNDS = 5, MESSAGE_BYTES = 1 << 20 };

static int compare_seconds(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* To the next of the group, from the one before, which may be the same. */
static ph_status pass_on(struct ph_comm *comm, const struct ph_group *group, char *bytes)
{
    static const struct ph_comm_call call = {PH_CHANNEL_LINKS, "measuring links"};
    const struct ph_message send = {group->ranks[(group->own + 1) % group->size], bytes, MESSAGE_BYTES};
    const struct ph_message receive = {
        group->ranks[(group->own + group->size - 1) % group->size], bytes + MESSAGE_BYTES, MESSAGE_BYTES};
    const struct ph_exchange exchange = {&send, &receive, 1, 1};
    uint64_t ticket;
    PH_TRY(ph__comm_exchange_start(comm, &call, &exchange, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* The first message of a link opens it. bytes_per_s_out: of one rank, each way; of a group of one nothing is said. */
static ph_status measure(
    struct ph_comm *comm, const struct ph_group *group, char *bytes, double *bytes_per_s_out)
{
    double seconds[ROUNDS];
    if (group->size < 2)
        return PH_OK;
    PH_TRY(pass_on(comm, group, bytes));
    for (size_t i = 0; i < ROUNDS; i++) {
        PH_TRY(ph__comm_barrier(comm));
        const double begin = ph__clock_seconds();
        PH_TRY(pass_on(comm, group, bytes));
        seconds[i] = ph__clock_seconds() - begin;
    }
    qsort(seconds, ROUNDS, sizeof *seconds, compare_seconds);
    *bytes_per_s_out = MESSAGE_BYTES / seconds[ROUNDS / 2];
    return PH_OK;
}

static ph_status measure_both(struct ph_comm *comm, char *bytes, struct ph_plan_machine *machine)
{
    const size_t ranks_per_host = ph_comm_ranks_per_host(comm);
    double of_rank = machine->network_bytes_per_s / (double)ranks_per_host;
    PH_TRY(measure(comm, ph__comm_host(comm), bytes, &machine->host_bytes_per_s));
    PH_TRY(measure(comm, ph__comm_peers(comm), bytes, &of_rank));
    machine->network_bytes_per_s = of_rank * (double)ranks_per_host;
    return PH_OK;
}

ph_status ph__link_speeds_measure(struct ph_comm *comm, struct ph_plan_machine *machine)
{
    if (ph_comm_ranks_per_host(comm) == 0)
        return PH_OK;
    char *bytes = calloc(2, MESSAGE_BYTES);
    if (bytes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to measure links");
    const ph_status status = measure_both(comm, bytes, machine);
    if (status == PH_OK)
        free(bytes); /* after an error messages may still arrive there */
    return status;
}
