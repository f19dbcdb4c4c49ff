/* A hub of the benchmark, in a process of its own. */
#ifndef PH_BENCH_HUB_PROCESS_H
#define PH_BENCH_HUB_PROCESS_H

#include <stdint.h>

#include "child.h"
#include "phloem/hub_server.h"

enum { HUB_ADDRESS = 64 };

struct hub_process_options {
    struct ph_hub_server_options server;
    int processor; /* number to pin all its threads to; -1: any */
};

/* The process sends its address, (HUB_ADDRESS) bytes, and then its counters for each byte that it reads. */
struct hub_counters { /* sums over all core threads, since the start */
    uint64_t rounds, idle_rounds, sleeps;
    uint64_t messages, system_calls, doorbells; /* sums over the present links */
    uint64_t waits_for_replies;
};

child_work hub_process; /* context: struct hub_process_options */

#endif
