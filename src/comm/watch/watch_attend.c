/* A thread that attends to a watch. A lock guards the inner watch, which serves one thread at a time; the
 * thread holds it during a look, and releases it while it sleeps. */
#include "comm/watch/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/thread/parallel.h"

#define PAUSE_NS 100000000

struct attendant {
    struct ph__comm_watch inner;
    pthread_mutex_t lock; /* guards all other members */
    pthread_cond_t ending;
    bool is_over;
    pthread_t thread;
};

static void pause_or_end(struct attendant *attendant)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PAUSE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&attendant->ending, &attendant->lock, &until);
}

static void *attend(void *context)
{
    struct attendant *attendant = context;
    struct ph__comm_notice notice;
    pthread_mutex_lock(&attendant->lock);
    while (!attendant->is_over) {
        (void)attendant->inner.look(attendant->inner.context, &notice);
        pause_or_end(attendant);
    }
    pthread_mutex_unlock(&attendant->lock);
    return NULL;
}

/* ---- the table ---- */

static bool look(void *context, struct ph__comm_notice *notice_out)
{
    struct attendant *attendant = context;
    pthread_mutex_lock(&attendant->lock);
    const bool is_there = attendant->inner.look(attendant->inner.context, notice_out);
    pthread_mutex_unlock(&attendant->lock);
    return is_there;
}

static void tell(void *context, const struct ph__comm_notice *notice)
{
    struct attendant *attendant = context;
    pthread_mutex_lock(&attendant->lock);
    attendant->inner.tell(attendant->inner.context, notice);
    pthread_mutex_unlock(&attendant->lock);
}

static void destroy(struct attendant *attendant)
{
    pthread_cond_destroy(&attendant->ending);
    pthread_mutex_destroy(&attendant->lock);
    free(attendant);
}

static void close_watch(void *context, bool is_clean)
{
    struct attendant *attendant = context;
    pthread_mutex_lock(&attendant->lock);
    attendant->is_over = true;
    pthread_cond_signal(&attendant->ending);
    pthread_mutex_unlock(&attendant->lock);
    pthread_join(attendant->thread, NULL);
    attendant->inner.close(attendant->inner.context, is_clean);
    destroy(attendant);
}

/* ---- creation ---- */

static void init_ending(pthread_cond_t *ending)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(ending, &attributes);
    pthread_condattr_destroy(&attributes);
}

ph_status ph__watch_attend(struct ph__comm_watch *watch)
{
    struct attendant *attendant = calloc(1, sizeof *attendant);
    if (attendant == NULL)
        return ph__out_of_memory("a thread that attends to the watch");
    attendant->inner = *watch;
    pthread_mutex_init(&attendant->lock, NULL);
    init_ending(&attendant->ending);
    if (ph__thread_start(&attendant->thread, attend, attendant) != 0) {
        destroy(attendant);
        return ph_fail(PH_ERROR_MEMORY, "cannot start the thread that attends to the watch");
    }
    *watch = (struct ph__comm_watch){.context = attendant, .look = look, .tell = tell, .close = close_watch};
    return PH_OK;
}
