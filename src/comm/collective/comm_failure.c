/* How a communicator ends when a rank fails: what is told to whom, and what every later call says. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"
#include "comm/wire/transport_choice.h"

/* Which notice of a job was the first is known after a round trip; why a transport fails, when a dead process's sockets have
 * been closed. */
#define ECHO_MS 1000u
#define EXPLAIN_MS 200u
#define LOOK_PAUSE_NS 1000000

ph_status ph__comm_check(const struct ph_comm *comm)
{
    if (!comm->failure.has_failed)
        return PH_OK;
    return ph_fail(comm->failure.notice.status, "%s", comm->failure.notice.text);
}

static ph_status fail_by(struct ph_comm *comm, const struct ph_comm_notice *notice)
{
    comm->failure.has_failed = true;
    comm->failure.notice = *notice;
    return ph__comm_check(comm);
}

/* The job's notice, if it comes in time. */
static bool hear(struct ph_comm *comm, uint32_t timeout_ms, struct ph_comm_notice *notice_out)
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

/* What two ranks tell at once is one failure: that of which all hear. */
static ph_status fail_and_tell(struct ph_comm *comm, const struct ph_comm_notice *notice)
{
    struct ph_comm_notice first;
    if (comm->is_watched)
        comm->watch.tell(comm->watch.context, notice);
    return fail_by(comm, hear(comm, ECHO_MS, &first) ? &first : notice);
}

ph_status ph__comm_look(struct ph_comm *comm, uint64_t now_ns, uint64_t interval_ns)
{
    struct ph_comm_notice notice;
    if (!comm->is_watched || now_ns - comm->looked_ns < interval_ns)
        return PH_OK;
    comm->looked_ns = now_ns;
    return comm->watch.look(comm->watch.context, &notice) ? fail_by(comm, &notice) : PH_OK;
}

ph_status ph__comm_fail_here(struct ph_comm *comm, const char *format, ...)
{
    struct ph_comm_notice notice = {.rank = (uint32_t)comm->transport.rank, .status = PH_ERROR_PEER};
    struct ph_comm_notice cause;
    va_list arguments;
    PH_TRY(ph__comm_check(comm));
    if (hear(comm, EXPLAIN_MS, &cause))
        return fail_by(comm, &cause);
    va_start(arguments, format);
    vsnprintf(notice.text, sizeof notice.text, format, arguments);
    va_end(arguments);
    return fail_and_tell(comm, &notice);
}

ph_status ph__comm_fail_for(struct ph_comm *comm, size_t rank, const char *text)
{
    struct ph_comm_notice notice = {.rank = (uint32_t)rank, .status = PH_ERROR_PEER, .has_died = true};
    snprintf(notice.text, sizeof notice.text, "%s", text);
    return fail_and_tell(comm, &notice);
}

ph_status ph__comm_fail_early(struct ph_comm *comm, size_t rank, ph_status status, const char *text)
{
    struct ph_comm_notice notice = {.rank = (uint32_t)rank, .status = status};
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
    struct ph_comm_notice notice = {.rank = (uint32_t)comm->transport.rank, .status = status};
    assert(status != PH_OK);
    PH_TRY(ph__comm_check(comm));
    snprintf(notice.text, sizeof notice.text, "%s", ph_error_text());
    return fail_and_tell(comm, &notice);
}

bool ph_comm_speaks(const struct ph_comm *comm)
{
    if (comm == NULL)
        return ph__transport_is_first_of_host();
    const struct ph_comm_notice *notice = &comm->failure.notice;
    const size_t lowest_other = notice->rank == 0 && comm->transport.world_size > 1 ? 1 : 0;
    return comm->transport.rank == (notice->has_died ? lowest_other : notice->rank);
}
