/* What a distribution adds to a program's run, of ranks that are threads. */
#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"
#include "unit/shard/rank_fixture.h"

enum { NUM_NUMBERS = 3000, CHANNEL = 7000, WIDTH = 4 };

static void build_chain(
    struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    (void)distribution;
    (void)context;
    ph_value x = ph_input_dense(builder, WIDTH);
    for (size_t i = 0; i < 8; i++)
        x = ph_relu(builder, x);
    ph_output(builder, "x", x);
}

/* A sum over ranks is in flight while the program runs, which has no part in it and waits for nothing. */
static ph_status run_until_summed(struct ph_comm *comm, struct rank_model *model)
{
    static const ph_real dense[WIDTH] = {1, 2, 3, 4};
    static const char *const entries[] = {"forward", NULL};
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    const struct ph_batch batch = {.num_samples = 1,
        .num_global_samples = world_size,
        .first_sample = own,
        .num_dense = WIDTH,
        .dense = dense,
        .offsets = (const uint32_t[]){0}};
    ph_real numbers[NUM_NUMBERS];
    uint64_t ticket;
    for (size_t i = 0; i < NUM_NUMBERS; i++)
        numbers[i] = (ph_real)(own + i);
    PH_TRY(rank_model_run(model, &batch, 0, entries));
    PH_TRY(ph__comm_all_reduce_start(comm, &(struct ph__comm_call){CHANNEL, "a sum"}, ph__comm_world(comm),
        PH_WIRE_FP32, NUM_NUMBERS / 10, 10, numbers, NULL, &ticket));
    const double waited = ph__comm_counters(comm).waited_seconds, began = ph__clock_seconds();
    while (comm->operations.num_flying > 0) {
        RANK_CHECK(ph__clock_seconds() - began < THREAD_RANKS_TIMEOUT_SECONDS);
        PH_TRY(ph_workspace_run(model->workspace, "forward"));
    }
    for (size_t i = 0; i < NUM_NUMBERS; i++)
        RANK_CHECK(numbers[i] == (ph_real)(world_size * i + world_size * (world_size - 1) / 2));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(ph__comm_counters(comm).waited_seconds == waited);
    return PH_OK;
}

static ph_status sum_while_running(struct ph_comm *comm, void *context)
{
    (void)context;
    const size_t world_size = ph_comm_world_size(comm);
    const struct ph__plan plan = {.topology = {world_size, world_size}};
    struct ph_distribution *distribution;
    struct rank_model model;
    PH_TRY(rank_distribution_create(comm, &plan, &distribution));
    ph_status status = rank_model_init(&model, build_chain, NULL, distribution);
    if (status == PH_OK)
        status = run_until_summed(comm, &model);
    rank_model_fini(&model);
    ph__distribution_destroy(distribution);
    return status;
}

static void what_is_in_flight_ends_while_operators_run(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 30};
    for (size_t world_size = 1; world_size <= 3; world_size++)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = world_size, .faults = &slow, .num_faults = world_size > 1},
            sum_while_running, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_flight_ends_while_operators_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
