/* Ranks that wait for work of others for longer than they wait for anything else. */
#include "train/ranks/rank_work.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/thread/clock.h"
#include "support/thread_ranks.h"

struct long_work {
    uint64_t least_ns;
    size_t worker; /* the rank whose work is long; none of the others' is */
    bool is_silent;
    ph_status status; /* of the worker */
    bool is_of_all;
    atomic_size_t times; /* that a rank has done it */
};

/* What a rank needs to know itself by. */
struct own_work {
    struct long_work *work;
    size_t rank;
};

static ph_status work_for_long(void *context, const struct ph_meanwhile *meanwhile)
{
    const struct own_work *own = context;
    const struct long_work *work = own->work;
    const uint64_t begin_ns = ph__clock_ns();
    atomic_fetch_add(&own->work->times, 1);
    if (own->rank != work->worker)
        return PH_OK;
    while (ph__clock_ns() - begin_ns < work->least_ns) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (!work->is_silent)
            PH_TRY(ph__meanwhile(meanwhile));
    }
    return work->status == PH_OK ? PH_OK : ph_fail(work->status, "the work has failed");
}

static ph_status take_part(struct ph_comm *comm, void *context)
{
    struct own_work own = {context, ph_comm_rank(comm)};
    return (own.work->is_of_all ? ph__rank_work_by_all : ph__rank_work_by_first)(comm, work_for_long, &own);
}

static void outlast_the_timeout(struct long_work *work, struct thread_rank_end ends[3])
{
    work->least_ns = 1500000000;
    const struct thread_ranks ranks = {.world_size = 3, .options = {.timeout_seconds = 1}};
    thread_ranks_run(&ranks, take_part, work, ends);
    assert_int_equal(work->times, work->is_of_all ? 3 : 1);
}

static void expect_all_to_fail(const struct thread_rank_end ends[3], ph_status status, const char *text)
{
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(ends[rank].status, status);
        assert_non_null(strstr(ends[rank].text, text));
    }
}

static void ranks_wait_as_long_as_the_first_one_says_that_it_works(void **state)
{
    (void)state;
    struct long_work work = {0};
    outlast_the_timeout(&work, NULL);
}

static void ranks_wait_for_the_slowest_as_long_as_it_says_that_it_works(void **state)
{
    (void)state;
    struct long_work work = {.is_of_all = true, .worker = 1};
    outlast_the_timeout(&work, NULL);
}

static void ranks_wait_no_longer_for_one_that_says_nothing(void **state)
{
    (void)state;
    for (size_t worker = 0; worker < 2; worker++) {
        struct long_work work = {.is_silent = true, .is_of_all = worker > 0, .worker = worker};
        struct thread_rank_end ends[3];
        outlast_the_timeout(&work, ends);
        expect_all_to_fail(ends, PH_ERROR_PEER, "has waited 1 s");
    }
}

static void what_the_work_fails_with_ends_all(void **state)
{
    (void)state;
    struct long_work work = {.status = PH_ERROR_CHECKPOINT};
    struct thread_rank_end ends[3];
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, take_part, &work, ends);
    expect_all_to_fail(ends, PH_ERROR_CHECKPOINT, "the work has failed");
}

/* And goes on: what all fail with is no failure of the communicator. */
static ph_status take_part_and_meet(struct ph_comm *comm, void *context)
{
    const ph_status status = take_part(comm, context);
    RANK_CHECK(status == PH_ERROR_CHECKPOINT && strstr(ph_error_text(), "the work has failed") != NULL);
    return ph__comm_barrier(comm);
}

static void what_one_of_all_fails_with_all_hear(void **state)
{
    (void)state;
    struct long_work work = {.is_of_all = true, .worker = 2, .status = PH_ERROR_CHECKPOINT};
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, take_part_and_meet, &work, NULL);
}

static void work_alone_is_done(void **state)
{
    (void)state;
    struct long_work work = {.status = PH_ERROR_CHECKPOINT};
    struct own_work own = {.work = &work};
    assert_fails(ph__rank_work_by_all(NULL, work_for_long, &own), PH_ERROR_CHECKPOINT, "the work has failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_wait_as_long_as_the_first_one_says_that_it_works),
        cmocka_unit_test(ranks_wait_for_the_slowest_as_long_as_it_says_that_it_works),
        cmocka_unit_test(ranks_wait_no_longer_for_one_that_says_nothing),
        cmocka_unit_test(what_the_work_fails_with_ends_all),
        cmocka_unit_test(what_one_of_all_fails_with_all_hear),
        cmocka_unit_test(work_alone_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
