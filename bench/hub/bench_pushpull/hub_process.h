/* A hub of the benchmark in a process of its own. */
#ifndef PH_BENCH_HUB_PROCESS_H
#define PH_BENCH_HUB_PROCESS_H

#include <stdint.h>

#include "child.h"
#include "phloem/hub_server.h"

enum { HUB_ADDRESS = 64 };

struct hub_process_options {
    struct ph_hub_server_options server;
    int processor; /* for all its threads to stay on; -1: any */
};

/* Unasked it says its address, (HUB_ADDRESS) bytes; to each byte that it reads it answers its counters. */
struct hub_counters { /* of all core threads, since it began */
    uint64_t rounds, idle_rounds, sleeps;
    uint64_t messages, system_calls, doorbells; /* of the links that there are */
    uint64_t waits_for_replies;
};

child_work hub_process; /* context: struct hub_process_options */

#endif
