/* Ranks: the processes that train one model together, and what they say to each other.
 *
 * A communicator is one rank's end. A rank that was started alone is a world of one ("self"), so that
 * programs need no second way. In any other world all ranks make the same calls in the same order. Used by
 * the thread that made it. */
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

struct ph_comm_options {
    size_t size; /* sizeof the struct: phloem/options.h */
    /* NULL or "auto": by what the launcher has put into the environment; "self": one rank, whoever started
     * it; "openmpi", "mpich": by that library, whose plugin is loaded when it is asked for. */
    const char *transport;
    double timeout_seconds; /* of every wait for another rank; 0: 300 */
    size_t ranks_per_host;  /* 0: ranks are on the hosts that they run on; else rank r counts as on host r /
                               ranks_per_host */
    bool has_failed;        /* before it could say what it wants: it comes to end the job by ph_comm_fail */
    /* Names this rank's work, as "phloem train": ranks whose tasks differ in the first 47 bytes are refused
     * with PH_ERROR_CONFIG. NULL: "". Borrowed for the call. */
    const char *task;
};

/* All ranks of the job must call it; what they give must be equal. Returns when they have met.
 * PH_ERROR_USAGE: there is no such transport, its plugin or library is not installed, or a launcher has
 * started several ranks and said so in no way that is known; PH_ERROR_CONFIG: the ranks' options differ, or
 * the world is no multiple of ranks_per_host; PH_ERROR_PEER: a rank did not come; PH_ERROR_MEMORY. After an
 * error *comm_out is NULL or, where ranks have met, a communicator that has failed: for ph_comm_speaks, and
 * to be destroyed. */
PH_MUST_CHECK ph_status ph_comm_create(const struct ph_comm_options *options, struct ph_comm **comm_out);
/* When all is done: returns when all ranks have called it, after which the communicator is to be destroyed.
 * What ends a rank until then is still told to all: PH_ERROR_PEER, or what another rank has failed with. */
PH_MUST_CHECK ph_status ph_comm_leave(struct ph_comm *comm);
/* NULL is fine. Of a communicator that has not failed, all ranks must call it; it leaves where that has not
 * been done, and nobody hears what it ends with. The last error stays what it was. */
void ph_comm_destroy(struct ph_comm *comm);

size_t ph_comm_rank(const struct ph_comm *comm);           /* from 0 */
size_t ph_comm_world_size(const struct ph_comm *comm);     /* ranks, at least 1 */
size_t ph_comm_num_hosts(const struct ph_comm *comm);      /* at least 1 */
size_t ph_comm_ranks_per_host(const struct ph_comm *comm); /* 0: hosts have different numbers of ranks */
const char *ph_comm_describe(const struct ph_comm *comm);  /* "Open MPI 4.1.4, rank 2 of 8, host 1 of 2" */

/* This rank ends with `status` and the text of the last error: all others are told, and whatever they wait
 * for ends with the same. Returns what the job ends with, recorded as the last error: of several failures the
 * first that all hear of. */
ph_status ph_comm_fail(struct ph_comm *comm, ph_status status);
/* After an error: whether this is the one rank that is to tell people about it. NULL, where ranks have not
 * met: the first one of each host, by what the launcher has left in the environment, and who was started
 * alone. */
bool ph_comm_speaks(const struct ph_comm *comm);

/* How numbers travel between ranks: as they are, in 16 bits, or in one byte each and a scale a row. */
enum ph_wire_format { PH_WIRE_FP32, PH_WIRE_FP16, PH_WIRE_BF16, PH_WIRE_INT8, PH_WIRE_COUNT };

/* Who sums numbers over all ranks in the communicator's place: a parameter hub, say. Numbers travel in
 * *buckets*, each of which is summed once a step. All ranks make the same calls, of start and of wait in the
 * same order; by the thread that trains. A status other than PH_OK ends the training with it, before anything
 * is learnt of the step. */
struct ph_reducer {
    void *context;
    /* Once, before all else: bucket i has sizes[i] numbers of dtype. sizes (num_buckets) is borrowed for the
     * call. */
    ph_status (*open)(void *context, size_t num_buckets, const size_t *sizes, enum ph_dtype dtype);
    /* Where this rank's numbers of a bucket are to be written before it is started. */
    void *(*numbers)(void *context, size_t bucket);
    ph_status (*start)(void *context, size_t bucket);
    /* Returns when the sums are there: ((x0 + x1) + x2) ... in the order of the ranks, added in FP32 and
     * rounded to dtype. They stay until the bucket is started again. */
    ph_status (*wait)(void *context, size_t bucket, const void **sums_out);
};

#ifdef __cplusplus
}
#endif
#endif
