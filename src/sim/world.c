#include "sim/world.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/parallel.h"
#include "sim/heap.h"
#include "sim/mail.h"

enum { FORGET_EVERY = 4096 };

struct world;

/* A receive of a rank that is out of its time. */
struct outside {
    void *data;
    size_t bytes;
    int tag;
};

/* Messages of one tag that a rank waits for. Most tags have none, so they are a short list. */
struct awaited {
    int tag;
    size_t count;
};

struct rank {
    struct ph__clock clock; /* first, for rank_of */
    struct world *world;
    uint32_t index;
    char host[32];
    pthread_t thread;
    sem_t turn;
    double slowness;         /* times other ranks' computations */
    double now_ns, owed_ns;  /* owed: for messages received, which the next thing that takes time pays */
    bool is_idle;            /* it waits for a message, not for its turn */
    bool is_out;             /* of its time */
    bool is_untimed;         /* what it does takes no time */
    struct outside *outside; /* (num_outside) receives that no message has filled */
    size_t num_outside, outside_capacity;
    struct ph_comm *comm;
    struct ph__chakra_rank *trace;
    bool has_news; /* a message may have become done since it was idle */
    struct awaited *awaited;
    size_t num_awaited, awaited_capacity;
};

struct world {
    const struct ph__world_options *options;
    struct ph__mail *mail;
    ph__world_rank *run;
    void *context;
    struct rank *ranks;
    struct ph__heap_items rank_keys;
    struct ph__heap ready; /* ranks that wait for their turn, by their clocks */
    size_t num_running;    /* ranks that have not ended */
    sem_t is_over;
    bool is_stuck;
    int processor;
    uint64_t num_steps;
    ph_status status; /* of the first rank, or the world, that failed, with its text */
    char error[1024];
};

static _Thread_local struct rank *self;

/* ---- time ---- */

static void pay(struct rank *rank)
{
    rank->now_ns += rank->owed_ns;
    rank->owed_ns = 0;
}

static uint64_t now_ns(const struct ph__clock *clock)
{
    const struct rank *rank = (const struct rank *)(const void *)clock;
    return (uint64_t)(rank->now_ns + rank->owed_ns);
}

static ph_status work(const struct ph__clock *clock, const struct ph__timed_work *work)
{
    const struct ph__world_options *options = ((const struct rank *)(const void *)clock)->world->options;
    return options->work != NULL ? options->work(options->work_context, work) : work->run(work->context);
}

void ph__world_take_time(bool takes_time)
{
    self->is_untimed = !takes_time;
}

void ph__world_compute(double ns)
{
    pay(self);
    self->now_ns += self->is_untimed ? 0 : ns * self->slowness;
}

void ph__world_compute_traced(const struct ph__chakra_work *work, double ns)
{
    pay(self);
    const double began_ns = self->now_ns;
    ph__world_compute(ns);
    ph__chakra_compute(self->trace, work, began_ns, self->now_ns);
}

struct ph__chakra_rank *ph__world_trace(void)
{
    return self->is_out ? NULL : self->trace;
}

void ph__world_step_out(bool is_out)
{
    self->is_out = is_out;
    self->num_outside = 0;
    ph__clock_replace(is_out ? NULL : &self->clock);
}

bool ph__world_is_out(void)
{
    return self->is_out;
}

struct ph_comm *ph__world_comm(void)
{
    return self->comm;
}

/* ---- turns ---- */

static void fail(struct world *world, ph_status status)
{
    if (world->status != PH_OK)
        return;
    world->status = status;
    snprintf(world->error, sizeof world->error, "%s", ph_error_text());
}

static void make_ready(struct rank *rank)
{
    rank->is_idle = false;
    ph__heap_put(&rank->world->ready, &rank->world->rank_keys, rank->index, rank->now_ns);
}

/* Ends the world, in which nothing can happen any more: all ranks get to know. */
static void get_stuck(struct world *world)
{
    world->is_stuck = true;
    for (size_t i = 0; i < world->options->world_size; i++)
        if (world->ranks[i].is_idle)
            make_ready(&world->ranks[i]);
    fail(world,
        ph_fail(PH_ERROR_BUG, "%zu simulated ranks wait for messages that none sends", world->ready.count));
}

/* Lets a rank that waits pay for a message that it has received, and go on once it awaits no other of that
 * tag: nothing else would let it go on. */
