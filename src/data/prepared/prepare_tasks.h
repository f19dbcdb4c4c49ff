/* Tasks that several threads take one after the other, in their order. The outcome does not depend on the
 * threads: the error is that of the failed task with the lowest number, since every task before it is
 * finished. */
#ifndef PH_DATA_PREPARE_TASKS_H
#define PH_DATA_PREPARE_TASKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/data.h"

/* Progress of all tasks together. */
struct ph__tasks_progress {
    uint64_t num_rows, num_bytes;
    uint64_t total_bytes; /* 0: unknown */
};

struct ph__tasks {
    /* Runs a task on the thread numbered worker < num_threads; calls ph__tasks_advance now and then. */
    ph_status (*run)(void *argument, size_t task, size_t worker);
    void *argument;
    size_t num_tasks;
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM */
    /* NULL, or called at each change, by any of the threads, one at a time */
    void (*on_progress)(void *context, const struct ph__tasks_progress *progress);
    void *progress_context;
    struct ph__tasks_progress progress; /* guarded by lock; the caller sets total_bytes */
    /* internal */
    pthread_mutex_t lock;
    size_t next;      /* next task to take; guarded by lock */
    size_t failed;    /* first task that failed, SIZE_MAX: none; guarded by lock */
    ph_status status; /* of the failed task; guarded by lock */
    char error[1024]; /* of the failed task; guarded by lock */
};

/* Runs the tasks on num_threads new threads, at least 1. PH_ERROR_INTERRUPTED or PH_ERROR_TERMINATED when a
 * signal has stopped them. */
ph_status ph__tasks_run(struct ph__tasks *tasks, size_t num_threads);

/* Adds rows and bytes that a task has done since its last call. Returns false when the task should end early,
 * because of a signal or because an earlier task has failed. Any thread. */
bool ph__tasks_advance(struct ph__tasks *tasks, size_t task, uint64_t num_rows, uint64_t num_bytes);

/* Subtracts bytes that were done in an earlier run from the total. */
void ph__tasks_skip(struct ph__tasks *tasks, uint64_t num_bytes);

/* A pass of a preparation, whose progress options->on_progress reports. */
struct ph__prepare_pass {
    const struct ph_prepare_options *options; /* borrowed */
    bool is_learning;
    uint64_t start_ns, told_ns;
};

struct ph__prepare_pass ph__prepare_pass_begin(const struct ph_prepare_options *options, bool is_learning);

/* Reports the progress of the pass when options->progress_seconds have gone by: struct ph__tasks'
 * on_progress, with a struct ph__prepare_pass as context. */
void ph__prepare_pass_tell(void *context, const struct ph__tasks_progress *progress);

#endif
