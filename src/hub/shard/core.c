/* Runs a core thread; see core.h. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel.h"
#include "hub/layout/placement.h"
#include "hub/shard/core.h"
#include "net/waiter.h"

#define LONGEST_SLEEP_MS 100 /* limit in case a ring of the bell is lost */
#define EVENTS_A_SLEEP 64

struct share {
    struct ph__shard *shard;
    int64_t credit; /* bytes left in this round; below 0: it has taken more than its share */
};

struct call {
    ph__core_function function;
    void *context;
    bool is_done;
};

struct ph__core {
    struct ph__core_options options;
    pthread_t thread;
    int bell[2]; /* the thread watches [0]; others ring [1] */
    int epoll;   /* watches the bell and all links */
    struct share *shares;
    size_t num_shares;
    size_t num_links;
    struct ph__waiter waiter;
    _Atomic bool is_asleep, must_stop;
    _Atomic(struct call *) call;
    pthread_mutex_t mutex; /* guards call.is_done */
    pthread_cond_t done;
    _Atomic uint64_t rounds, idle_rounds, sleeps; /* written by the thread alone */
};

static void increment(_Atomic uint64_t *counter)
{
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* ---- the thread ---- */

static void answer_call(struct ph__core *core)
{
    struct call *call = atomic_load_explicit(&core->call, memory_order_acquire);
    if (call == NULL)
        return;
    call->function(call->context);
    pthread_mutex_lock(&core->mutex);
    atomic_store_explicit(&core->call, NULL, memory_order_relaxed);
    call->is_done = true;
    pthread_cond_signal(&core->done);
    pthread_mutex_unlock(&core->mutex);
}

/* Runs a shard up to its credit. Returns what ph__shard_run does. */
static size_t run_share(struct share *share)
{
    const uint64_t updates = ph__shard_counters(share->shard)->updates;
    size_t bytes = 0;
    const size_t num_done = ph__shard_run(share->shard, (size_t)share->credit, &bytes);
    const uint64_t num_updates = ph__shard_counters(share->shard)->updates - updates;
    share->credit -= (int64_t)ph__max(bytes, (size_t)num_updates * PH_CORE_LEAST_UPDATE_BYTES);
    if (share->credit > 0 && (int64_t)bytes < PH_CORE_BYTES_A_ROUND)
        share->credit = 0; /* unused credit is not saved */
    return num_done;
}

/* Gives each shard its turn. Skips a shard without credit: its messages alone would take time. */
static size_t run_shares(struct ph__core *core)
{
    size_t num_done = 0;
    for (size_t i = 0; i < core->num_shares; i++) {
        struct share *share = &core->shares[i];
        share->credit += PH_CORE_BYTES_A_ROUND;
        num_done += share->credit > 0 ? run_share(share) : 1;
    }
    return num_done;
}

static bool begin_sleep(struct ph__core *core)
{
    atomic_store(&core->is_asleep,
        true); /* sequentially consistent, as in ph__core_wake: not both can miss the other */
    bool may_sleep = atomic_load(&core->call) == NULL && !atomic_load(&core->must_stop);
    for (size_t i = 0; i < core->num_shares; i++)
        may_sleep &= ph__shard_begin_sleep(core->shares[i].shard);
    return may_sleep;
}

static void end_sleep(struct ph__core *core)
{
    for (size_t i = 0; i < core->num_shares; i++)
        ph__shard_end_sleep(core->shares[i].shard);
    atomic_store_explicit(&core->is_asleep, false, memory_order_relaxed);
    ph__doorbell_answer(core->bell[0]);
}

static void sleep_until_rung(struct ph__core *core)
{
    struct epoll_event events[EVENTS_A_SLEEP]; /* ignored: the next round looks at all links */
    if (begin_sleep(core)) {
        increment(&core->sleeps);
        epoll_wait(core->epoll, events, EVENTS_A_SLEEP, LONGEST_SLEEP_MS);
    }
    end_sleep(core);
}

static void *run(void *context)
{
    struct ph__core *core = context;
    fenv_t former;
    ph__cpu_float_enter(true, &former);
    if (core->options.processor >= 0)
        (void)!ph__placement_pin_self((uint32_t)core->options.processor); /* runs elsewhere if it fails */
    while (!atomic_load_explicit(&core->must_stop, memory_order_acquire)) {
        answer_call(core);
        increment(&core->rounds);
        if (run_shares(core) > 0) {
            ph__waiter_reset(&core->waiter);
            continue;
        }
        increment(&core->idle_rounds);
        /* Sleeps at once without a job. */
        if (core->num_shares == 0 || ph__waiter_should_sleep(&core->waiter))
            sleep_until_rung(core);
    }
    ph__cpu_float_leave(&former);
    return NULL;
}

/* ---- calls from other threads ---- */

void ph__core_wake(struct ph__core *core)
{
    if (atomic_load(&core->is_asleep))
        ph__doorbell_ring(core->bell[1]);
}

void ph__core_wake_others(struct ph__core *core)
{
    for (size_t i = 0; i < core->options.num_others; i++) {
        if (core->options.others[i] != core)
            ph__core_wake(core->options.others[i]);
    }
}

void ph__core_call(struct ph__core *core, ph__core_function function, void *context)
{
    struct call call = {.function = function, .context = context};
    atomic_store(&core->call, &call);
    ph__core_wake(core);
    pthread_mutex_lock(&core->mutex);
    while (!call.is_done)
        pthread_cond_wait(&core->done, &core->mutex);
    pthread_mutex_unlock(&core->mutex);
}

const char *ph__core_too_many(const struct ph__core *core, size_t num_workers)
{
    if (core->num_shares == core->options.max_shards)
        return "jobs";
    return core->num_links + num_workers > core->options.max_links ? "links to workers" : NULL;
}

ph_status ph__core_add_shard(struct ph__core *core, struct ph__shard *shard)
{
    assert(ph__core_too_many(core, ph__shard_num_workers(shard)) == NULL);
    PH_TRY(ph__shard_watch_links(shard, core->epoll));
    core->shares[core->num_shares++] = (struct share){.shard = shard};
    core->num_links += ph__shard_num_workers(shard);
    return PH_OK;
}

void ph__core_remove_shard(struct ph__core *core, struct ph__shard *shard)
{
    size_t kept = 0;
    core->num_links -= ph__shard_num_workers(shard);
    for (size_t i = 0; i < core->num_shares; i++) {
        if (core->shares[i].shard != shard)
            core->shares[kept++] = core->shares[i];
    }
    core->num_shares = kept;
}

void ph__core_set_crowded(struct ph__core *core, bool is_crowded)
{
    core->waiter.is_crowded = is_crowded;
}

struct ph__core_counters ph__core_counters(const struct ph__core *core)
{
    return (struct ph__core_counters){
        .rounds = atomic_load_explicit(&core->rounds, memory_order_relaxed),
        .idle_rounds = atomic_load_explicit(&core->idle_rounds, memory_order_relaxed),
        .sleeps = atomic_load_explicit(&core->sleeps, memory_order_relaxed),
    };
}

static ph_status watch_bell(struct ph__core *core)
{
    struct epoll_event event = {.events = EPOLLIN};
    core->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (core->epoll < 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot create a core thread's epoll: %s", strerror(errno));
    if (epoll_ctl(core->epoll, EPOLL_CTL_ADD, core->bell[0], &event) == 0)
        return PH_OK;
    close(core->epoll);
    return ph_fail(PH_ERROR_MEMORY, "a core thread's bell cannot be watched: %s", strerror(errno));
}

ph_status ph__core_create(const struct ph__core_options *options, struct ph__core **core_out)
{
    struct ph__core *core = calloc(1, sizeof *core);
    if (core == NULL)
        return ph__out_of_memory("a core thread");
    core->options = *options;
    core->shares = calloc(options->max_shards, sizeof *core->shares);
    ph__waiter_init(&core->waiter, options->wait, options->is_crowded);
    ph_status status =
        core->shares == NULL ? ph__out_of_memory("a core thread") : ph__doorbell_create(core->bell);
    if (status != PH_OK)
        goto free_core;
    status = watch_bell(core);
    if (status != PH_OK)
        goto close_bell;
    pthread_mutex_init(&core->mutex, NULL);
    pthread_cond_init(&core->done, NULL);
    const int error = ph__thread_start(&core->thread, run, core);
    if (error != 0) {
        status = ph_fail(PH_ERROR_MEMORY, "cannot start a core thread: %s", strerror(error));
        goto fini_mutex;
    }
    *core_out = core;
    return PH_OK;
fini_mutex:
    pthread_cond_destroy(&core->done);
    pthread_mutex_destroy(&core->mutex);
    close(core->epoll);
close_bell:
    close(core->bell[0]);
    close(core->bell[1]);
free_core:
    free(core->shares);
    free(core);
    return status;
}

void ph__core_destroy(struct ph__core *core)
{
    if (core == NULL)
        return;
    atomic_store(&core->must_stop, true);
    ph__doorbell_ring(core->bell[1]);
    pthread_join(core->thread, NULL);
    pthread_cond_destroy(&core->done);
    pthread_mutex_destroy(&core->mutex);
    close(core->epoll);
    close(core->bell[0]);
    close(core->bell[1]);
    free(core->shares);
    free(core);
}
