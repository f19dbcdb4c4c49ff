#include "base/thread/clock.h"

#include <limits.h>
#include <time.h>

#include "base/thread/stop.h"

#define NS_A_MS 1000000u

static _Thread_local const struct ph__clock *replacement;

void ph__clock_replace(const struct ph__clock *clock)
{
    replacement = clock;
}

ph_status ph__timed_work_run(const struct ph__timed_work *work)
{
    return replacement != NULL ? replacement->work(replacement, work) : work->run(work->context);
}

uint64_t ph__clock_ns(void)
{
    struct timespec now;
    if (replacement != NULL)
        return replacement->now_ns(replacement);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double ph__clock_seconds(void)
{
    return (double)ph__clock_ns() * 1e-9;
}

uint64_t ph__clock_deadline(uint32_t timeout_ms)
{
    return ph__clock_ns() + (uint64_t)timeout_ms * NS_A_MS;
}

int ph__clock_ms_until(uint64_t deadline_ns)
{
    const uint64_t now_ns = ph__clock_ns();
    const uint64_t left_ms = now_ns < deadline_ns ? (deadline_ns - now_ns + NS_A_MS - 1) / NS_A_MS : 0;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

uint64_t ph__clock_utc_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* ---- waits ---- */

#define LOOK_MS 50 /* between looks for a signal, which another thread may have got */

struct ph__wait ph__wait_begin(struct ph__timeout timeout)
{
    return (struct ph__wait){
        .deadline_ns = ph__clock_deadline(timeout.ms), .stop_signal = timeout.stop_signal};
}

/* Moves the deadline up after a signal, once. */
static void look_for_signal(struct ph__wait *wait)
{
    if (wait->is_stopped || !ph__is_stopped(wait->stop_signal))
        return;
    const uint64_t deadline_ns = ph__clock_deadline(PH_STOP_GRACE_MS);
    wait->is_stopped = true;
    wait->deadline_ns = deadline_ns < wait->deadline_ns ? deadline_ns : wait->deadline_ns;
}

int ph__wait_ms(struct ph__wait *wait)
{
    look_for_signal(wait);
    const int left_ms = ph__clock_ms_until(wait->deadline_ns);
    return wait->stop_signal == NULL || left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

ph_status ph__wait_stopped(const struct ph__wait *wait)
{
    return ph_fail(ph__stop_status(wait->stop_signal), "stopped by a signal");
}
