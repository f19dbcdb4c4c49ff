/* Times of operators on one machine: measured when they are first asked for, or read from a file, which may
 * be another machine's.
 *
 * Calls of one operator with the same types and like sizes are one entry. Fixed dimensions are the same;
 * dimensions that batches decide are the same to the next power of two, and the time of an entry is scaled by
 * the operator's cost rule within it. So a second run finds the times that the first one used. */
#ifndef PH_SIM_OP_TIMES_H
#define PH_SIM_OP_TIMES_H

#include "graph/graph.h"

struct ph__op_times;

struct ph__op_times_options {
    const char *path;                 /* of the file; it need not exist where may_measure; NULL: none */
    const struct ph_backend *backend; /* what measures; borrowed */
    bool may_measure;                 /* else an operator without an entry is an error */
};

/* Reads the file. PH_ERROR_CONFIG: it is no such file; it is of another instruction set or another number of
 * threads than the backend. PH_ERROR_MEMORY. */
ph_status ph__op_times_open(const struct ph__op_times_options *options, struct ph__op_times **times_out);
void ph__op_times_close(struct ph__op_times *times);

/* Undoes what a run of a call that is measured has begun. */
typedef ph_status ph__op_settle(const struct ph__call *call);

/* Gives the nanoseconds of a call whose output shapes are known; measures them where that is needed, with
 * numbers of its own in place of absent ones (base/memory/absent.h). PH_ERROR_CONFIG: the file has no such
 * entry. PH_ERROR_MEMORY; errors of the operator. */
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
