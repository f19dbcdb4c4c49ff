/* Progress, which is polling, and waiting, which is progress until an operation is done. */
#include <stdio.h>

#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"

/* How often the watch is looked at, by a rank that computes and by one that waits. */
#define COMPUTING_LOOK_NS 10000000u
#define WAITING_LOOK_NS 2000000u

static ph_status poll_all(struct ph_comm *comm)
{
    struct ph_operations *operations = &comm->operations;
    for (size_t i = 0; i < operations->num_flying;) {
        struct ph_operation *operation = operations->flying[i];
        PH_TRY(ph__operation_poll(comm, operation));
        if (operation->is_done)
            operations->flying[i] = operations->flying[--operations->num_flying];
        else
            i++;
    }
    return PH_OK;
}

static ph_status look_and_poll(struct ph_comm *comm)
{
    PH_TRY(ph__comm_check(comm));
    if (comm->is_watched)
        PH_TRY(ph__comm_look(comm, ph__clock_ns(), COMPUTING_LOOK_NS));
    return poll_all(comm);
}

ph_status ph__comm_progress(struct ph_comm *comm)
{
    if (comm->record == NULL || comm->operations.num_flying == 0)
        return look_and_poll(comm);
    const uint64_t since_ns = ph__clock_ns();
    const ph_status status = look_and_poll(comm);
    ph__record_polled(comm->record, since_ns);
    return status;
}

static ph_status fail_late(struct ph_comm *comm, const struct ph_operation *operation)
{
    char name[160], text[PH_NOTICE_TEXT_BYTES], others[64] = "";
    size_t num_others;
    const size_t rank = ph__operation_waits_for(operation, &num_others);
    ph__comm_name_rank(comm, rank, name, sizeof name);
    if (num_others > 0)
        snprintf(others, sizeof others, " and %zu other%s", num_others, num_others > 1 ? "s" : "");
    snprintf(text, sizeof text, "%s: rank %zu has waited %.3g s for %s%s", operation->what,
        comm->transport.rank, (double)comm->timeout_ns * 1e-9, name, others);
    return ph__comm_fail_for(comm, rank, text);
}

static ph_status poll_until_done(
    struct ph_comm *comm, const struct ph_operation *operation, uint64_t since_ns)
{
    uint64_t num_moves = comm->operations.num_moves, now_ns = since_ns;
    ph__patience_reset(&comm->patience, now_ns);
    while (!operation->is_done) {
        ph__patience_pass(&comm->patience, now_ns);
        PH_TRY(poll_all(comm));
        now_ns = ph__clock_ns();
        if (comm->operations.num_moves != num_moves) {
            num_moves = comm->operations.num_moves;
            ph__patience_reset(&comm->patience, now_ns);
        }
        PH_TRY(ph__comm_look(comm, now_ns, WAITING_LOOK_NS));
        if (!operation->is_done && now_ns - since_ns > comm->timeout_ns)
            return fail_late(comm, operation);
    }
    return PH_OK;
}

ph_status ph__comm_wait(struct ph_comm *comm, uint64_t ticket)
{
    PH_TRY(ph__comm_check(comm));
    struct ph_operation *operation = ph__operation_find(comm, ticket);
    if (operation == NULL)
        return PH_OK; /* waited for before */
    const bool was_done = operation->is_done;
    const uint64_t since_ns = ph__clock_ns();
    uint64_t waited_ns = 0;
    PH_TRY(was_done ? ph__comm_progress(comm)
                    : look_and_poll(comm)); /* a poll like any other, or part of the wait */
    if (!was_done) {
        const ph_status status = poll_until_done(comm, operation, since_ns);
        waited_ns = ph__clock_ns() - since_ns;
        comm->waited_ns += waited_ns;
        PH_TRY(status);
    }
    ph__record_waited(operation, since_ns, waited_ns);
    operation->is_taken = false;
    return PH_OK;
}
