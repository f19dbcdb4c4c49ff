#include "support/test_support.h"

#include <stdio.h>
#include <string.h>

#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"
#include "train/ranks/memory_check.h"

#define MIB (1ull << 20)

static const struct ph_train_memory job = {
    .baseline_bytes = 5 * MIB, .parameter_bytes = 100 * MIB, .slot_bytes = 200 * MIB, .plan_bytes = 36 * MIB};

static void job_that_fits_exactly_passes(void **state)
{
    (void)state;
    assert_ok(ph__memory_check(&job, 400 * MIB));
}

static void job_that_does_not_fit_is_refused_with_the_sum(void **state)
{
    (void)state;
    assert_fails(ph__memory_check(&job, 400 * MIB - 1), PH_ERROR_MEMORY,
        "needs 400.0 MiB: parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch 36.0 MiB + "
        "allowance 64.0 MiB");
    assert_int_equal(ph_status_exit_code(PH_ERROR_MEMORY), 5);
}

static void plan_that_is_not_known_yet_is_not_called_zero(void **state)
{
    (void)state;
    struct ph_train_memory weights = job;
    weights.plan_bytes = 0;
    assert_fails(ph__memory_check(&weights, 0), PH_ERROR_MEMORY,
        "needs at least 364.0 MiB: parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch (not "
        "laid out "
        "yet) + allowance 64.0 MiB");
}

static void plan_that_cannot_be_laid_out_is_named_in_the_sum(void **state)
{
    (void)state;
    ph_status status = ph_fail(PH_ERROR_MEMORY, "no 9 bytes");
    assert_fails(ph__memory_plan_failed(status, &job, 7 * MIB), PH_ERROR_MEMORY,
        "parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch (no 9 bytes); 7.0 MiB are free");
    assert_int_equal(ph__memory_plan_failed(PH_OK, &job, 0), PH_OK);
    assert_int_equal(ph__memory_plan_failed(PH_ERROR_BUG, &job, 0), PH_ERROR_BUG);
}

static void limit_adds_the_baseline(void **state)
{
    (void)state;
    assert_int_equal(ph__memory_limit(&job), 405 * MIB);
}

enum { WORLD = 3 };

/* Parameters of each rank, and what each has seen to be free, in MiB. */
struct hosts {
    uint64_t needed[WORLD], available[WORLD];
    const char *machines; /* a letter for each rank's; NULL: they are on one */
};

static ph_status check(struct ph_comm *comm, void *context)
{
    const struct hosts *hosts = context;
    const size_t rank = ph_comm_rank(comm);
    for (size_t other = 0; hosts->machines != NULL && other < WORLD; other++)
        comm->places.greetings[other].boot[0] = hosts->machines[other];
    const struct ph_train_memory memory = {
        .baseline_bytes = 1 << 30, .parameter_bytes = hosts->needed[rank] << 20};
    return ph__host_memory_check(comm, &memory, hosts->available[rank] << 20);
}

static void run(struct hosts hosts, const char *text)
{
    struct thread_rank_end ends[WORLD];
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, check, &hosts, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(ends[rank].status, text == NULL ? PH_OK : PH_ERROR_MEMORY);
        if (text != NULL && strstr(ends[rank].text, text) == NULL)
            fail_msg("'%s' lacks '%s'", ends[rank].text, text);
    }
}

/* Each also needs PH_TRAIN_ALLOWANCE_BYTES, 64 MiB. */
static void ranks_of_a_host_need_their_sum(void **state)
{
    (void)state;
    run((struct hosts){{36, 36, 136}, {400, 400, 400}, NULL}, NULL);
    run((struct hosts){{36, 36, 137}, {400, 400, 400}, NULL}, " need 401.0 MiB together");
    run((struct hosts){{137, 36, 36}, {400, 400, 400}, NULL}, "the 3 ranks on ");
}

static void what_others_have_taken_already_is_not_missed(void **state)
{
    (void)state;
    run((struct hosts){{36, 36, 136}, {264, 400, 300}, NULL}, NULL);
}

static void machines_of_one_name_have_their_own_memory(void **state)
{
    (void)state;
    run((struct hosts){{336, 336, 336}, {400, 400, 400}, "abc"}, NULL);
    run((struct hosts){{36, 336, 236}, {400, 400, 400}, "aba"}, NULL);
    run((struct hosts){{336, 36, 237}, {400, 400, 400}, "abb"}, "the 2 ranks on ");
    run((struct hosts){{336, 36, 237}, {400, 400, 400}, "abb"}, " need 401.0 MiB together");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_that_fits_exactly_passes),
        cmocka_unit_test(job_that_does_not_fit_is_refused_with_the_sum),
        cmocka_unit_test(plan_that_is_not_known_yet_is_not_called_zero),
        cmocka_unit_test(plan_that_cannot_be_laid_out_is_named_in_the_sum),
        cmocka_unit_test(limit_adds_the_baseline),
        cmocka_unit_test(ranks_of_a_host_need_their_sum),
        cmocka_unit_test(what_others_have_taken_already_is_not_missed),
        cmocka_unit_test(machines_of_one_name_have_their_own_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
