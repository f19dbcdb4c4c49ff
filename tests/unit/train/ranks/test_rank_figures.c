/* Figures of ranks that are threads, gathered by the first. */
#include "train/ranks/rank_figures.h"

#include <string.h>

#include "support/thread_ranks.h"

enum { NUM_STEPS = 3, WORLD = 3, HOST = 1 };

/* What the first rank has gathered. */
struct outcome {
    struct ph__json *json;
};

/* Rank a sends rank b 8 (a + 1) (b + 1) bytes. */
static ph_status give(struct ph_comm *comm, const char *what)
{
    static const char bytes[8 * WORLD * WORLD];
    const size_t own = ph_comm_rank(comm);
    char got[WORLD][sizeof bytes];
    struct ph__message sends[WORLD], receives[WORLD];
    uint64_t ticket;
    for (size_t rank = 0; rank < WORLD; rank++) {
        const uint64_t size = 8 * (own + 1) * (rank + 1);
        sends[rank] = (struct ph__message){rank, (void *)(uintptr_t)bytes, size};
        receives[rank] = (struct ph__message){rank, got[rank], size};
    }
    PH_TRY(ph__comm_exchange_start(comm, &(struct ph__comm_call){3, what},
        &(struct ph__exchange){sends, receives, WORLD, WORLD}, &ticket));
    return ph__comm_wait(comm, ticket);
}

static ph_status take_steps(
    struct ph_comm *comm, const struct ph__ranks *ranks, struct ph__rank_figures *figures)
{
    static const int64_t ids[60 * WORLD];
    for (size_t step = 0; step < NUM_STEPS; step++) {
        PH_TRY(give(comm, "an evaluation")); /* no step's */
        ph__rank_figures_begin_step(figures);
        PH_TRY(give(comm, "vectors"));
        if (step == 1)
            PH_TRY(give(comm, "ids"));
        ph__rank_figures_bound(figures, ids, 40 * (ranks->rank + 1));
        ph__rank_figures_bound(figures, ids, 60 * (ranks->rank + 1));
        ph__rank_figures_end_step(figures, 10);
    }
    figures->train_seconds = 2;
    figures->reader_wait_seconds = 0.6;
    figures->held_bytes = UINT64_C(1000) << ranks->rank;
    return PH_OK;
}

static ph_status gather(struct ph_comm *comm, void *context)
{
    struct outcome *outcome = context;
    static struct ph__plan_table tables[] = {{.name = "a", .kind = PH_SHARD_ROW_WISE},
        {.name = "b", .kind = PH_SHARD_TABLE_WISE}, {.name = "c", .kind = PH_SHARD_ROW_WISE}};
    struct ph__plan plan = {.tables = tables, .num_tables = sizeof tables / sizeof *tables};
    const struct ph__ranks ranks = {
        .comm = comm, .rank = ph_comm_rank(comm), .world_size = ph_comm_world_size(comm), .plan = &plan};
    struct ph__rank_figures figures;
    struct ph__json *json;
    PH_TRY(ph__rank_figures_init(&figures, &ranks, 0));
    PH_TRY(take_steps(comm, &ranks, &figures));
    PH_TRY(ph__rank_figures_gather(&figures, &ranks, &json));
    RANK_CHECK((json != NULL) == (ranks.rank == 0));
    if (json != NULL)
        outcome->json = json;
    ph__rank_figures_fini(&figures);
    return PH_OK;
}

static int gather_figures(void **state)
{
    static struct outcome outcome;
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .options = {.ranks_per_host = HOST}}, gather,
        &outcome, NULL);
    *state = outcome.json;
    return 0;
}

static int drop_figures(void **state)
{
    ph__json_destroy(*state);
    return 0;
}

static double number(const struct ph__json *object, const char *key)
{
    return ph__json_as_number(ph__json_get(object, key), -1);
}

/* NUM_STEPS + 1 exchanges were steps'. */
static double bytes_between(size_t from, size_t to)
{
    return from == to ? 0 : (double)((NUM_STEPS + 1) * 8 * (from + 1) * (to + 1));
}

static void bytes_of_links_are_those_of_ranks(void **state)
{
    const struct ph__json *links = ph__json_get(*state, "links"), *of_rank = ph__json_get(*state, "of_rank");
    double all = 0;
    assert_int_equal(ph__json_size(links), WORLD);
    for (size_t from = 0; from < WORLD; from++) {
        double sent = 0, received = 0;
        for (size_t to = 0; to < WORLD; to++) {
            assert_near(ph__json_as_number(ph__json_at(ph__json_at(links, from), to), -1),
                bytes_between(from, to), 0, 0);
            sent += bytes_between(from, to);
            received += bytes_between(to, from);
        }
        assert_near(number(ph__json_at(of_rank, from), "sent_bytes"), sent, 0, 0);
        assert_near(number(ph__json_at(of_rank, from), "received_bytes"), received, 0, 0);
        all += sent;
    }
    assert_near(number(*state, "sent_bytes"), all, 0, 0);
}

