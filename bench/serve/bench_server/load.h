/* A generator of requests for a scoring server. Open loops send at random moments, as independent clients do,
 * whether or not the server keeps up, and a request's time counts from the moment at which it was to be sent:
 * a closed loop waits for answers, which hides queueing. One thread, which spins: give it a processor of its
 * own. */
#ifndef PH_BENCH_LOAD_H
#define PH_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buffer.h"

/* A body to send, and how its answer is checked. */
struct load_body {
    struct ph__buffer bytes; /* REST: JSON and binary data; gRPC: a ModelInferRequest */
    size_t json_bytes;       /* REST: of the JSON */
};

struct load_options {
    const char *address; /* "127.0.0.1:8000" */
    bool is_grpc;
    const char *model;              /* REST: of the path */
    const struct load_body *bodies; /* (num_bodies), sent in turn */
    size_t num_bodies;
    size_t num_clients; /* requests in flight at a time; over REST a connection each, over gRPC 16 a
                           connection */
    double rate;        /* requests a second, at exponential intervals; 0: closed loop */
    double seconds;
    uint64_t timeout_us; /* deadline that each request names; 0: none. REST has it in its JSON already */
    uint64_t seed;
};

struct load_result {
    size_t num_sent, num_answered, num_refused, num_failed; /* refused: 503, or code 14 or 4 */
    double seconds;                                         /* from the first request to the last answer */
    double *times;   /* (num_answered) s, ascending; the caller frees them */
    char error[200]; /* of the first failure */
};

/* Runs a load. Ends the program when the server cannot be reached. */
void load_run(const struct load_options *options, struct load_result *result_out);
void load_result_fini(struct load_result *result);

/* Returns the time that this share of the answers does not exceed; NAN without any. */
double load_quantile(const struct load_result *result, double share);

#endif
