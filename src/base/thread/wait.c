#include "base/thread/wait.h"

#include "base/thread/clock.h"
#include "base/thread/stop.h"

#define LOOK_MS 50 /* for a signal, which another thread may have got */

struct ph_wait ph__wait_begin(struct ph_timeout timeout)
{
    return (struct ph_wait){
        .deadline_ns = ph__clock_deadline(timeout.ms), .stop_signal = timeout.stop_signal};
}

/* Moves the deadline up, once. */
static void look_for_signal(struct ph_wait *wait)
{
    if (wait->is_stopped || !ph__is_stopped(wait->stop_signal))
        return;
    const uint64_t deadline_ns = ph__clock_deadline(PH_STOP_GRACE_MS);
    wait->is_stopped = true;
    wait->deadline_ns = deadline_ns < wait->deadline_ns ? deadline_ns : wait->deadline_ns;
}

int ph__wait_ms(struct ph_wait *wait)
{
    look_for_signal(wait);
    const int left_ms = ph__clock_ms_until(wait->deadline_ns);
    return wait->stop_signal == NULL || left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

ph_status ph__wait_stopped(const struct ph_wait *wait)
{
    return ph_fail(ph__stop_status(wait->stop_signal), "stopped by a signal");
}
