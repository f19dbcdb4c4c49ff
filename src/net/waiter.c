#include "net/waiter.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "base/thread/clock.h"

/* ---- waiting ---- */

#define SPIN_NS 100000u        /* some times the cost of waking */
#define CROWDED_SPIN_NS 20000u /* about the cost of waking */
#define TURNS_A_LOOK 16        /* of spinning, between looks at the clock */

static bool has_spun(struct ph__waiter *waiter)
{
    if (waiter->num_idle == 1) {
        waiter->idle_since_ns = ph__clock_ns();
        return false;
    }
    return waiter->num_idle % TURNS_A_LOOK == 0 && ph__clock_ns() - waiter->idle_since_ns > SPIN_NS;
}

/* Offers the core to other threads. Looks at the clock after each offer: a program that does not wait for the
 * hub keeps the processor for a slice of some milliseconds, and what this thread waits for may have come long
 * before. */
static bool has_offered(struct ph__waiter *waiter)
{
    if (waiter->num_idle == 1)
        waiter->idle_since_ns = ph__clock_ns();
    else if (ph__clock_ns() - waiter->idle_since_ns > CROWDED_SPIN_NS)
        return true;
    sched_yield();
    return false;
}

bool ph__waiter_should_sleep(struct ph__waiter *waiter)
{
    if (waiter->policy == PH_WAIT_SLEEP)
        return true;
    if (waiter->policy == PH_WAIT_SPIN) {
        ph__pause_briefly();
        return false;
    }
    waiter->num_idle++;
    if (waiter->policy == PH_WAIT_AUTO && waiter->is_crowded)
        return has_offered(waiter);
    if (has_spun(waiter))
        return true;
    ph__pause_briefly();
    return false;
}

/* ---- doorbells ----
 *
 * MSG_DONTWAIT holds for one call; unlike O_NONBLOCK, no holder of the other end can undo it. */

ph_status ph__doorbell_create(int ends_out[2])
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot create a doorbell: %s", strerror(errno));
    ends_out[0] = ends[0];
    ends_out[1] = ends[1];
    return PH_OK;
}

void ph__doorbell_ring(int end)
{
    /* A full socket has rung already, and a closed one has no thread to wake. */
    (void)!send(end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool ph__doorbell_answer(int end)
{
    char rung[256];
    ssize_t received;
    do
        received = recv(end, rung, sizeof rung, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    return received > 0 || (received < 0 && errno == EAGAIN);
}