static void tell(struct world *world, const struct ph__mail_news *news)
{
    struct rank *rank = &world->ranks[news->rank];
    size_t i = 0;
    while (rank->awaited[i].tag != news->tag)
        i++;
    const bool is_paid = news->is_receive && !rank->is_untimed;
    rank->awaited[i].count--;
    if (rank->is_idle)
        rank->now_ns = fmax(rank->now_ns, news->at_ns);
    if (is_paid)
        *(rank->is_idle ? &rank->now_ns : &rank->owed_ns) +=
            world->options->fabric->messages.receive_us * 1e3;
    if (rank->awaited[i].count > 0)
        return;
    rank->awaited[i] = rank->awaited[--rank->num_awaited];
    if (rank->is_idle)
        make_ready(rank);
    else
        rank->has_news = true;
}

static void step(struct world *world, double until_ns)
{
    struct ph__mail_news news;
    const ph_status status = ph__mail_step(world->mail, until_ns, &news);
    if (status != PH_OK) {
        fail(world, status);
        get_stuck(world);
    } else if (news.is_any) {
        tell(world, &news);
    }
    if (++world->num_steps % FORGET_EVERY == 0)
        ph__mail_forget(world->mail, fmin(until_ns, ph__mail_next_ns(world->mail)));
}

/* Lets things happen until a rank's turn comes, and returns that rank; NULL: all have ended. */
static struct rank *next_rank(struct world *world)
{
    while (world->num_running > 0) {
        const double least_ns = ph__heap_least(&world->ready);
        const double event_ns = ph__mail_next_ns(world->mail);
        if (event_ns < least_ns && !world->is_stuck) {
            step(world, least_ns);
        } else if (world->ready.count == 0) {
            get_stuck(world);
        } else {
            struct rank *rank = &world->ranks[ph__heap_first(&world->ready)];
            ph__heap_take(&world->ready, &world->rank_keys, rank->index);
            return rank;
        }
    }
    return NULL;
}

/* Gives the turn to the rank that is behind all others, and returns when this rank's turn has come again. */
static void take_turns(struct rank *rank)
{
    struct rank *next = next_rank(rank->world);
    if (next == rank)
        return;
    sem_post(&next->turn);
    while (sem_wait(&rank->turn) != 0) {
        /* interrupted by a signal */
    }
}

/* Lets all that happens before this rank's time happen. */
static void catch_up(struct rank *rank)
{
    const struct world *world = rank->world;
    if (rank->now_ns <= ph__heap_least(&world->ready) && rank->now_ns <= ph__mail_next_ns(world->mail))
        return;
    make_ready(rank);
    take_turns(rank);
}

/* ---- the transport ---- */

static bool say(const struct world *world, char error[PH_TRANSPORT_ERROR_BYTES])
{
    snprintf(
        error, PH_TRANSPORT_ERROR_BYTES, "%.255s", world->status != PH_OK ? world->error : ph_error_text());
    return false;
}

static bool await(struct rank *rank, int tag)
{
    size_t i = 0;
    while (i < rank->num_awaited && rank->awaited[i].tag != tag)
        i++;
    if (i == rank->num_awaited) {
        if (ph__array_reserve(
                (void **)&rank->awaited, &rank->awaited_capacity, i + 1, sizeof *rank->awaited) != PH_OK)
            return false;
        rank->awaited[rank->num_awaited++] = (struct awaited){.tag = tag};
    }
    rank->awaited[i].count++;
    return true;
}

enum { IS_SEND, IS_RECEIVE };

/* Returns the request of a message that needs no more attention, or of a rank that is out of its time. */
static struct ph__transport_request done_request(void)
{
    return (struct ph__transport_request){(void *)(uintptr_t)PH_MAIL_DONE, IS_SEND};
}

static bool is_done_request(const struct ph__transport_request *request)
{
    return (uint32_t)(uintptr_t)request->word == PH_MAIL_DONE;
}

/* Fills the receives that are waiting with what this rank sends, where it is as long: as if all ranks were
 * like this one, which is what a measured operator should find. */
static void fill_outside(struct rank *rank, int tag, const void *data, size_t bytes)
{
    for (size_t i = 0; i < rank->num_outside; i++)
        if (rank->outside[i].tag == tag && rank->outside[i].bytes == bytes)
            ph__numbers_move(rank->outside[i].data, data, bytes);
    rank->num_outside = 0;
}

