/* How a core thread deals out its time, and what is asked of it meanwhile: shards that always have work, from
 * workers that live in the core thread itself (support/core_job.h), and looks at what they have summed,
 * between two rounds. No clock. */
#include <pthread.h>
#include <string.h>

#include "base/sizes.h"
#include "support/core_job.h"
#include "support/test_support.h"

enum { MAX_JOBS = 3, MAX_LINKS = 64, NUM_ROUNDS = 200, UPDATES_A_TURN = 512 /* of one worker */ };

static const bool never;

struct hall { /* a core thread, its jobs, and what these had summed when a comparison began */
    struct ph__core *core;
    struct core_job jobs[MAX_JOBS];
    size_t num_jobs;
    uint64_t begin[MAX_JOBS];
};

static void open_hall(struct hall *hall)
{
    const struct ph__core_options options = {.wait = PH_WAIT_SPIN_THEN_SLEEP,
        .max_shards = MAX_JOBS,
        .max_links = MAX_LINKS,
        .processor = -1,
        .others = &hall->core,
        .num_others = 1};
    memset(hall, 0, sizeof *hall);
    assert_ok(ph__core_create(&options, &hall->core));
}

static void close_hall(struct hall *hall)
{
    ph__core_destroy(hall->core);
    for (size_t i = 0; i < hall->num_jobs; i++) {
        assert_int_equal(hall->jobs[i].num_failures, 0);
        core_job_fini(&hall->jobs[i]);
    }
}

/* With more to do than a round allows. */
static struct core_job *add_job(
    struct hall *hall, size_t chunk_bytes, uint32_t num_workers, const bool *is_resting)
{
    struct core_job *job = &hall->jobs[hall->num_jobs++];
    const size_t num_chunks = 3 * PH_CORE_BYTES_A_ROUND / (chunk_bytes * num_workers) + 2;
    core_job_init(job, chunk_bytes, num_chunks * chunk_bytes / sizeof(float), num_workers, false);
    core_job_attach_tireless(job, is_resting);
    return job;
}

/* ---- looks between two rounds ---- */

struct look {
    const struct hall *hall;
    uint64_t bytes[MAX_JOBS], updates[MAX_JOBS];
    uint64_t rounds;
    pthread_t thread;
};

static void look_around(void *context)
{
    struct look *look = context;
    for (size_t i = 0; i < look->hall->num_jobs; i++) {
        const struct ph__shard_counters *counters = ph__shard_counters(look->hall->jobs[i].shard);
        look->bytes[i] = counters->update_bytes;
        look->updates[i] = counters->updates;
    }
    look->rounds = ph__core_counters(look->hall->core).rounds;
    look->thread = pthread_self();
}

static struct look look_at(const struct hall *hall)
{
    struct look look = {.hall = hall};
    ph__core_call(hall->core, look_around, &look);
    return look;
}

static void begin_comparison(struct hall *hall)
{
    const struct look look = look_at(hall);
    memcpy(hall->begin, look.bytes, sizeof hall->begin);
}

/* Of all workers' gradients of one chunk, which are summed at once. */
static uint64_t chunk_bytes_of(const struct core_job *job)
{
    return (uint64_t)job->layout->chunk_bytes * job->job.service.num_workers;
}

static void check_fair(const struct hall *hall, const struct look *look, size_t a, size_t b)
{
    const uint64_t bytes_a = look->bytes[a] - hall->begin[a], bytes_b = look->bytes[b] - hall->begin[b];
    const uint64_t apart = bytes_a > bytes_b ? bytes_a - bytes_b : bytes_b - bytes_a;
    const uint64_t chunk = ph__max(chunk_bytes_of(&hall->jobs[a]), chunk_bytes_of(&hall->jobs[b]));
    if (apart > PH_CORE_BYTES_A_ROUND + chunk)
        fail_msg("job %zu has summed %llu bytes and job %zu %llu", a, (unsigned long long)bytes_a, b,
            (unsigned long long)bytes_b);
}

/* Looks again and again, for so many rounds, at the first num_jobs. */
static void compare(const struct hall *hall, size_t num_jobs)
{
    struct look look = look_at(hall);
    for (const uint64_t end = look.rounds + NUM_ROUNDS; look.rounds < end; look = look_at(hall)) {
        for (size_t i = 1; i < num_jobs; i++) {
            for (size_t j = 0; j < i; j++)
                check_fair(hall, &look, i, j);
        }
    }
    for (size_t i = 0; i < num_jobs; i++)
        assert_true(look.bytes[i] - hall->begin[i] >= (NUM_ROUNDS - 1) * PH_CORE_BYTES_A_ROUND);
}

/* ---- the tests ---- */

static void shards_share_by_bytes(void **state)
{
    (void)state;
    struct hall hall;
    open_hall(&hall);
    add_job(&hall, 4096, 1, &never);
    add_job(&hall, (size_t)1 << 20, 1, &never);
    add_job(&hall, 4096, 40, &never);
    for (size_t i = 0; i < hall.num_jobs; i++)
        core_job_start(&hall.jobs[i], hall.core);
    begin_comparison(&hall);
    compare(&hall, hall.num_jobs);
    close_hall(&hall);
}

