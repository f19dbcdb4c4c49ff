#include "support/thread_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- the simulated watch ---- */

struct watched_world {
    struct thread_world *world;
    pthread_mutex_t lock; /* of the members below */
    bool has_notice;
    struct ph__comm_notice notice;
};

static void notice_first(struct watched_world *watched, const struct ph__comm_notice *notice)
{
    pthread_mutex_lock(&watched->lock);
    if (!watched->has_notice)
        watched->notice = *notice;
    watched->has_notice = true;
    pthread_mutex_unlock(&watched->lock);
}

static bool look(void *context, struct ph__comm_notice *notice_out)
{
    struct watched_world *watched = context;
    const size_t dead = thread_world_dead(watched->world);
    if (dead != SIZE_MAX) {
        struct ph__comm_notice death = {.rank = (uint32_t)dead, .status = PH_ERROR_PEER, .has_died = true};
        snprintf(death.text, sizeof death.text, "rank %zu has died", dead);
        notice_first(watched, &death);
    }
    pthread_mutex_lock(&watched->lock);
    const bool has_notice = watched->has_notice;
    if (has_notice)
        *notice_out = watched->notice;
    pthread_mutex_unlock(&watched->lock);
    return has_notice;
}

static void tell(void *context, const struct ph__comm_notice *notice)
{
    notice_first(context, notice);
}

static void close_watch(void *context, bool is_clean)
{
    (void)context;
    (void)is_clean;
}

/* ---- ranks ---- */

struct rank_thread {
    const struct thread_ranks *ranks;
    struct watched_world *watched;
    size_t rank;
    thread_rank_run *run;
    void *context;
    struct thread_rank_end end;
    pthread_t thread;
};

static struct ph_comm_options options_of(const struct rank_thread *rank)
{
    struct ph_comm_options options =
        rank->ranks->of_rank != NULL ? rank->ranks->of_rank[rank->rank] : rank->ranks->options;
    if (options.timeout_seconds == 0)
        options.timeout_seconds = THREAD_RANKS_TIMEOUT_SECONDS;
    return options;
}

static ph_status run_met(struct rank_thread *rank, struct ph_comm *comm)
{
    const struct ph__comm_watch watch = {rank->watched, look, tell, close_watch};
    if (!rank->ranks->is_unwatched)
        ph__comm_attach_watch(comm, &watch);
    if (rank->ranks->cut_bytes > 0)
        ph__comm_set_cut(comm, rank->ranks->cut_bytes);
    thread_world_begin(rank->watched->world, rank->rank);
    return rank->run(comm, rank->context);
}

static void *be_rank(void *context)
{
    struct rank_thread *rank = context;
    const struct ph__transport transport = thread_world_transport(rank->watched->world, rank->rank);
    const struct ph_comm_options options = options_of(rank);
    struct ph_comm *comm = NULL;
    rank->end.status = ph__comm_create_on(&transport, &options, &comm);
    if (rank->end.status == PH_OK) {
        rank->end.has_met = true;
        rank->end.status = run_met(rank, comm);
    }
    if (rank->end.status != PH_OK)
        snprintf(rank->end.text, sizeof rank->end.text, "%s", ph_error_text());
    if (rank->end.status != PH_OK && comm != NULL) {
        ph_comm_fail(comm, rank->end.status);
        rank->end.speaks = ph_comm_speaks(comm);
    }
    ph_comm_destroy(comm);
    snprintf(rank->end.text_after, sizeof rank->end.text_after, "%s", ph_error_text());
    return NULL;
}

void thread_ranks_run(
    const struct thread_ranks *ranks, thread_rank_run *run, void *context, struct thread_rank_end *ends_out)
{
    const uint64_t seed = ranks->seed != 0 ? ranks->seed : test_seed();
    struct watched_world watched = {
        .world = thread_world_create(ranks->world_size, seed, ranks->faults, ranks->num_faults)};
    struct rank_thread threads[THREAD_RANKS_MOST] = {{0}};
    assert_in_range(ranks->world_size, 1, THREAD_RANKS_MOST);
    assert_int_equal(pthread_mutex_init(&watched.lock, NULL), 0);
    for (size_t r = 0; r < ranks->world_size; r++) {
        threads[r] = (struct rank_thread){
            .ranks = ranks, .watched = &watched, .rank = r, .run = run, .context = context};
        assert_int_equal(pthread_create(&threads[r].thread, NULL, be_rank, &threads[r]), 0);
    }
    for (size_t r = 0; r < ranks->world_size; r++)
        pthread_join(threads[r].thread, NULL);
    pthread_mutex_destroy(&watched.lock);
    assert_int_equal(thread_world_destroy(watched.world), 0);
    for (size_t r = 0; r < ranks->world_size; r++) {
        if (ends_out == NULL)
            assert_string_equal(threads[r].end.text, "");
        else
            ends_out[r] = threads[r].end;
    }
}
