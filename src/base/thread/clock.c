#include "base/thread/clock.h"

#include <limits.h>
#include <time.h>

#define NS_A_MS 1000000u

uint64_t ph__clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t ph__clock_utc_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
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