/* They take time, too. But all of a turn are made at once. */
static void tiny_updates_count_as_larger_ones(void **state)
{
    (void)state;
    struct hall hall;
    open_hall(&hall);
    core_job_start(add_job(&hall, PH_ALIGNMENT, 1, &never), hall.core);
    core_job_start(add_job(&hall, PH_CORE_LEAST_UPDATE_BYTES, 1, &never), hall.core);
    const struct look begin = look_at(&hall);
    struct look look = begin;
    const uint64_t limit = PH_CORE_BYTES_A_ROUND / PH_CORE_LEAST_UPDATE_BYTES + UPDATES_A_TURN;
    while (look.rounds < begin.rounds + NUM_ROUNDS) {
        look = look_at(&hall);
        const uint64_t tiny = look.updates[0] - begin.updates[0];
        assert_in_range(look.updates[1] - begin.updates[1] + limit, tiny, tiny + 2 * limit);
    }
    close_hall(&hall);
}

static void turn_over(void *context)
{
    bool *is_resting = context;
    *is_resting = !*is_resting;
}

static void a_shard_without_work_saves_nothing_for_later(void **state)
{
    (void)state;
    struct hall hall;
    bool is_resting = true;
    open_hall(&hall);
    core_job_start(add_job(&hall, 4096, 1, &never), hall.core);
    core_job_start(add_job(&hall, 4096, 1, &is_resting), hall.core);
    const uint64_t end = look_at(&hall).rounds + NUM_ROUNDS;
    while (look_at(&hall).rounds < end)
        ;
    assert_int_equal(look_at(&hall).bytes[1], 0);
    ph__core_call(hall.core, turn_over, &is_resting);
    begin_comparison(&hall);
    compare(&hall, 2);
    close_hall(&hall);
}

static void shards_come_and_go_while_others_run(void **state)
{
    (void)state;
    struct hall hall;
    open_hall(&hall);
    core_job_start(add_job(&hall, 4096, 1, &never), hall.core);
    core_job_start(add_job(&hall, 65536, 1, &never), hall.core);
    for (int i = 0; i < 3; i++) {
        core_job_start(add_job(&hall, (size_t)1 << 20, 1, &never), hall.core);
        begin_comparison(&hall);
        compare(&hall, 3);
        core_job_stop(&hall.jobs[2], hall.core);
        begin_comparison(&hall);
        compare(&hall, 2);
        assert_int_equal(look_at(&hall).bytes[2], hall.begin[2]);
        core_job_fini(&hall.jobs[--hall.num_jobs]);
    }
    close_hall(&hall);
}

struct visit {
    const struct hall *hall;
    const char *too_many, *too_many_with_many, *too_many_with_too_many;
};

static void ask_for_room(void *context)
{
    struct visit *visit = context;
    visit->too_many = ph__core_too_many(visit->hall->core, 1);
    visit->too_many_with_many = ph__core_too_many(visit->hall->core, MAX_LINKS - 2);
    visit->too_many_with_too_many = ph__core_too_many(visit->hall->core, MAX_LINKS - 1);
}

static void there_is_room_for_so_many_shards_and_links(void **state)
{
    (void)state;
    struct hall hall;
    struct visit visit = {.hall = &hall};
    open_hall(&hall);
    core_job_start(add_job(&hall, 4096, 2, &never), hall.core);
    ph__core_call(hall.core, ask_for_room, &visit);
    assert_null(visit.too_many);
    assert_null(visit.too_many_with_many);
    assert_string_equal(visit.too_many_with_too_many, "links to workers");
    core_job_start(add_job(&hall, 4096, 1, &never), hall.core);
    core_job_start(add_job(&hall, 4096, 1, &never), hall.core);
    ph__core_call(hall.core, ask_for_room, &visit);
    assert_string_equal(visit.too_many, "jobs");
    core_job_stop(&hall.jobs[0], hall.core);
    ph__core_call(hall.core, ask_for_room, &visit);
    assert_null(visit.too_many);
    assert_null(visit.too_many_with_many);
    close_hall(&hall);
}

struct count {
    unsigned calls;
};

static void count_call(void *context)
{
    ((struct count *)context)->calls++;
}

static void calls_are_answered_by_the_thread_while_it_works(void **state)
{
    (void)state;
    struct hall hall;
    struct count count = {0};
    open_hall(&hall);
    core_job_start(add_job(&hall, 4096, 1, &never), hall.core);
    const struct look first = look_at(&hall);
    assert_false(pthread_equal(first.thread, pthread_self()));
    for (unsigned i = 1; i <= 1000; i++) {
        ph__core_call(hall.core, count_call, &count);
        assert_int_equal(count.calls, i); /* once, before it returns */
    }
    const struct look last = look_at(&hall);
    assert_true(pthread_equal(last.thread, first.thread));
    assert_true(last.bytes[0] > first.bytes[0]);
    close_hall(&hall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_share_by_bytes),
        cmocka_unit_test(tiny_updates_count_as_larger_ones),
        cmocka_unit_test(a_shard_without_work_saves_nothing_for_later),
        cmocka_unit_test(shards_come_and_go_while_others_run),
        cmocka_unit_test(there_is_room_for_so_many_shards_and_links),
        cmocka_unit_test(calls_are_answered_by_the_thread_while_it_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
