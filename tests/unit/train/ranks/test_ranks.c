/* What ranks are told before they have a plan, and what they agree on. */
#include "train/ranks/ranks.h"

#include <string.h>

#include "support/staged_messages.h"
#include "support/thread_ranks.h"
#include "train/ranks/rank_numbers.h"

static ph_status init(struct ph_comm *comm, void *context)
{
    const struct ph_train_job job = {.comm = comm, .parallel = context};
    struct ph__ranks ranks;
    const ph_status status = ph__ranks_init(&ranks, &job);
    ph__ranks_fini(&ranks);
    return status;
}

static void is_refused(int sync, const char *part)
{
    struct ph_parallel_settings settings = {.plan = "none", .sync = sync};
    const struct thread_ranks ranks = {.world_size = 2};
    struct thread_rank_end ends[2];
    thread_ranks_run(&ranks, init, &settings, ends);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_non_null(strstr(ends[rank].text, part));
    }
}

static void ranks_that_nobody_sums_for_are_refused(void **state)
{
    (void)state;
    is_refused(PH_SYNC_NONE, "parallel.sync is none, but there are 2 ranks");
    is_refused(PH_SYNC_HUB, "parallel.sync is hub, but this program knows of none");
}

static void one_rank_needs_no_sums(void **state)
{
    (void)state;
    const struct thread_ranks ranks = {.world_size = 1};
    for (int sync = PH_SYNC_NONE; sync <= PH_SYNC_HUB; sync++) {
        struct ph_parallel_settings settings = {.plan = "none", .sync = sync};
        thread_ranks_run(&ranks, init, &settings, NULL);
    }
}

/* ---- what they agree on ---------------------------------------------------------------------------------------------- */

/* What is freed when ranks have failed takes no part in messages. */
static ph_status agree_and_sum(struct ph_comm *comm, void *context)
{
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    struct ph__ranks_moment moments[THREAD_RANKS_MOST];
    double numbers[THREAD_RANKS_MOST], sum;
    uint64_t counts[] = {own, 1}, bits = UINT64_C(1) << own;
    struct ph__ranks ranks = {
        .comm = comm, .rank = own, .world_size = world_size, .moments = moments, .numbers = numbers};
    struct ph__ranks_moment moment = {.stop_signal = own == 1 ? 15 : 0, .is_due = own == 0};
    (void)context;
    PH_TRY(staged_messages_demand(comm));
    PH_TRY(ph__ranks_agree(&ranks, &moment));
    RANK_CHECK(moment.is_due && moment.stop_signal == (world_size > 1 ? 15 : 0));
    PH_TRY(ph__ranks_sum(&ranks, (double)own + .5, &sum));
    RANK_CHECK(sum == (double)(world_size * world_size) / 2);
    PH_TRY(ph__rank_numbers_sum(comm, 2, counts));
    RANK_CHECK(counts[0] == world_size * (world_size - 1) / 2 && counts[1] == world_size);
    PH_TRY(ph__rank_numbers_unite(comm, 1, &bits));
    RANK_CHECK(bits == (UINT64_C(1) << world_size) - 1);
    return PH_OK;
}

static void what_ranks_agree_on_is_of_all_of_them(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 4; world_size++)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size}, agree_and_sum, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_nobody_sums_for_are_refused),
        cmocka_unit_test(one_rank_needs_no_sums),
        cmocka_unit_test(what_ranks_agree_on_is_of_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
