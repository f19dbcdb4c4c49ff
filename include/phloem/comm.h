/* Ranks: the processes that train one model together, and their communicators.
 *
 * A communicator is one rank's end. A rank that was started alone is a world of one ("self"), so that
 * programs need no second code path. In any other world all ranks make the same calls in the same order. Used
 * by the thread that made it. */
#ifndef PHLOEM_COMM_H
#define PHLOEM_COMM_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_comm;

/* Ways in which ranks sum and gather numbers: docs/PARALLEL.md. */
enum ph_collective {
    PH_COLLECTIVE_EXCHANGE,
    PH_COLLECTIVE_HIERARCHICAL,
    PH_COLLECTIVE_RING,
    PH_COLLECTIVE_AUTO
};

struct ph_comm_options {
    size_t size; /* sizeof the struct: phloem/options.h */
    /* NULL or "auto": chosen by the launcher's environment variables; "self": one rank, whatever the
     * launcher; "openmpi", "mpich": that library, whose plugin is loaded on demand. */
    const char *transport;
    double timeout_seconds; /* longest wait for another rank; 0: 300 */
    size_t ranks_per_host; /* 0: ranks are on the hosts that they run on; otherwise rank r counts as on host r
                              / ranks_per_host */
    bool has_failed; /* this rank failed before it could set the other options: it joins only to end the job
                        by ph_comm_fail */
    /* Name of this rank's work, such as "phloem train": ranks whose tasks differ in the first 47 bytes are
     * refused with PH_ERROR_CONFIG. NULL: "". Borrowed for the call. */
    const char *task;
};

/* Meets the other ranks: all ranks of the job must call it, with equal options. PH_ERROR_USAGE: there is no
 * such transport, its plugin or library is not installed, or a launcher has started several ranks in a way
 * that is not supported; PH_ERROR_CONFIG: the ranks' options differ, or the world is not a multiple of
 * ranks_per_host; PH_ERROR_PEER: a rank did not come; PH_ERROR_MEMORY. After an error *comm_out is NULL or,
 * where ranks have met, a communicator that has failed: for ph_comm_speaks, and to be destroyed. */
PH_MUST_CHECK ph_status ph_comm_create(const struct ph_comm_options *options, struct ph_comm **comm_out);
/* Ends the job in good order: returns when all ranks have called it; then destroy the communicator. A failure
 * of a rank before that still reaches all: PH_ERROR_PEER, or the status that another rank failed with. */
PH_MUST_CHECK ph_status ph_comm_leave(struct ph_comm *comm);
/* Destroys the communicator; NULL is fine. Unless it has failed, all ranks must call it. Leaves the job if
 * ph_comm_leave was not called, and drops the outcome. The last error stays as it was. */
void ph_comm_destroy(struct ph_comm *comm);

size_t ph_comm_rank(const struct ph_comm *comm);           /* from 0 */
size_t ph_comm_world_size(const struct ph_comm *comm);     /* ranks, at least 1 */
size_t ph_comm_num_hosts(const struct ph_comm *comm);      /* at least 1 */
size_t ph_comm_ranks_per_host(const struct ph_comm *comm); /* 0: numbers differ by host */
const char *ph_comm_describe(const struct ph_comm *comm);  /* "Open MPI 4.1.4, rank 2 of 8, host 1 of 2" */

/* Ends this rank with `status` and the text of the last error: all others are told, and their waits end with
 * the same status. Returns the status that the job ends with, recorded as the last error: of several failures
 * the first one that reached all ranks. */
ph_status ph_comm_fail(struct ph_comm *comm, ph_status status);
/* Returns true on the one rank that is to report an error. With NULL, where ranks have not met: on the first
 * rank of each host, by the launcher's environment variables, and on a rank that was started alone. */
bool ph_comm_speaks(const struct ph_comm *comm);

/* Formats of numbers on their way between ranks: unchanged, 16 bits each, or a byte each and a scale a
 * row. */
enum ph_wire_format { PH_WIRE_FP32, PH_WIRE_FP16, PH_WIRE_BF16, PH_WIRE_INT8, PH_WIRE_COUNT };

/* Sums numbers over all ranks in the communicator's place: a parameter hub, say. Numbers travel in *buckets*,
 * each of which is summed once a step. All ranks make the same calls, those of start and wait in the same
 * order, from the thread that trains. A status other than PH_OK ends the training with it, before the step
 * updates anything. */
struct ph_reducer {
    void *context;
    /* Called once, before all else: bucket i has sizes[i] numbers of dtype. sizes (num_buckets) is borrowed
     * for the call. */
    ph_status (*open)(void *context, size_t num_buckets, const size_t *sizes, enum ph_dtype dtype);
    /* Returns the memory for this rank's numbers of a bucket, to be written before the bucket is started. */
    void *(*numbers)(void *context, size_t bucket);
    ph_status (*start)(void *context, size_t bucket);
    /* Returns when the sums are ready: ((x0 + x1) + x2) ... in the order of the ranks, added in FP32 and
     * rounded to dtype. They stay valid until the bucket is started again. */
    ph_status (*wait)(void *context, size_t bucket, const void **sums_out);
};

#ifdef __cplusplus
}
#endif
#endif
