/* Capacity of TCP over the loopback interface at this moment: exchanges as many bytes as a hub and its
 * workers, from processes to one process and back, a thread for each connection, in large pieces without
 * meaning. The bytes that a worker sends come back while it sends. */
#ifndef PH_BENCH_ECHO_H
#define PH_BENCH_ECHO_H

#include "child.h"

enum { ECHO_MAX_WORKERS = 4 };

struct echo {
    size_t num_workers;
    struct child server, workers[ECHO_MAX_WORKERS];
};

struct echo echo_start(size_t num_workers, size_t bytes); /* bytes: of a worker, each way */
void echo_end(struct echo *echo);                         /* nothing for zeros */

double echo_seconds(const struct echo *echo); /* time of one exchange, the slowest worker's */

#endif
