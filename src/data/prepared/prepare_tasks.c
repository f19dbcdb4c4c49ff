#include "data/prepared/prepare_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"

struct worker {
    struct ph__tasks *tasks;
    size_t number;
    pthread_t thread;
};

/* Reports the progress; the caller holds the lock. */
static void tell(const struct ph__tasks *tasks)
{
    if (tasks->on_progress != NULL)
        tasks->on_progress(tasks->progress_context, &tasks->progress);
}

bool ph__tasks_advance(struct ph__tasks *tasks, size_t task, uint64_t num_rows, uint64_t num_bytes)
{
    pthread_mutex_lock(&tasks->lock);
    tasks->progress.num_rows += num_rows;
    tasks->progress.num_bytes += num_bytes;
    tell(tasks);
    bool must_stop = tasks->failed < task;
    pthread_mutex_unlock(&tasks->lock);
    return !must_stop && !ph__is_stopped(tasks->stop_signal);
}

void ph__tasks_skip(struct ph__tasks *tasks, uint64_t num_bytes)
{
    pthread_mutex_lock(&tasks->lock);
    uint64_t *total = &tasks->progress.total_bytes;
    *total -= num_bytes < *total ? num_bytes : *total;
    tell(tasks);
    pthread_mutex_unlock(&tasks->lock);
}

/* Takes the next task; false when none is left, one has failed, or a signal has come. */
static bool take(struct ph__tasks *tasks, size_t *task_out)
{
    pthread_mutex_lock(&tasks->lock);
    bool is_there =
        tasks->next < tasks->num_tasks && tasks->failed == SIZE_MAX && !ph__is_stopped(tasks->stop_signal);
    if (is_there)
        *task_out = tasks->next++;
    pthread_mutex_unlock(&tasks->lock);
    return is_there;
}

static void record_failure(struct ph__tasks *tasks, size_t task, ph_status status)
{
    pthread_mutex_lock(&tasks->lock);
    if (task < tasks->failed) {
        tasks->failed = task;
        tasks->status = status;
        snprintf(tasks->error, sizeof tasks->error, "%s", ph_error_text());
    }
    pthread_mutex_unlock(&tasks->lock);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    size_t task;
    while (take(worker->tasks, &task)) {
        ph_status status = worker->tasks->run(worker->tasks->argument, task, worker->number);
        if (status != PH_OK)
            record_failure(worker->tasks, task, status);
    }
    return NULL;
}

ph_status ph__tasks_run(struct ph__tasks *tasks, size_t num_threads)
{
    struct worker *workers = calloc(num_threads, sizeof *workers);
    if (workers == NULL)
        return ph__out_of_memory("%zu threads", num_threads);
    pthread_mutex_init(&tasks->lock, NULL);
    tasks->next = 0;
    tasks->failed = SIZE_MAX;
    size_t num_started = 0;
    int error = 0;
    for (; num_started < num_threads && error == 0; num_started += error == 0) {
        workers[num_started] = (struct worker){.tasks = tasks, .number = num_started};
        error = pthread_create(&workers[num_started].thread, NULL, work, &workers[num_started]);
    }
    for (size_t i = 0; i < num_started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
    pthread_mutex_destroy(&tasks->lock);
    if (num_started == 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot start a thread: %s", strerror(error));
    if (ph__is_stopped(tasks->stop_signal))
        return ph_fail(ph__stop_status(tasks->stop_signal), "stopped by a signal");
    return tasks->failed == SIZE_MAX ? PH_OK : ph_fail(tasks->status, "%s", tasks->error);
}

/* ---- progress ---- */

struct ph__prepare_pass ph__prepare_pass_begin(const struct ph_prepare_options *options, bool is_learning)
{
    const uint64_t now_ns = ph__clock_ns();
    return (struct ph__prepare_pass){
        .options = options, .is_learning = is_learning, .start_ns = now_ns, .told_ns = now_ns};
}

void ph__prepare_pass_tell(void *context, const struct ph__tasks_progress *progress)
{
    struct ph__prepare_pass *pass = context;
    const struct ph_prepare_options *options = pass->options;
    const uint64_t now_ns = ph__clock_ns();
    if (options->on_progress == NULL || (double)(now_ns - pass->told_ns) * 1e-9 < options->progress_seconds)
        return;
    pass->told_ns = now_ns;
    const struct ph_prepare_progress told = {.is_learning = pass->is_learning,
        .num_rows = progress->num_rows,
        .num_text_bytes = progress->num_bytes,
        .total_text_bytes = progress->total_bytes,
        .seconds = (double)(now_ns - pass->start_ns) * 1e-9};
    options->on_progress(options->progress_context, &told);
}