static bool receive_outside(struct rank *rank, int tag, void *data, size_t bytes)
{
    if (ph__array_reserve((void **)&rank->outside, &rank->outside_capacity, rank->num_outside + 1,
            sizeof *rank->outside) != PH_OK)
        return false;
    rank->outside[rank->num_outside++] = (struct outside){data, bytes, tag};
    return true;
}

static bool send(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct rank *rank = context;
    struct world *world = rank->world;
    uint32_t message;
    *request_out = done_request();
    if (rank->is_out) {
        fill_outside(rank, tag, data, bytes);
        return true;
    }
    pay(rank);
    rank->now_ns += rank->is_untimed ? 0 : world->options->fabric->messages.send_us * 1e3;
    const struct ph__letter letter = {
        rank->index, (uint32_t)to, tag, bytes, rank->now_ns, rank->is_untimed, false};
    if (world->is_stuck || ph__mail_send(world->mail, &letter, data, &message) != PH_OK)
        return say(world, error);
    ph__chakra_message(rank->trace, true, &letter, message);
    if (message == PH_MAIL_DONE)
        rank->has_news = true;
    else if (!await(rank, tag))
        return say(world, error);
    *request_out = (struct ph__transport_request){(void *)(uintptr_t)message, IS_SEND};
    return true;
}

static bool receive(void *context, size_t from, int tag, void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct rank *rank = context;
    struct world *world = rank->world;
    uint32_t message;
    *request_out = done_request();
    if (rank->is_out)
        return receive_outside(rank, tag, data, bytes) || say(world, error);
    pay(rank);
    const struct ph__letter letter = {(uint32_t)from, rank->index, tag, bytes, rank->now_ns, false, false};
    if (world->is_stuck || ph__mail_receive(world->mail, &letter, data, &message) != PH_OK)
        return say(world, error);
    ph__chakra_message(rank->trace, false, &letter, message);
    if (ph__mail_has_arrived(world->mail, message))
        rank->has_news = true;
    else if (!await(rank, tag))
        return say(world, error);
    *request_out = (struct ph__transport_request){(void *)(uintptr_t)message, IS_RECEIVE};
    return true;
}

static bool test(void *context, struct ph__transport_request *request, bool *is_done_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct rank *rank = context;
    struct world *world = rank->world;
    const uint32_t message = (uint32_t)(uintptr_t)request->word;
    *is_done_out = is_done_request(request);
    if (*is_done_out || rank->is_out)
        return true;
    if (world->is_stuck)
        return say(world, error);
    *is_done_out = request->spare == IS_SEND ? ph__mail_is_sent(world->mail, message)
                                             : ph__mail_is_received(world->mail, message);
    if (*is_done_out)
        ph__chakra_done(rank->trace, request->spare == IS_SEND, message, rank->now_ns);
    return true;
}

/* Catches up, unless the rank waits: then it is told, while others take their turns. */
static void look(void *context)
{
    struct rank *rank = context;
    if (!rank->is_out)
        catch_up(rank);
}

/* Waits for news, unless the rank is out of its time: all that it has started there is done. */
static void idle(void *context)
{
    struct rank *rank = context;
    if (rank->is_out)
        return;
    pay(rank);
    const bool may_wait = !rank->has_news && !rank->world->is_stuck;
    rank->has_news = false;
    if (!may_wait)
        return;
    rank->is_idle = true;
    take_turns(rank);
}

static void close_transport(void *context, bool is_clean)
{
    (void)context;
    (void)is_clean;
}

/* ---- ranks ---- */

/* Runs a rank with its communicator. One that has failed does not wait for the others to leave. */
static void run_with_comm(struct rank *rank, const struct ph__transport *transport)
{
    struct world *world = rank->world;
    struct ph_comm_options options = world->options->comm;
    options.size = sizeof options;
    options.ranks_per_host = ph__min(world->options->fabric->ranks_per_host, world->options->world_size);
    ph_status status = ph__comm_create_on(transport, &options, &rank->comm);
    if (status == PH_OK)
        status = world->run(rank->comm, world->context);
    if (status != PH_OK)
        fail(world, status);
    if (status != PH_OK && rank->comm != NULL)
        (void)ph_comm_fail(rank->comm, status);
    ph_comm_destroy(rank->comm);
}

/* Lets the calling rank run on the world's processor alone: as one rank runs at a time, turns are then passed
 * on without waking another processor. */
