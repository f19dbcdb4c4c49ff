/* Times of operators on one machine: measured when they are first asked for, or read from a file, which may
 * be another machine's.
 *
 * Calls of one operator with the same types and like sizes are one entry. Fixed dimensions are the same;
 * dimensions that batches decide are the same to the next power of two, and the time of an entry is scaled by
 * the operator's cost rule within it. So a second run finds the times that the first one used.
 *
 * The file:
 *
 *     {"version": 1, "label": "published: NAME's data sheet",        what the times are; may be left out
 *      "machine": "node7", "isa": "avx512", "threads": 4,            where they were measured
 *      "rates": {"flops_per_s": 3e13, "bytes_per_s": 2e12, "overhead_us": 5},
 *      "operators": {"linear 0:0[2^5,13] ...": [nanoseconds, work]}}
 *
 * With rates, an operator without an entry takes max(flops / flops_per_s, bytes / bytes_per_s) + overhead by
 * its cost rule, and nothing is measured: the file may be any machine's. Without them it must be this
 * machine's, unless may_measure is false. */
#ifndef PH_SIM_OP_TIMES_H
#define PH_SIM_OP_TIMES_H

#include "graph/graph.h"

struct ph__op_times;

struct ph__op_times_options {
    const char *path;                 /* of the file; it need not exist where may_measure; NULL: none */
    const struct ph_backend *backend; /* what measures; borrowed */
    bool may_measure;                 /* else an operator without an entry, or rates, is an error */
};

/* Reads the file. PH_ERROR_CONFIG: it is no such file; or it is to be measured into, and is of another
 * machine, instruction set or number of threads than the backend. PH_ERROR_MEMORY. */
ph_status ph__op_times_open(const struct ph__op_times_options *options, struct ph__op_times **times_out);
void ph__op_times_close(struct ph__op_times *times);

/* Undoes what a run of a call that is measured has begun. */
typedef ph_status ph__op_settle(const struct ph__call *call);

/* Gives the nanoseconds of a call whose output shapes are known; measures them where that is needed, with
 * numbers of its own in place of absent ones (base/memory/absent.h). PH_ERROR_CONFIG: the file has no time
 * for it. PH_ERROR_MEMORY; errors of the operator. */
ph_status ph__op_times_find(
    struct ph__op_times *times, const struct ph__call *call, ph__op_settle *settle, double *ns_out);

/* Other work. Before it runs, each of `numbers` that is not NULL is made to point to as many bytes. */
struct ph__op_work {
    void (*run)(void *context);
    void *context;
    void **numbers[2];
    size_t bytes[2];
    double amount; /* by which the time grows */
};
/* Gives the nanoseconds of work of that name, as for calls. */
ph_status ph__op_times_find_work(
    struct ph__op_times *times, const char *name, const struct ph__op_work *work, double *ns_out);

/* Writes the file again if anything was measured. PH_ERROR_DISK. */
ph_status ph__op_times_save(struct ph__op_times *times);

/* Counts the entries that were measured since the file was read. */
size_t ph__op_times_num_measured(const struct ph__op_times *times);

/* Returns the file's label; NULL: it has none. Borrowed. */
const char *ph__op_times_label(const struct ph__op_times *times);

/* PH_ERROR_CONFIG, naming it, when a time was asked for that the file does not have. */
ph_status ph__op_times_missing(const struct ph__op_times *times);

/* Gives the place of this machine's own profile, and makes its folder: $XDG_CACHE_HOME/phloem
 * (~/.cache/phloem without it). The file's name has the host, the processor, the instruction set and the
 * number of threads. In the arena. PH_ERROR_USAGE: neither XDG_CACHE_HOME nor HOME is set; PH_ERROR_DISK,
 * PH_ERROR_MEMORY. */
ph_status ph__op_times_place(
    const struct ph_backend *backend, struct ph__arena *arena, const char **path_out);

/* ---- op_measure.c ---- */

struct ph__op_scratch { /* zero-initialised: none; numbers for the operands of calls that are measured */
    unsigned char *begin;
    size_t size, used;
};
void ph__op_scratch_fini(struct ph__op_scratch *scratch);

/* Measure a call, or work: the median of some runs behind two that warm up, in nanoseconds. */
ph_status ph__op_measure(struct ph__op_scratch *scratch, const struct ph_backend *backend,
    const struct ph__call *call, ph__op_settle *settle, double *ns_out);
ph_status ph__op_measure_work(struct ph__op_scratch *scratch, const struct ph__op_work *work, double *ns_out);

#endif
