/* A generator of requests for a scoring server. Open loops send at random moments, as independent clients do,
 * whether or not the server keeps up, and a request's time counts from the moment at which it was to be sent:
 * a closed loop waits for answers, which hides queueing. Answers are compared with the scores that they must
 * have. One thread, which spins: give it a processor of its own. */
#ifndef PH_BENCH_LOAD_H
#define PH_BENCH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buffer.h"

/* A body to send, and the scores that its answer has. */
struct load_body {
    struct ph__buffer bytes; /* REST: JSON and binary data; gRPC: a ModelInferRequest */
    size_t json_bytes;       /* REST: of the JSON that binary data follows; 0: none does */
    const float *scores[2];  /* (num_scores), those of two models of which either may answer; borrowed */
    size_t num_scores;       /* 0: not compared */
    bool is_text;            /* scores are the numbers in the answer's last list, else its last bytes */
    float tolerance;         /* of text; 0: the same bits */
};

struct load_options {
    const char *address; /* "127.0.0.1:8000" */
    bool is_grpc;
    const char *path;               /* REST */
    const struct load_body *bodies; /* (num_bodies), sent in turn */
    size_t num_bodies;
    size_t num_clients; /* requests in flight at a time; over REST a connection each, over gRPC 16 a
                           connection */
    double rate;        /* requests a second, at exponential intervals; 0: closed loop */
    double seconds;
    atomic_bool *has_begun;     /* set when all connections are open and warm; NULL: not told */
    const atomic_bool *is_over; /* ends the load, if before its seconds; NULL: nothing does */
    bool looks_first;    /* before each request, whether its idle connection was closed: real clients do */
    uint64_t timeout_us; /* deadline that each request names; 0: none. REST has it in its JSON already */
    uint64_t seed;
};

/* Codes that are no status of HTTP or gRPC. */
enum { LOAD_LOST = -1 /* no connection */, LOAD_WRONG = -2 /* wrong scores */ };

/* A request that failed, was refused, or got wrong scores. */
struct load_error {
    uint64_t sent_ns, seen_ns; /* on ph__clock_ns */
    int code;
};

struct load_result {
    size_t num_sent, num_answered; /* answered: with the right scores */
    size_t num_refused;            /* 503, or code 14 or 4 */
    size_t num_wrong, num_failed;  /* failed: all other errors, lost connections among them */
    double seconds;                /* from the first request to the last answer */
    double paused_s,
        longest_pause_s;       /* that this machine kept the generator, which spins, off its processor */
    double *times;             /* (num_answered) s, ascending */
    struct load_error *errors; /* (num_errors): all but answered ones */
    size_t num_errors;
    char error[200]; /* of the first that is wrong or failed */
};

/* Runs a load; the caller frees the result. Ends the program when the server cannot be reached at first. */
void load_run(const struct load_options *options, struct load_result *result_out);
void load_result_fini(struct load_result *result);

/* Adds a result to a sum, and frees it. */
void load_result_add(struct load_result *sum, struct load_result *result);

/* Returns the time that this share of the answers does not exceed; NAN without any. */
double load_quantile(const struct load_result *result, double share);

#endif
