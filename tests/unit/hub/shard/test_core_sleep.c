/* A core thread that sleeps whenever it can is woken by whoever has something for it: by calls, by other core
 * threads, by the doorbell of a link over shared memory, and by bytes of a connection, however small the
 * pieces that they come and go in. The system's limit to its sleep would hide a ring that was lost, or an
 * edge that was forgotten: here a sleep has no end. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "net/link/shared_link.h"
#include "net/link/socket.h"
#include "net/link/tcp_link.h"
#include "net/waiter.h"
#include "support/core_job.h"
#include "support/test_support.h"

enum { NUM_WORKERS = 2, CONNECT_MS = 5000, PATIENCE_S = 100 };

/* Put before the C library's; nothing else here sleeps so. */
int epoll_wait(int epoll, struct epoll_event *events, int max_events, int timeout_ms)
{
    (void)timeout_ms;
    return (int)syscall(SYS_epoll_pwait, epoll, events, max_events, -1, NULL, 0);
}

static struct ph__core *core;

static void start_core(void)
{
    const struct ph__core_options options = {.wait = PH_WAIT_SLEEP,
        .max_shards = 1,
        .max_links = NUM_WORKERS,
        .processor = -1,
        .others = &core,
        .num_others = 1};
    assert_ok(ph__core_create(&options, &core));
}

static uint64_t num_sleeps(void)
{
    return ph__core_counters(core).sleeps;
}

static void await_sleep(uint64_t number)
{
    while (num_sleeps() < number)
        sched_yield();
}

/* ---- rings ---- */

static void do_nothing(void *context)
{
    (void)context;
}

static void calls_and_other_threads_wake_it(void **state)
{
    (void)state;
    start_core();
    for (int i = 0; i < 500; i++) {
        const uint64_t sleeps = num_sleeps();
        await_sleep(1);
        if (i % 2 == 0)
            ph__core_call(core, do_nothing, NULL);
        else
            ph__core_wake(core);
        await_sleep(sleeps + 1);
    }
    ph__core_destroy(core);
}

/* ---- doorbells ---- */

struct shared_worker {
    struct ph__link *link;
    uint64_t num_values; /* that have come */
};

static ph_status place_nothing(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    (void)context;
    (void)message;
    (void)payload_bytes;
    *memory_out = NULL;
    return PH_OK;
}

static ph_status count_value(void *context, const struct ph__message *message)
{
    struct shared_worker *worker = context;
    assert_int_equal(message->kind, PH_HUB_VALUE);
    worker->num_values++;
    return PH_OK;
}

/* Over the rings of the worker's memory on the hub. */
static void link_shared(struct core_job *job, struct shared_worker *worker, size_t capacity)
{
    int ends[2];
    struct ph__link *link;
    assert_ok(ph__doorbell_create(ends));
    struct ph__shared_link_options options = {.memory = job->memory->workers[0].region.memory,
        .capacity = capacity,
        .is_hub = true,
        .doorbell = ends[0],
        .owner = ph__shard_link_owner(job->shard, 0)};
    assert_ok(ph__shared_link_create(&options, &link));
    ph__shard_attach(job->shard, 0, link, false);
    options.is_hub = false;
    options.doorbell = ends[1];
    options.owner =
        (struct ph__link_owner){.context = worker, .place = place_nothing, .arrived = count_value};
    assert_ok(ph__shared_link_create(&options, &worker->link));
}

static void a_doorbell_wakes_it(void **state)
{
    (void)state;
    struct core_job job;
    struct shared_worker worker = {0};
    size_t moved;
    start_core();
    core_job_init(&job, 4096, 16, 1, false);
    link_shared(&job, &worker, CORE_JOB_RING_CAPACITY);
    core_job_start(&job, core);
    for (uint64_t iteration = 1; iteration <= 500; iteration++) {
        const struct ph__message push = {.kind = PH_HUB_PUSHPULL, .iteration = iteration};
        await_sleep(iteration); /* at least one for each that came before */
        assert_ok(ph__link_send(worker.link, &push, NULL, 0));
        while (worker.num_values < iteration) {
            assert_ok(ph__link_progress(worker.link, 1, &moved));
            sched_yield();
        }
    }
    assert_true(worker.link->counters.doorbells > 0);
    ph__core_destroy(core);
    ph__link_destroy(worker.link);
    assert_int_equal(job.num_failures, 0);
    core_job_fini(&job);
}

