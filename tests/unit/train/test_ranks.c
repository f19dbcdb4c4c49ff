/* What ranks are told before they have a plan. */
#include "train/ranks.h"

#include <string.h>

#include "support/thread_ranks.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_nobody_sums_for_are_refused),
        cmocka_unit_test(one_rank_needs_no_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
