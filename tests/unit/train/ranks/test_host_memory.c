#include "train/ranks/host_memory.h"

#include <stdio.h>
#include <string.h>

#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"

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
        cmocka_unit_test(ranks_of_a_host_need_their_sum),
        cmocka_unit_test(what_others_have_taken_already_is_not_missed),
        cmocka_unit_test(machines_of_one_name_have_their_own_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
