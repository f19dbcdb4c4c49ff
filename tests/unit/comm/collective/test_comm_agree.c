#include <stdio.h>
#include <string.h>

#include "support/thread_ranks.h"

enum { WORLD = 4 };

/* ---- texts ---- */

/* Each rank's text, and what all are to end with; "": nothing. */
struct trial {
    const char *texts[WORLD];
    const char *wanted;
};

static ph_status agree(struct ph_comm *comm, void *context)
{
    const struct trial *trial = context;
    PH_TRY(ph__comm_agree(comm, ""));
    return ph__comm_agree(comm, trial->texts[ph_comm_rank(comm)]);
}

static void run_trial(struct trial trial)
{
    struct thread_rank_end ends[WORLD];
    const bool differs = trial.wanted[0] != '\0';
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, agree, &trial, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(ends[rank].status, differs ? PH_ERROR_CONFIG : PH_OK);
        assert_string_equal(ends[rank].text, trial.wanted);
        assert_int_equal(ends[rank].speaks, differs && rank == 0);
    }
}

static void equal_texts_are_agreed_on(void **state)
{
    (void)state;
    static const char text[] = "seed=1\nepochs=3\n";
    run_trial((struct trial){{text, text, text, text}, ""});
}

static void the_first_line_that_differs_is_named_of_the_lowest_rank(void **state)
{
    (void)state;
    static const char text[] = "seed=1\nepochs=3\nbatch=9\n", odd[] = "seed=1\nepochs=4\nbatch=8\n";
    run_trial((struct trial){{text, text, odd, odd}, "epochs differs between ranks 0 ('3') and 2 ('4')"});
    run_trial((struct trial){{odd, text, odd, odd}, "epochs differs between ranks 0 ('4') and 1 ('3')"});
    run_trial((struct trial){{text, text, text, "seed=11\nepochs=3\nbatch=9\n"},
        "seed differs between ranks 0 ('1') and 3 ('11')"});
}

static void a_line_that_one_rank_lacks_is_named(void **state)
{
    (void)state;
    static const char text[] = "seed=1\nepochs=3\n", odd[] = "seed=1\nepochs=3\nbatch=9\n";
    run_trial((struct trial){{text, text, text, odd}, "batch differs between ranks 0 ('') and 3 ('9')"});
    run_trial((struct trial){{odd, text, odd, odd}, "batch differs between ranks 0 ('9') and 1 ('')"});
    run_trial((struct trial){{"", text, "", ""}, "seed differs between ranks 0 ('') and 1 ('1')"});
}

static void values_may_hold_anything_but_line_ends(void **state)
{
    (void)state;
    run_trial((struct trial){
        {"a==\nb=", "a==\nb=", "a==\nb=", "a==\nb=c=d"}, "b differs between ranks 0 ('') and 3 ('c=d')"});
}

/* ---- outcomes ---- */

/* Ranks fail by their bits, twice, and meet behind it. */
static ph_status share(struct ph_comm *comm, void *context)
{
    const unsigned who_fails = *(const unsigned *)context;
    size_t lowest = 0;
    char wanted[64];
    while (lowest < WORLD && (who_fails >> lowest & 1) == 0)
        lowest++;
    snprintf(wanted, sizeof wanted, "rank %zu cannot read it", lowest);
    for (int i = 0; i < 2; i++) {
        const size_t rank = ph_comm_rank(comm);
        ph_status status = PH_OK;
        if (who_fails >> rank & 1)
            status =
                ph_fail(rank == 1 ? PH_ERROR_DISK : PH_ERROR_CHECKPOINT, "rank %zu cannot read it", rank);
        status = ph__comm_share(comm, status);
        if (who_fails == 0)
            RANK_CHECK(status == PH_OK);
        else
            RANK_CHECK(status == (lowest == 1 ? PH_ERROR_DISK : PH_ERROR_CHECKPOINT) &&
                       strcmp(ph_error_text(), wanted) == 0);
    }
    return ph__comm_barrier(comm);
}

static void what_the_lowest_rank_has_come_to_all_have_and_go_on(void **state)
{
    (void)state;
    for (unsigned who_fails = 0; who_fails < 1u << WORLD; who_fails++) {
        struct thread_rank_end ends[WORLD];
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, share, &who_fails, ends);
        for (size_t rank = 0; rank < WORLD; rank++)
            assert_int_equal(ends[rank].status, PH_OK);
    }
}

static ph_status find_largest(struct ph_comm *comm, void *context)
{
    const int *numbers = context;
    int largest;
    PH_TRY(ph__comm_largest(comm, numbers[ph_comm_rank(comm)], &largest));
    RANK_CHECK(largest == 15);
    return PH_OK;
}

static void the_largest_number_is_known_to_all(void **state)
{
    (void)state;
    int numbers[][WORLD] = {{15, 0, 0, 0}, {0, 0, 15, 2}, {-3, 2, 2, 15}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, find_largest, numbers[i], NULL);
}

/* ---- one that comes to fail ---- */

static ph_status fail_with_a_config(struct ph_comm *comm, void *context)
{
    if (ph_comm_rank(comm) == *(const size_t *)context)
        return ph_fail(PH_ERROR_CONFIG, "job.yaml:3: unknown key 'sead'");
    return ph__comm_agree(comm, "seed=1\n");
}

static void a_rank_without_a_config_comes_and_says_so(void **state)
{
    (void)state;
    for (size_t odd = 0; odd < WORLD; odd++) {
        struct thread_rank_end ends[WORLD];
        struct ph_comm_options options[WORLD];
        for (size_t rank = 0; rank < WORLD; rank++)
            options[rank] = rank == odd ? (struct ph_comm_options){.size = sizeof(struct ph_comm_options),
                                              .has_failed = true}
                                        : (struct ph_comm_options){.size = sizeof(struct ph_comm_options),
                                              .transport = "auto",
                                              .timeout_seconds = 20,
                                              .ranks_per_host = 2};
        thread_ranks_run(
            &(struct thread_ranks){.world_size = WORLD, .of_rank = options}, fail_with_a_config, &odd, ends);
        for (size_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
            assert_string_equal(ends[rank].text, "job.yaml:3: unknown key 'sead'");
            assert_int_equal(ends[rank].speaks, rank == odd);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_are_agreed_on),
        cmocka_unit_test(the_first_line_that_differs_is_named_of_the_lowest_rank),
        cmocka_unit_test(a_line_that_one_rank_lacks_is_named),
        cmocka_unit_test(values_may_hold_anything_but_line_ends),
        cmocka_unit_test(what_the_lowest_rank_has_come_to_all_have_and_go_on),
        cmocka_unit_test(the_largest_number_is_known_to_all),
        cmocka_unit_test(a_rank_without_a_config_comes_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