static void stay(const struct world *world)
{
    cpu_set_t set;
    if (world->processor < 0 || world->processor >= CPU_SETSIZE)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)world->processor, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *be_rank(void *context)
{
    struct rank *rank = context;
    struct world *world = rank->world;
    const struct ph__transport transport = {.context = rank,
        .rank = rank->index,
        .world_size = world->options->world_size,
        .name = "simulated",
        .host = rank->host,
        .send = send,
        .receive = receive,
        .test = test,
        .look = look,
        .idle = idle,
        .close = close_transport};
    while (sem_wait(&rank->turn) != 0) {
        /* interrupted by a signal */
    }
    self = rank;
    stay(world);
    ph__clock_replace(&rank->clock);
    run_with_comm(rank, &transport);
    ph__clock_replace(NULL);
    world->num_running--;
    struct rank *next = next_rank(world);
    sem_post(next != NULL ? &next->turn : &world->is_over);
    return NULL;
}

static void slow_down(struct world *world)
{
    const struct ph__record_list *list = &world->options->fabric->slow;
    const struct ph__fabric_slow *slow = list->items;
    for (size_t i = 0; i < list->count; i++)
        if ((size_t)slow[i].rank < world->options->world_size)
            world->ranks[slow[i].rank].slowness = slow[i].factor;
}

static ph_status init(struct world *world)
{
    const size_t world_size = world->options->world_size;
    world->ranks = calloc(world_size, sizeof *world->ranks);
    if (world->ranks == NULL || sem_init(&world->is_over, 0, 0) != 0)
        return ph__out_of_memory("%zu simulated ranks", world_size);
    PH_TRY(ph__mail_create(world->options->fabric, world_size, world->options->slack, &world->mail));
    PH_TRY(ph__heap_reserve(&world->ready, world_size));
    for (size_t i = 0; i < world_size; i++) {
        struct rank *rank = &world->ranks[i];
        *rank = (struct rank){.clock = {now_ns, work},
            .world = world,
            .index = (uint32_t)i,
            .slowness = 1,
            .is_untimed = world->options->is_untimed,
            .trace = ph__chakra_rank(world->options->chakra, i)};
        snprintf(rank->host, sizeof rank->host, "host%zu", i / world->options->fabric->ranks_per_host);
        sem_init(&rank->turn, 0, 0);
        PH_TRY(ph__heap_items_add(&world->rank_keys));
    }
    slow_down(world);
    return PH_OK;
}

static void free_rank(struct rank *rank)
{
    sem_destroy(&rank->turn);
    free(rank->awaited);
    free(rank->outside);
}

static void fini(struct world *world)
{
    for (size_t i = 0; world->ranks != NULL && i < world->options->world_size; i++)
        free_rank(&world->ranks[i]);
    free(world->ranks);
    ph__mail_destroy(world->mail);
    ph__heap_fini(&world->ready);
    ph__heap_items_fini(&world->rank_keys);
}

/* Starts threads that wait for their turns. Ranks whose threads cannot be started fail the world before any
 * has run. */
static void start_all(struct world *world)
{
    for (size_t i = 0; i < world->options->world_size && !world->is_stuck; i++) {
        struct rank *rank = &world->ranks[i];
        if (ph__thread_start(&rank->thread, be_rank, rank) != 0) {
            fail(world, ph_fail(PH_ERROR_MEMORY, "cannot start a thread for simulated rank %zu", i));
            world->is_stuck = true;
            break;
        }
        world->num_running++;
        make_ready(rank);
    }
}

static ph_status run_all(struct world *world, struct ph__world_figures *figures_out)
{
    world->processor = sched_getcpu();
    start_all(world);
    const size_t num_started = world->num_running;
    struct rank *first = next_rank(world);
    if (first != NULL)
        sem_post(&first->turn);
    while (first != NULL && sem_wait(&world->is_over) != 0) {
        /* interrupted by a signal */
    }
    *figures_out = (struct ph__world_figures){.num_messages = ph__mail_num_sent(world->mail)};
    for (size_t i = 0; i < num_started; i++) {
        pthread_join(world->ranks[i].thread, NULL);
        figures_out->seconds = fmax(figures_out->seconds, world->ranks[i].now_ns * 1e-9);
    }
    return world->status == PH_OK ? PH_OK : ph_fail(world->status, "%s", world->error);
}

ph_status ph__world_run(const struct ph__world_options *options, ph__world_rank *run, void *context,
    struct ph__world_figures *figures_out)
{
    struct world world = {.options = options, .run = run, .context = context};
    ph_status status = init(&world);
    if (status == PH_OK)
        status = run_all(&world, figures_out);
    fini(&world);
    return status;
}