static void steps_are_means_over_ranks(void **state)
{
    const struct ph__json *of_rank = ph__json_get(*state, "of_rank");
    double step = 0, exposed = 0;
    for (size_t rank = 0; rank < WORLD; rank++) {
        const struct ph__json *one = ph__json_at(of_rank, rank);
        assert_near(number(one, "rank"), (double)rank, 0, 0);
        assert_near(number(one, "host"), (double)rank / HOST, 0, 0);
        assert_near(number(one, "own_samples_per_s"), NUM_STEPS * 10 / 2., 0, 0);
        assert_near(number(one, "reader_wait_seconds"), 0.2, 1e-12, 0);
        assert_near(number(one, "requested_ids"), 100 * ((double)rank + 1), 1e-9, 0);
        assert_true(number(one, "polling_seconds") >= 0);
        assert_near(number(one, "compute_seconds") + number(one, "exposed_seconds"),
            number(one, "step_seconds"), 1e-12, 0);
        step += number(one, "step_seconds") / WORLD;
        exposed += number(one, "exposed_seconds") / WORLD;
    }
    assert_near(number(*state, "measured_steps"), NUM_STEPS, 0, 0);
    assert_near(number(*state, "step_seconds"), step, 1e-12, 0);
    assert_near(number(*state, "exposed_seconds"), exposed, 1e-12, 0);
    assert_near(number(*state, "exposed_share"), exposed / step, 1e-9, 0);
}

static void imbalance_is_the_most_over_the_mean(void **state)
{
    const struct ph__json *imbalance = ph__json_get(*state, "imbalance");
    assert_near(number(imbalance, "requested_ids"), 300 / 200., 1e-12, 0);
    assert_near(number(imbalance, "held_bytes"), 4000 / (7000 / 3.), 1e-12, 0);
    assert_true(number(imbalance, "compute") >= 1);
}

static void exchanges_are_told_apart(void **state)
{
    const struct ph__json *operations = ph__json_get(*state, "operations");
    double times = 0, bytes = 0;
    assert_int_equal(ph__json_size(operations), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct ph__json *operation = ph__json_at(operations, i);
        const bool is_ids = strcmp(ph__json_as_text(ph__json_get(operation, "what"), ""), "ids") == 0;
        assert_near(number(operation, "operations"), is_ids ? WORLD : WORLD * NUM_STEPS, 0, 0);
        assert_true(i == 0 || number(operation, "exposed_seconds") <=
                                  number(ph__json_at(operations, 0), "exposed_seconds"));
        times += number(operation, "operations");
        bytes += number(operation, "sent_bytes");
    }
    assert_near(times, WORLD * (NUM_STEPS + 1), 0, 0);
    assert_near(bytes, number(*state, "sent_bytes"), 0, 0);
}

static void tables_are_counted_by_kind(void **state)
{
    const struct ph__json *plan = ph__json_get(*state, "plan");
    assert_int_equal(ph__json_size(plan), 2);
    assert_near(number(plan, "row_wise"), 2, 0, 0);
    assert_near(number(plan, "table_wise"), 1, 0, 0);
    assert_near(number(*state, "hosts"), WORLD / HOST, 0, 0);
}

static void alone_there_is_nothing_to_gather(void **state)
{
    (void)state;
    const struct ph__ranks ranks = {.world_size = 1};
    struct ph__rank_figures figures;
    struct ph__json *json;
    assert_ok(ph__rank_figures_init(&figures, &ranks, 10));
    ph__rank_figures_begin_step(&figures);
    ph__rank_figures_end_step(&figures, 1);
    assert_ok(ph__rank_figures_gather(&figures, &ranks, &json));
    assert_null(json);
    ph__rank_figures_fini(&figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_links_are_those_of_ranks),
        cmocka_unit_test(steps_are_means_over_ranks),
        cmocka_unit_test(imbalance_is_the_most_over_the_mean),
        cmocka_unit_test(exchanges_are_told_apart),
        cmocka_unit_test(tables_are_counted_by_kind),
        cmocka_unit_test(alone_there_is_nothing_to_gather),
    };
    return cmocka_run_group_tests(tests, gather_figures, drop_figures);
}