/* ---- connections ---- */

enum {
    CHUNK_BYTES = 4096,
    NUM_CHUNKS = 40,
    NUM_ITERATIONS = 60,
    LAST_ELEMENTS = 5, /* of the last chunk */
    CHUNK_ELEMENTS = CHUNK_BYTES / sizeof(float),
    NUM_ELEMENTS = (NUM_CHUNKS - 1) * CHUNK_ELEMENTS + LAST_ELEMENTS,
    FRAME_BYTES = PH_TCP_FRAME_BYTES + CHUNK_BYTES,
    SMALL_BUFFER =
        4096 /* of the hub's sockets: an iteration's replies have to wait for whoever receives them */
};

struct tcp_worker {
    uint32_t rank;
    int socket;
    struct ph__rng_sequence random;
    pthread_t thread;
    unsigned char bytes[NUM_CHUNKS * FRAME_BYTES];
    const char *fault; /* NULL: none */
};

static size_t elements_of(uint32_t chunk)
{
    return chunk < NUM_CHUNKS - 1 ? CHUNK_ELEMENTS : LAST_ELEMENTS;
}

/* Whole numbers, so that the sum of two is exact. */
static float gradient(uint32_t rank, uint32_t chunk, uint64_t iteration, size_t element)
{
    return (float)((rank + 1) * (iteration % 64) + 100 * chunk + element % 50);
}

static void pause_sometimes(struct tcp_worker *worker)
{
    const uint64_t drawn = ph__rng_below(&worker->random, 64);
    if (drawn < 2)
        nanosleep(&(struct timespec){.tv_nsec = (long)ph__rng_below(&worker->random, 100000)}, NULL);
    else if (drawn < 16)
        sched_yield();
}

/* Mostly a few bytes, at times many. */
static size_t draw_piece(struct tcp_worker *worker, size_t left)
{
    static const size_t sizes[] = {8, 40, 300, 5000};
    const size_t piece = 1 + ph__rng_below(&worker->random, sizes[ph__rng_below(&worker->random, 4)]);
    return piece < left ? piece : left;
}

/* Moves all bytes in pieces. false: the connection has ended, or nothing moves. */
static bool move_bytes(struct tcp_worker *worker, unsigned char *bytes, size_t size, bool is_sent)
{
    for (size_t at = 0; at < size;) {
        const size_t piece = draw_piece(worker, size - at);
        const ssize_t moved = is_sent ? send(worker->socket, bytes + at, piece, MSG_NOSIGNAL)
                                      : recv(worker->socket, bytes + at, piece, 0);
        if (moved <= 0)
            return false;
        at += (size_t)moved;
        pause_sometimes(worker);
    }
    return true;
}

static size_t write_pushes(struct tcp_worker *worker, uint64_t iteration)
{
    size_t used = 0;
    for (uint32_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
        const struct ph__message push = {.kind = PH_HUB_PUSHPULL, .chunk = chunk, .iteration = iteration};
        const size_t payload_bytes = elements_of(chunk) * sizeof(float);
        ph__tcp_frame_encode(&push, (uint32_t)payload_bytes, worker->bytes + used);
        used += PH_TCP_FRAME_BYTES;
        for (size_t i = 0; i < elements_of(chunk); i++, used += sizeof(float)) {
            const float number = gradient(worker->rank, chunk, iteration, i);
            memcpy(worker->bytes + used, &number, sizeof number);
        }
    }
    return used;
}

static const char *check_value(const struct ph__message *value, uint32_t payload_bytes, const float *sums,
    uint64_t iteration, bool *has_come)
{
    if (value->kind != PH_HUB_VALUE || value->iteration != iteration || value->chunk >= NUM_CHUNKS)
        return "not the reply to this push";
    if (payload_bytes != elements_of(value->chunk) * sizeof(float) || value->count != NUM_WORKERS)
        return "not the whole sum";
    if (has_come[value->chunk])
        return "a second reply";
    has_come[value->chunk] = true;
    for (size_t i = 0; i < elements_of(value->chunk); i++) {
        const float wanted =
            gradient(0, value->chunk, iteration, i) + gradient(1, value->chunk, iteration, i);
        if (sums[i] != wanted)
            return "a wrong sum";
    }
    return NULL;
}

