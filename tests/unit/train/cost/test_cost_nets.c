/* Cost nets learn functions that are known: of sets of parts, and of ranks that exchange columns. */
#include "train/cost/cost_nets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { NUM_SETS = 3000, HELD_OUT = 300, MOST_PARTS = 8, BATCH = 1024 };

struct sets {
    struct ph__cost_part parts[NUM_SETS][MOST_PARTS];
    double accesses[NUM_SETS][MOST_PARTS][PH_ACCESS_BINS];
    struct ph__cost_label labels[NUM_SETS];
};

/* Not additive: parts share what the first bytes cost, and the dearest part counts once more. */
static double ms_of_set(const struct ph__cost_part *parts, size_t count)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double cost = parts[i].touched_bytes / 1e6 * (1 - .5 * parts[i].accesses[3]);
        sum += cost;
        most = fmax(most, cost);
    }
    return 2 * sqrt(sum) + .3 * most;
}

static struct sets *make_sets(void)
{
    struct ph__rng_sequence sequence = {{test_seed(), 0, 1}, 0};
    struct sets *sets = calloc(1, sizeof *sets);
    assert_non_null(sets);
    for (size_t i = 0; i < NUM_SETS; i++) {
        const size_t count = 1 + (size_t)ph__rng_below(&sequence, MOST_PARTS);
        for (size_t j = 0; j < count; j++) {
            struct ph__cost_part *part = &sets->parts[i][j];
            double *accesses = sets->accesses[i][j];
            part->columns = 4 * (double)(1 + ph__rng_below(&sequence, 32));
            part->num_rows = exp(5 + 9 * ph__rng_next_uniform(&sequence));
            part->ids_per_sample = 1 + 20 * ph__rng_next_uniform(&sequence);
            part->touched_bytes = 4 * part->columns * part->ids_per_sample * BATCH;
            accesses[3] = ph__rng_next_uniform(&sequence);
            accesses[0] = 1 - accesses[3];
            part->accesses = accesses;
        }
        sets->labels[i] = (struct ph__cost_label){sets->parts[i], count, ms_of_set(sets->parts[i], count)};
    }
    return sets;
}

static double price(struct ph__cost_nets *nets, const struct ph__cost_label *label)
{
    const struct ph__cost_model model = ph__cost_nets_model(nets);
    float descriptions[MOST_PARTS * PH_COST_MOST_WIDTH], set[PH_COST_MOST_WIDTH] = {0};
    double ms;
    assert_ok(model.describe(model.context, label->parts, label->num_parts, descriptions));
    for (size_t i = 0; i < label->num_parts * model.width; i++)
        set[i % model.width] += descriptions[i];
    assert_ok(model.compute(model.context, set, 1, &ms));
    return ms;
}

/* Learns all sets but the last HELD_OUT, and returns the error on these; by their true times. */
static double error_held_out(struct ph__cost_nets *nets, const struct sets *sets, size_t num_epochs)
{
    const struct ph__cost_training training = {NUM_SETS - HELD_OUT, 300, num_epochs};
    double mape, sum = 0;
    assert_ok(ph__cost_learn_compute(nets, sets->labels, &training, &mape));
    for (size_t i = NUM_SETS - HELD_OUT; i < NUM_SETS; i++)
        sum += fabs(price(nets, &sets->labels[i]) / sets->labels[i].ms - 1);
    return sum / HELD_OUT;
}

/* A brief test learns a little. */
static size_t num_epochs(void)
{
    return test_is_brief() ? 40 : 400;
}

static double most_error(double of_whole)
{
    return test_is_brief() ? .4 : of_whole;
}

static void a_time_that_is_no_sum_is_learnt(void **state)
{
    (void)state;
    struct sets *sets = make_sets();
    struct ph__cost_nets *nets;
    assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
    test_learned_at_most("cost_of_sets_mape", error_held_out(nets, sets, num_epochs()), most_error(.05));
    ph__cost_nets_destroy(nets);
    free(sets);
}

/* A net that knew nothing of the parts would be off by half or more. */
static void shuffled_labels_teach_nothing(void **state)
{
    (void)state;
    struct ph__rng_sequence sequence = {{test_seed(), 0, 2}, 0};
    struct sets *sets = make_sets();
    struct ph__cost_nets *nets;
    for (size_t i = NUM_SETS - HELD_OUT; i > 1; i--) {
        struct ph__cost_label *a = &sets->labels[i - 1], *b = &sets->labels[ph__rng_below(&sequence, i)];
        const double ms = a->ms;
        a->ms = b->ms;
        b->ms = ms;
    }
    assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
    test_learned_at_least("cost_of_shuffled_sets_mape", error_held_out(nets, sets, 10), .2);
    ph__cost_nets_destroy(nets);
    free(sets);
}

/* ---- the same numbers as in learning ---- */

/* The graphs that price sets are other ones than the graph that learns. */
static void pricing_agrees_with_validation(void **state)
{
    (void)state;
    const struct ph__cost_training training = {HELD_OUT, 100, 3};
    struct sets *sets = make_sets();
    struct ph__cost_nets *nets;
    double mape, sum = 0;
    assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
    assert_ok(ph__cost_learn_compute(nets, sets->labels, &training, &mape));
    for (size_t i = training.count - training.num_validation; i < training.count; i++)
        sum += fabs(price(nets, &sets->labels[i]) / sets->labels[i].ms - 1);
    assert_near(sum / (double)training.num_validation, mape, 1e-4, 0);
    ph__cost_nets_destroy(nets);
    free(sets);
}

