/* Ranks that wait for work of others for longer than they wait for anything else. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread/clock.h"
#include "comm/collective/comm.h"
#include "support/staged_messages.h"
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

static ph_status work_for_long(void *context, const struct ph__meanwhile *meanwhile)
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
    return (own.work->is_of_all ? ph__comm_work_by_all : ph__comm_work_by_first)(comm, work_for_long, &own);
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
    assert_fails(ph__comm_work_by_all(NULL, work_for_long, &own), PH_ERROR_CHECKPOINT, "the work has failed");
}

enum { BYTES_A_RANK = 1000 };

/* What the first rank has read. */
struct reading {
    size_t num_texts, fail_at;
    long pause_ns; /* that a text takes */
};

static ph_status read_text(void *context, size_t rank, const char *text, size_t size)
{
    struct reading *reading = context;
    RANK_CHECK(rank == reading->num_texts++ && size == rank * BYTES_A_RANK && text[size] == '\0');
    for (size_t i = 0; i < size; i++)
        RANK_CHECK(text[i] == (char)('a' + rank));
    nanosleep(&(struct timespec){.tv_nsec = reading->pause_ns}, NULL);
    return rank == reading->fail_at ? ph_fail(PH_ERROR_DISK, "the disk is full") : PH_OK;
}

/* Rank r's text is so many times the same letter; the first one's is empty. */
static ph_status give_text(struct ph_comm *comm, void *context)
{
    const size_t own = ph_comm_rank(comm);
    PH_TRY(staged_messages_demand(comm));
    char *text = malloc(own * BYTES_A_RANK + 1);
    RANK_CHECK(text != NULL);
    memset(text, (int)('a' + own), own * BYTES_A_RANK);
    text[own * BYTES_A_RANK] = '\0';
    const ph_status status = ph__comm_read_texts(comm, "texts", text, own * BYTES_A_RANK, read_text, context);
    free(text);
    return status;
}

static void the_first_rank_reads_all_texts_in_order(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 5; world_size++) {
        struct reading reading = {.fail_at = SIZE_MAX};
        thread_ranks_run(
            &(struct thread_ranks){.world_size = world_size, .cut_bytes = 700}, give_text, &reading, NULL);
        assert_int_equal(reading.num_texts, world_size);
    }
}

/* All ranks wait for each other behind it, as trainings do. */
static ph_status give_and_meet(struct ph_comm *comm, void *context)
{
    PH_TRY(give_text(comm, context));
    return ph__comm_barrier(comm);
}

static void what_the_reader_fails_with_ends_all(void **state)
{
    (void)state;
    struct reading reading = {.fail_at = 1};
    struct thread_rank_end ends[3];
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, give_and_meet, &reading, ends);
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_DISK);
        assert_non_null(strstr(ends[rank].text, "the disk is full"));
    }
}

/* They wait for all texts together longer than for anything else. */
static void many_texts_may_take_long(void **state)
{
    (void)state;
    const struct thread_ranks ranks = {.world_size = 5, .options = {.timeout_seconds = 1}};
    struct reading reading = {.fail_at = SIZE_MAX, .pause_ns = 300000000};
    thread_ranks_run(&ranks, give_and_meet, &reading, NULL);
    assert_int_equal(reading.num_texts, 5);
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
        cmocka_unit_test(the_first_rank_reads_all_texts_in_order),
        cmocka_unit_test(what_the_reader_fails_with_ends_all),
        cmocka_unit_test(many_texts_may_take_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
