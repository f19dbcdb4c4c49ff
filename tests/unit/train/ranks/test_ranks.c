/* What ranks are told before they have a plan, and what they agree on. */
#include "train/ranks/ranks.h"

#include <string.h>

#include "comm/collective/comm.h"
#include "plan/plan_cost.h"
#include "support/staged_messages.h"
#include "support/thread_ranks.h"
#include "train/config/table_facts.h"
#include "train/config/train_options.h"
#include "unit/train/train_fixture.h"

static ph_status init(struct ph_comm *comm, void *context)
{
    const struct ph__train_job job = {.options.comm = comm, .parallel = context};
    struct ph__ranks ranks;
    const ph_status status = ph__ranks_init(&ranks, &job);
    ph__ranks_fini(&ranks);
    return status;
}

static void is_refused(enum ph_sync sync, const char *part)
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
    is_refused(PH_SYNC_NONE, "parallel.sync: none requires a single rank, not 2");
    is_refused(PH_SYNC_HUB, "parallel.sync: hub requires a reducer in struct ph_train_options");
}

static void one_rank_needs_no_sums(void **state)
{
    (void)state;
    const struct thread_ranks ranks = {.world_size = 1};
    for (enum ph_sync sync = PH_SYNC_NONE; sync <= PH_SYNC_HUB; sync++) {
        struct ph_parallel_settings settings = {.plan = "none", .sync = sync};
        thread_ranks_run(&ranks, init, &settings, NULL);
    }
}

/* ---- what they agree on ---- */

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
    PH_TRY(ph__comm_sum_once(comm, 2, counts));
    RANK_CHECK(counts[0] == world_size * (world_size - 1) / 2 && counts[1] == world_size);
    PH_TRY(ph__comm_unite_once(comm, 1, &bits));
    RANK_CHECK(bits == (UINT64_C(1) << world_size) - 1);
    return PH_OK;
}

static void what_ranks_agree_on_is_of_all_of_them(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 4; world_size++)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size}, agree_and_sum, NULL, NULL);
}

/* The plan that a job gets by itself: that of nominal figures, whatever is measured or free at the moment. */

struct planned {
    struct ph__train_job job;
    struct ph_parallel_settings parallel;
    size_t world_size, ranks_per_host;
    char *texts[THREAD_RANKS_MOST]; /* the plan as each rank would write it */
};

static ph_status write_text(const struct ph__plan *plan, char **text_out)
{
    struct ph__writer *writer;
    size_t size;
    PH_TRY(ph__writer_open_memory("plan", 1 << 20, &writer));
    ph_status status = ph__plan_write(plan, writer);
    if (status == PH_OK)
        status = ph__writer_write(writer, "", 1); /* which ends the text */
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    if (status == PH_OK)
        *text_out = ph__writer_take(writer, &size);
    ph__writer_close(writer);
    return status;
}

static ph_status plan_as_rank(struct ph_comm *comm, void *context)
{
    struct planned *planned = context;
    struct ph__train_job job = planned->job;
    struct ph__ranks ranks;
    job.options.comm = comm;
    job.parallel = &planned->parallel;
    ph_status status = ph__ranks_init(&ranks, &job);
    if (status == PH_OK)
        status = write_text(ranks.plan, &planned->texts[ph_comm_rank(comm)]);
    ph__ranks_fini(&ranks);
    return status;
}

static void plan_on_ranks(struct planned *planned, struct thread_rank_end *ends_out)
{
    const struct ph__section section = {&ph__parallel_options, &planned->parallel};
    const struct ph_parallel_settings given = planned->parallel;
    assert_ok(ph__config_read(NULL, NULL, 0, &section, 1, &fixture.arena));
    planned->parallel.memory_bytes = given.memory_bytes;
    planned->parallel.topology = given.topology;
    planned->parallel.dense_mode = given.dense_mode;
    thread_ranks_run(&(struct thread_ranks){.world_size = planned->world_size,
                         .options = {.ranks_per_host = planned->ranks_per_host}},
        plan_as_rank, planned, ends_out);
}

static char *plan_by_figures(const struct planned *planned, struct ph__plan_machine machine)
{
    const struct ph__topology topology = {planned->world_size, planned->ranks_per_host};
    struct ph__train_job job = planned->job;
    struct ph__table_list list;
    struct ph__plan plan;
    char *text;
    job.parallel = &planned->parallel;
    assert_ok(ph__table_list_of_job(&job, &list));
    const struct ph__plan_step step = ph__plan_step_of_job(&job);
    assert_ok(ph__plan_greedy(&machine, &topology, &step, list.tables, list.num_tables, &plan));
    assert_ok(write_text(&plan, &text));
    ph__plan_fini(&plan);
    ph__table_list_fini(&list);
    return text;
}

