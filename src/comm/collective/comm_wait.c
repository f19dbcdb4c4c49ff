/* Progress, which is polling, and waiting, which polls until an operation is done; and how a communicator
 * ends when a rank fails. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"
#include "comm/wire/transport_open.h"

/* ---- failures: which rank is told what, and the error of every later call ---- */

/* ECHO_MS: time for a round trip, which tells the job's first notice. EXPLAIN_MS: time for a dead process's
 * sockets to close, which explains a failed transport. */
#define ECHO_MS 1000u
#define EXPLAIN_MS 200u
#define LOOK_PAUSE_NS 1000000

ph_status ph__comm_check(const struct ph_comm *comm)
{
    if (!comm->failure.has_failed)
        return PH_OK;
    return ph_fail(comm->failure.notice.status, "%s", comm->failure.notice.text);
}

static ph_status fail_by(struct ph_comm *comm, const struct ph__comm_notice *notice)
{
    comm->failure.has_failed = true;
    comm->failure.notice = *notice;
    return ph__comm_check(comm);
}

/* Waits for the job's notice for up to timeout_ms. */
static bool hear(struct ph_comm *comm, uint32_t timeout_ms, struct ph__comm_notice *notice_out)
{
    static const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
    const uint64_t deadline_ns = ph__clock_deadline(timeout_ms);
    if (!comm->is_watched)
        return false;
    while (!comm->watch.look(comm->watch.context, notice_out)) {
        if (ph__clock_ms_until(deadline_ns) == 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Tells the others, and fails with the job's first notice, which may be another rank's: two ranks that fail
 * at once share one failure. */
static ph_status fail_and_tell(struct ph_comm *comm, const struct ph__comm_notice *notice)
{
    struct ph__comm_notice first;
    if (comm->is_watched)
        comm->watch.tell(comm->watch.context, notice);
    return fail_by(comm, hear(comm, ECHO_MS, &first) ? &first : notice);
}

/* Looks at the watch if the last look was `interval_ns` ago. */
static ph_status look_at_watch(struct ph_comm *comm, uint64_t now_ns, uint64_t interval_ns)
{
    struct ph__comm_notice notice;
    if (!comm->is_watched || now_ns - comm->looked_ns < interval_ns)
        return PH_OK;
    comm->looked_ns = now_ns;
    return comm->watch.look(comm->watch.context, &notice) ? fail_by(comm, &notice) : PH_OK;
}

ph_status ph__comm_fail_here(struct ph_comm *comm, const char *format, ...)
{
    struct ph__comm_notice notice = {.rank = (uint32_t)comm->transport.rank, .status = PH_ERROR_PEER};
    struct ph__comm_notice cause;
    va_list arguments;
    PH_TRY(ph__comm_check(comm));
    if (hear(comm, EXPLAIN_MS, &cause))
        return fail_by(comm, &cause);
    va_start(arguments, format);
    vsnprintf(notice.text, sizeof notice.text, format, arguments);
    va_end(arguments);
    return fail_and_tell(comm, &notice);
}

/* Fails as ph__comm_fail_here() does, for `rank`, which timed out. */
static ph_status fail_for(struct ph_comm *comm, size_t rank, const char *text)
{
    struct ph__comm_notice notice = {.rank = (uint32_t)rank, .status = PH_ERROR_PEER, .has_died = true};
    snprintf(notice.text, sizeof notice.text, "%s", text);
    return fail_and_tell(comm, &notice);
}

ph_status ph__comm_fail_early(struct ph_comm *comm, size_t rank, ph_status status, const char *text)
{
    struct ph__comm_notice notice = {.rank = (uint32_t)rank, .status = status};
    PH_TRY(ph__comm_check(comm));
    snprintf(notice.text, sizeof notice.text, "%s", text);
    return fail_by(comm, &notice);
}

ph_status ph__comm_fail_alike(struct ph_comm *comm, ph_status status, const char *text)
{
    PH_TRY(ph__comm_check(comm));
    comm->failure.is_alike = true;
    return ph__comm_fail_early(comm, 0, status, text);
}

ph_status ph_comm_fail(struct ph_comm *comm, ph_status status)
{
    struct ph__comm_notice notice = {.rank = (uint32_t)comm->transport.rank, .status = status};
    assert(status != PH_OK);
    PH_TRY(ph__comm_check(comm));
    snprintf(notice.text, sizeof notice.text, "%s", ph_error_text());
    return fail_and_tell(comm, &notice);
}

bool ph_comm_speaks(const struct ph_comm *comm)
{
    if (comm == NULL)
        return ph__transport_is_first_of_host();
    const struct ph__comm_notice *notice = &comm->failure.notice;
    const size_t lowest_other = notice->rank == 0 && comm->transport.world_size > 1 ? 1 : 0;
    return comm->transport.rank == (notice->has_died ? lowest_other : notice->rank);
}

/* ---- progress and waiting ---- */

/* Intervals between looks at the watch, of a rank that computes and of one that waits. */
#define COMPUTING_LOOK_NS 10000000u
#define WAITING_LOOK_NS 2000000u

static ph_status poll_all(struct ph_comm *comm)
{
    struct ph__operations *operations = &comm->operations;
    for (size_t i = 0; i < operations->num_flying;) {
        struct ph__operation *operation = operations->flying[i];
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
        PH_TRY(look_at_watch(comm, ph__clock_ns(), COMPUTING_LOOK_NS));
    return poll_all(comm);
}

ph_status ph__comm_progress(struct ph_comm *comm)
{
    const bool is_counted = comm->profile != NULL && comm->operations.num_flying > 0;
    const uint64_t since_ns = is_counted ? ph__clock_ns() : 0;
    if (comm->transport.look != NULL)
        comm->transport.look(comm->transport.context);
    const ph_status status = look_and_poll(comm);
    if (is_counted)
        ph__comm_profile_polled(comm->profile, since_ns);
    return status;
}

static ph_status fail_late(struct ph_comm *comm, const struct ph__operation *operation)
{
    char name[160], text[PH_NOTICE_TEXT_BYTES], others[64] = "";
    size_t num_others;
    const size_t rank = ph__operation_waits_for(operation, &num_others);
    ph__comm_name_rank(comm, rank, name, sizeof name);
    if (num_others > 0)
        snprintf(others, sizeof others, " and %zu other%s", num_others, num_others > 1 ? "s" : "");
    snprintf(text, sizeof text, "%s timed out: rank %zu has waited %.3g s for %s%s", operation->what,
        comm->transport.rank, (double)comm->timeout_ns * 1e-9, name, others);
    return fail_for(comm, rank, text);
}

static void pass_time(const struct ph_comm *comm, uint64_t now_ns)
{
    if (comm->transport.idle != NULL)
        comm->transport.idle(comm->transport.context);
    else
        ph__patience_pass(&comm->patience, now_ns);
}

static ph_status poll_until_done(
    struct ph_comm *comm, const struct ph__operation *operation, uint64_t since_ns)
{
    uint64_t num_moves = comm->operations.num_moves, now_ns = since_ns;
    ph__patience_reset(&comm->patience, now_ns);
    while (!operation->is_done) {
        pass_time(comm, now_ns);
        PH_TRY(poll_all(comm));
        now_ns = ph__clock_ns();
        if (comm->operations.num_moves != num_moves) {
            num_moves = comm->operations.num_moves;
            ph__patience_reset(&comm->patience, now_ns);
        }
        PH_TRY(look_at_watch(comm, now_ns, WAITING_LOOK_NS));
        if (!operation->is_done && now_ns - since_ns > comm->timeout_ns)
            return fail_late(comm, operation);
    }
    return PH_OK;
}

ph_status ph__comm_wait(struct ph_comm *comm, uint64_t ticket)
{
    PH_TRY(ph__comm_check(comm));
    struct ph__operation *operation = ph__operation_find(comm, ticket);
    if (operation == NULL)
        return PH_OK; /* waited for before */
    const bool was_done = operation->is_done;
    const uint64_t since_ns = ph__clock_ns();
    uint64_t waited_ns = 0;
    PH_TRY(was_done ? ph__comm_progress(comm) : look_and_poll(comm)); /* a poll, or part of the wait */
    if (!was_done) {
        const ph_status status = poll_until_done(comm, operation, since_ns);
        waited_ns = ph__clock_ns() - since_ns;
        comm->waited_ns += waited_ns;
        PH_TRY(status);
    }
    ph__comm_profile_waited(operation, since_ns, waited_ns);
    if (comm->simulation.waited != NULL)
        comm->simulation.waited(comm->simulation.context, operation->channel);
    operation->is_taken = false;
    return PH_OK;
}