static const char *read_values(struct tcp_worker *worker, uint64_t iteration)
{
    bool has_come[NUM_CHUNKS] = {false};
    const char *fault = NULL;
    for (size_t i = 0; i < NUM_CHUNKS && fault == NULL; i++) {
        struct ph__message value;
        uint32_t payload_bytes;
        unsigned char head[PH_TCP_FRAME_BYTES];
        float sums[CHUNK_ELEMENTS];
        if (!move_bytes(worker, head, sizeof head, false))
            return "no reply";
        if (ph__tcp_frame_decode(head, &value, &payload_bytes) != PH_OK || payload_bytes > sizeof sums)
            return "no frame";
        if (!move_bytes(worker, (unsigned char *)sums, payload_bytes, false))
            return "half a reply";
        fault = check_value(&value, payload_bytes, sums, iteration, has_come);
    }
    return fault;
}

static void *work(void *context)
{
    struct tcp_worker *worker = context;
    for (uint64_t iteration = 1; iteration <= NUM_ITERATIONS && worker->fault == NULL; iteration++) {
        if (!move_bytes(worker, worker->bytes, write_pushes(worker, iteration), true))
            worker->fault = "the hub does not take what is pushed";
        else
            worker->fault = read_values(worker, iteration);
    }
    return NULL;
}

/* The worker's end blocks, for so long. */
static void limit_waits(int socket)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    assert_int_equal(fcntl(socket, F_SETFL, 0), 0);
    assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
}

static void link_tcp(struct core_job *job, struct tcp_worker *worker, int listening, const char *address)
{
    int accepted;
    const int small = SMALL_BUFFER;
    struct ph__link *link;
    assert_ok(ph__socket_connect(address, CONNECT_MS, &worker->socket));
    do
        assert_ok(ph__socket_accept(listening, &accepted));
    while (accepted < 0);
    assert_int_equal(setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    limit_waits(worker->socket);
    const struct ph__tcp_link_options options = {.socket = accepted,
        .capacity = 4 * CORE_JOB_RING_CAPACITY,
        .owner = ph__shard_link_owner(job->shard, worker->rank)};
    assert_ok(ph__tcp_link_create(&options, &link));
    ph__shard_attach(job->shard, worker->rank, link, true);
}

static void nothing_is_forgotten_that_comes_or_goes_in_pieces(void **state)
{
    (void)state;
    static struct tcp_worker workers[NUM_WORKERS];
    struct core_job job;
    int listening;
    char address[PH_ADDRESS_BYTES];
    start_core();
    core_job_init(&job, CHUNK_BYTES, NUM_ELEMENTS, NUM_WORKERS, true);
    assert_ok(ph__socket_listen("127.0.0.1:0", &listening));
    assert_ok(ph__socket_address(listening, address));
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++) {
        workers[rank] = (struct tcp_worker){.rank = rank, .random.key.seed = test_seed() + rank};
        link_tcp(&job, &workers[rank], listening, address);
    }
    core_job_start(&job, core);
    const uint64_t sleeps = num_sleeps();
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        assert_int_equal(pthread_create(&workers[rank].thread, NULL, work, &workers[rank]), 0);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        pthread_join(workers[rank].thread, NULL);
    assert_int_equal(job.num_failures, 0);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++) {
        assert_string_equal(workers[rank].fault != NULL ? workers[rank].fault : "", "");
        close(workers[rank].socket);
    }
    assert_true(num_sleeps() > sleeps + NUM_ITERATIONS);
    ph__core_destroy(core);
    core_job_fini(&job);
    close(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_other_threads_wake_it),
        cmocka_unit_test(a_doorbell_wakes_it),
        cmocka_unit_test(nothing_is_forgotten_that_comes_or_goes_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