static void check_plan(struct planned planned)
{
    plan_on_ranks(&planned, NULL);
    char *wanted =
        plan_by_figures(&planned, ph__plan_machine_nominal((uint64_t)planned.parallel.memory_bytes));
    for (size_t rank = 0; rank < planned.world_size; rank++) {
        assert_string_equal(planned.texts[rank], wanted);
        free(planned.texts[rank]);
    }
    free(wanted);
}

static void an_automatic_plan_is_that_of_nominal_figures(void **state)
{
    static const struct {
        size_t world_size, ranks_per_host;
    } worlds[] = {{2, 1}, {2, 2}, {4, 2}, {6, 3}};
    (void)state;
    struct setup *setup = set_up("dlrm", "nominal");
    for (size_t i = 0; i < COUNT(worlds); i++)
        for (size_t batch_size = 1; batch_size <= 1024; batch_size *= 32) {
            setup->train.batch_size = (int64_t)batch_size;
            check_plan((struct planned){.job = setup->job,
                .world_size = worlds[i].world_size,
                .ranks_per_host = worlds[i].ranks_per_host});
        }
    free(setup);
}

/* Threads are each rank's own, and bits do not depend on them. */
static void an_automatic_plan_does_not_depend_on_threads(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "threads");
    for (size_t threads = 1; threads <= 4; threads++) {
        setup->job.run.num_threads = threads;
        check_plan((struct planned){.job = setup->job, .world_size = 4, .ranks_per_host = 2});
    }
    free(setup);
}

/* Four tables of 41 rows of 6 numbers, with two more of Adam's each: 12 KiB, of which a rank may have a
 * third. */
static void an_automatic_plan_keeps_to_the_memory_that_the_config_allows(void **state)
{
    (void)state;
    struct thread_rank_end ends[2];
    struct setup *setup = set_up("dlrm", "limited");
    check_plan((struct planned){
        .job = setup->job, .parallel = {.memory_bytes = 4096}, .world_size = 4, .ranks_per_host = 4});
    struct planned few = {
        .job = setup->job, .parallel = {.memory_bytes = 1000}, .world_size = 2, .ranks_per_host = 2};
    plan_on_ranks(&few, ends);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_MEMORY);
        assert_non_null(strstr(ends[rank].text, "does not fit"));
    }
    free(setup);
}

/* A host's memory suffices for a half of the tables, and between hosts a byte costs as much as anything. */
static const char slow_topology[] = "version: 1\nkind: star\nhosts: 3\nranks_per_host: 2\n"
                                    "host: {gbits_per_s: 1e-6}\nmachine: {memory_gb: 8e-6}\n";

static void an_automatic_plan_goes_by_the_topology(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "topology");
    struct planned planned = {.job = setup->job,
        .parallel.topology = test_write_file("slow.yaml", slow_topology),
        .parallel.dense_mode = PH_DENSE_SHARDING_REPLICATED, /* else memory forbids it */
        .world_size = 4,
        .ranks_per_host = 2};
    struct ph__plan_machine machine = ph__plan_machine_nominal(4000);
    char *nominal = plan_by_figures(&planned, ph__plan_machine_nominal(0));
    machine.network_bytes_per_s = 125;
    char *wanted = plan_by_figures(&planned, machine);
    plan_on_ranks(&planned, NULL);
    assert_string_not_equal(wanted, nominal);
    for (size_t rank = 0; rank < 4; rank++) {
        assert_string_equal(planned.texts[rank], wanted);
        free(planned.texts[rank]);
    }
    free(nominal);
    free(wanted);
    free(setup);
}

static void ranks_that_do_not_fit_the_topology_are_refused(void **state)
{
    (void)state;
    struct thread_rank_end ends[4];
    struct setup *setup = set_up("dlrm", "misfit");
    struct planned planned = {.job = setup->job,
        .parallel.topology = test_write_file("slow.yaml", slow_topology),
        .world_size = 4,
        .ranks_per_host = 1};
    plan_on_ranks(&planned, ends);
    assert_int_equal(ends[0].status, PH_ERROR_CONFIG);
    for (size_t rank = 0; rank < 4; rank++)
        assert_non_null(strstr(ends[rank].text, "slow.yaml: parallel.ranks_per_host must be 2, not 1"));
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_nobody_sums_for_are_refused),
        cmocka_unit_test(one_rank_needs_no_sums),
        cmocka_unit_test(what_ranks_agree_on_is_of_all_of_them),
        cmocka_unit_test(an_automatic_plan_is_that_of_nominal_figures),
        cmocka_unit_test(an_automatic_plan_does_not_depend_on_threads),
        cmocka_unit_test(an_automatic_plan_keeps_to_the_memory_that_the_config_allows),
        cmocka_unit_test(an_automatic_plan_goes_by_the_topology),
        cmocka_unit_test(ranks_that_do_not_fit_the_topology_are_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