/* ---- exchanges ---- */

enum { NUM_EXCHANGES = 1500, MOST_RANKS = 8, UNSEEN = 6, NUM_UNSEEN = 100 };

struct exchanges {
    double columns[NUM_EXCHANGES][MOST_RANKS], starts[NUM_EXCHANGES][MOST_RANKS],
        ms[NUM_EXCHANGES][MOST_RANKS];
    struct ph__exchange_label labels[NUM_EXCHANGES];
};

/* Each rank waits for the last, and takes what the larger takes of what it sends and receives. */
static void make_exchange(
    struct exchanges *exchanges, size_t index, size_t world_size, struct ph__rng_sequence *sequence)
{
    double *columns = exchanges->columns[index], *starts = exchanges->starts[index];
    double all = 0, last = 0;
    for (size_t i = 0; i < world_size; i++) {
        columns[i] = 4 * (double)(1 + ph__rng_below(sequence, 200));
        starts[i] = i == 0 ? 0 : 3 * ph__rng_next_uniform(sequence);
        all += columns[i];
        last = fmax(last, starts[i]);
    }
    for (size_t i = 0; i < world_size; i++) {
        const double sent = columns[i] * (double)(world_size - 1), received = all - columns[i];
        exchanges->ms[index][i] = .2 + last - starts[i] + .01 * fmax(sent, received) / (double)world_size;
    }
    exchanges->labels[index] = (struct ph__exchange_label){
        PH_EXCHANGE_FORWARD, {world_size, world_size}, columns, starts, exchanges->ms[index]};
}

static void exchanges_of_an_unseen_number_of_ranks_are_priced(void **state)
{
    (void)state;
    static const size_t worlds[] = {2, 4, 8};
    const struct ph__cost_training training = {NUM_EXCHANGES - NUM_UNSEEN, 140, num_epochs()};
    struct ph__rng_sequence sequence = {{test_seed(), 0, 3}, 0};
    struct exchanges *exchanges = calloc(1, sizeof *exchanges);
    struct ph__cost_nets *nets;
    double mape, sum = 0;
    assert_non_null(exchanges);
    for (size_t i = 0; i < NUM_EXCHANGES; i++)
        make_exchange(exchanges, i, i < training.count ? worlds[i % 3] : UNSEEN, &sequence);
    assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
    assert_ok(ph__cost_learn_exchange(nets, exchanges->labels, &training, &mape));
    const struct ph__cost_model model = ph__cost_nets_model(nets);
    for (size_t i = training.count; i < NUM_EXCHANGES; i++) {
        const struct ph__exchange_label *label = &exchanges->labels[i];
        double ms[MOST_RANKS];
        assert_ok(model.exchange(
            model.context, label->way, &label->topology, label->columns, label->starts_ms, ms));
        for (size_t rank = 0; rank < UNSEEN; rank++)
            sum += fabs(ms[rank] / label->ms[rank] - 1);
    }
    test_learned_at_most("cost_of_exchanges_mape", mape, most_error(.05));
    test_learned_at_most("cost_of_unseen_exchanges_mape", sum / (NUM_UNSEEN * UNSEEN), most_error(.1));
    ph__cost_nets_destroy(nets);
    free(exchanges);
}

/* ---- what is refused, and what is the same ---- */

static void the_same_labels_give_the_same_bits(void **state)
{
    (void)state;
    struct sets *sets = make_sets();
    char digests[2][65];
    for (size_t i = 0; i < 2; i++) {
        const struct ph__cost_training training = {600, 60, 2};
        struct ph__cost_nets *nets;
        double mape;
        assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
        assert_ok(ph__cost_learn_compute(nets, sets->labels, &training, &mape));
        assert_ok(ph_checkpoint_digest(nets->store, nets->state, digests[i]));
        assert_fails(ph__cost_learn_compute(nets, sets->labels, &training, &mape), PH_ERROR_USAGE,
            "has learnt already");
        ph__cost_nets_destroy(nets);
    }
    assert_string_equal(digests[0], digests[1]);
    free(sets);
}

static void nothing_to_learn_is_refused(void **state)
{
    (void)state;
    struct sets *sets = make_sets();
    struct ph__cost_nets *nets;
    double mape;
    assert_ok(ph__cost_nets_create(test_seed(), BATCH, &nets));
    assert_fails(ph__cost_learn_compute(nets, sets->labels, &(struct ph__cost_training){5, 5, 1}, &mape),
        PH_ERROR_USAGE, "nothing to learn");
    sets->labels[1].ms = 0;
    assert_fails(ph__cost_learn_compute(nets, sets->labels, &(struct ph__cost_training){5, 0, 1}, &mape),
        PH_ERROR_DATA, "label 1: 0 ms");
    ph__cost_nets_destroy(nets);
    free(sets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_is_no_sum_is_learnt),
        cmocka_unit_test(shuffled_labels_teach_nothing),
        cmocka_unit_test(pricing_agrees_with_validation),
        cmocka_unit_test(exchanges_of_an_unseen_number_of_ranks_are_priced),
        cmocka_unit_test(the_same_labels_give_the_same_bits),
        cmocka_unit_test(nothing_to_learn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
