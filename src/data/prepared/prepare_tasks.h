/* Tasks that a few threads take one after the other, in their order. The outcome does not depend on the
 * threads: the first task, by its number, that fails gives the error, since every task before it is finished.
 */
#ifndef PH_DATA_PREPARE_TASKS_H
#define PH_DATA_PREPARE_TASKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/data.h"

/* What all tasks have done together. */
struct ph__tasks_progress {
    uint64_t num_rows, num_bytes;
    uint64_t total_bytes; /* 0: not known */
};

struct ph__tasks {
    /* worker < num_threads is the running thread. A task says by ph__tasks_advance now and then what it has
     * done. */
    ph_status (*run)(void *argument, size_t task, size_t worker);
    void *argument;
    size_t num_tasks;
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM */
    /* NULL, or told at each change: by any of the threads, one at a time */
    void (*on_progress)(void *context, const struct ph__tasks_progress *progress);
    void *progress_context;
    struct ph__tasks_progress progress; /* its total_bytes is given; guarded by lock */
    /* its own */
    pthread_mutex_t lock;
    size_t next;      /* guarded by lock: task to be taken */
    size_t failed;    /* guarded by lock: the first that failed, SIZE_MAX: none */
    ph_status status; /* guarded by lock: of it */
    char error[1024]; /* guarded by lock: of it */
};

/* Runs the tasks on num_threads threads of its own, at least 1. PH_ERROR_INTERRUPTED or PH_ERROR_TERMINATED
 * when a signal has stopped them. */
ph_status ph__tasks_run(struct ph__tasks *tasks, size_t num_threads);

/* Tells what a task has done since it last said so. False: it should end early, since a signal has come or a
 * task before it has failed. Any thread. */
bool ph__tasks_advance(struct ph__tasks *tasks, size_t task, uint64_t num_rows, uint64_t num_bytes);

/* Takes off the total the bytes that were done before. */
void ph__tasks_skip(struct ph__tasks *tasks, uint64_t num_bytes);

/* How far a pass of a preparation is, for whoever wants to be told. */
struct ph__prepare_pass {
    const struct ph_prepare_options *options; /* borrowed */
    bool is_learning;
    uint64_t start_ns, told_ns;
};

/* Begins a pass. */
struct ph__prepare_pass ph__prepare_pass_begin(const struct ph_prepare_options *options, bool is_learning);

/* Tells how far the pass is, now and then: struct ph__tasks' on_progress; the context is a struct
 * ph__prepare_pass. */
void ph__prepare_pass_tell(void *context, const struct ph__tasks_progress *progress);

#endif
