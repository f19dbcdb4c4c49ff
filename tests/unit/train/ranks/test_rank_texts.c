#include "train/ranks/rank_texts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/staged_messages.h"
#include "support/thread_ranks.h"

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
    const ph_status status = ph__rank_texts_read(comm, "texts", text, own * BYTES_A_RANK, read_text, context);
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
        cmocka_unit_test(the_first_rank_reads_all_texts_in_order),
        cmocka_unit_test(what_the_reader_fails_with_ends_all),
        cmocka_unit_test(many_texts_may_take_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
