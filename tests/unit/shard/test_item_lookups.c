/* A model that looks items up one by one and pools them itself, learnt by ranks that are threads, under every
 * kind of plan, against the same one learnt by one rank (shard_learner.h).
 *
 * What a lookup by items gives is nowhere summed over ranks, and a row's gradient has its items in the order
 * that they have on one rank: nothing may differ, where rows are cut neither. 1e-5 is for what is added in
 * another order: bags of cut rows, which are pooled where the rows are, and the gradients of tables that
 * every rank has. */
#include "unit/shard/shard_learner.h"

/* c and d are one table. */
static const struct ph_table_slice shared_slices[NUM_FEATURES] = {
    {"a", 50}, {"b", 7}, {"c", 300}, {"c", 300}, {"e", 1}, {"f", 90}};

enum { TARGET, HISTORIES, NUM_HISTORIES = 4 };

static ph_value weights_of(struct ph_builder *builder, const struct training *training)
{
    return training->has_weights ? ph_input_id_weights(builder) : 0;
}

/* The items of a feature, summed by their own weights or (target 0) without: (B,D). */
static ph_value interest(struct ph_builder *builder, const struct training *training, ph_value table,
    size_t feature, ph_value target)
{
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, NUM_FEATURES), feature);
    const ph_value items =
        ph_embedding_rows(builder, bags, table, feature, weights_of(builder, training)); /* (I,D) */
    const ph_value weights =
        target != 0 ? ph_sigmoid(builder, ph_row_dots(builder, items, ph_repeat_rows(builder, target, bags)))
                    : 0; /* (I,1) */
    return ph_pool_rows(builder, items, bags, weights);
}

/* target (B,D) and the interests of four histories: logits of their sum. */
static ph_value attend(struct ph_builder *builder, const struct training *training, ph_value table,
    ph_value target, ph_value *interests)
{
    ph_value s = target;
    for (size_t i = 0; i < NUM_HISTORIES; i++) {
        interests[i] = interest(builder, training, table, HISTORIES + i, target);
        s = ph_add(builder, s, interests[i]);
    }
    return ph_add(builder, ph_row_dots(builder, s, s), ph_row_dots(builder, target, s));
}

static void add_items(struct ph_builder *builder, const struct training *training, ph_value table,
    ph_value *vectors_out, ph_value *logits_out)
{
    ph_value parts[1 + NUM_HISTORIES];
    parts[0] = interest(builder, training, table, TARGET, 0);
    *logits_out = attend(builder, training, table, parts[0], parts + 1);
    *vectors_out = ph_concat(builder, 1 + NUM_HISTORIES, parts, 1);
}

/* Bags of features 0, 2 and 5 beside them: 2 is looked up in both ways. */
static void add_items_and_bags(struct ph_builder *builder, const struct training *training, ph_value table,
    ph_value *vectors_out, ph_value *logits_out)
{
    static const size_t pooled[] = {TARGET, 2, 5};
    const ph_value ids = ph_select_features(builder, ph_input_ids(builder, NUM_FEATURES), 3, pooled);
    const ph_value x =
        ph_embedding_bag(builder, ids, table, training->pooling, weights_of(builder, training)); /* (B,3,D) */
    ph_value parts[1 + NUM_HISTORIES];
    parts[0] = ph_sum_features(builder, x);
    *logits_out = attend(builder, training, table, parts[0], parts + 1);
    *vectors_out = ph_concat(builder, 1 + NUM_HISTORIES, parts, 1);
}

static const char *const kinds[] = {
    "table_wise", "column_wise", "row_wise", "table_row_wise", "table_column_wise", "grid", "data_parallel"};
enum { ROW_WISE = 2, TABLE_ROW_WISE = 3, GRID = 5, DATA_PARALLEL = 6, NUM_KINDS = 7 };

/* The training under each kind of plan; tolerances by kind. Where there is one, the optimizer does not divide
 * by what it has seen: that would make much of little. */
static void check_kinds(const struct training *training, const double *tolerances)
{
    for (size_t i = 0; i < NUM_KINDS; i++) {
        char plan[64];
        struct training whole = *training;
        snprintf(plan, sizeof plan, "default: {kind: %s}\n", kinds[i]);
        whole.plan = plan;
        whole.slices = shared_slices;
        whole.optimizer = tolerances[i] > 0 ? PH_MOMENTUM : PH_ROWWISE_ADAGRAD;
        check_worlds(&whole, tolerances[i]);
        whole.ranks_per_host = 2;
        check(&whole, 4, tolerances[i]);
        check(&whole, 8, tolerances[i]);
    }
}

static void items_are_those_of_one_rank(void **state)
{
    (void)state;
    static const double tolerances[NUM_KINDS] = {[DATA_PARALLEL] = 1e-5};
    check_kinds(&(struct training){.add = add_items}, tolerances);
    check_kinds(&(struct training){.add = add_items, .has_weights = true}, tolerances);
}

static void a_feature_may_be_looked_up_in_both_ways(void **state)
{
    (void)state;
    static const double tolerances[NUM_KINDS] = {
        [ROW_WISE] = 1e-5, [TABLE_ROW_WISE] = 1e-5, [GRID] = 1e-5, [DATA_PARALLEL] = 1e-5};
    check_kinds(&(struct training){.add = add_items_and_bags}, tolerances);
    check_kinds(&(struct training){.add = add_items_and_bags, .pooling = PH_POOL_MEAN, .has_weights = true},
        tolerances);
}

static const char mixed[] =
    "tables:\n  a: {kind: data_parallel}\n  b: {kind: data_parallel}\n  c: {kind: row_wise}\n"
    "  f: {kind: column_wise}\ndefault: {kind: table_wise}\n";

static struct training mixed_training(enum ph_wire_format wire)
{
    return (struct training){
        .plan = mixed, .slices = shared_slices, .add = add_items_and_bags, .has_weights = true, .wire = wire};
}

static void kinds_may_be_mixed(void **state)
{
    (void)state;
    const struct training training = mixed_training(PH_WIRE_FP32);
    check_worlds(&training, 1e-5);
}

static void fewer_bits_on_the_wire_cost_few_digits(void **state)
{
    (void)state;
    static const double tolerances[PH_WIRE_COUNT] = {0, 1e-2, 3e-2, 5e-2};
    for (enum ph_wire_format wire = PH_WIRE_FP16; wire < PH_WIRE_COUNT; wire++) {
        const struct training training = mixed_training(wire);
        check_worlds(&training, tolerances[wire]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_those_of_one_rank),
        cmocka_unit_test(a_feature_may_be_looked_up_in_both_ways),
        cmocka_unit_test(kinds_may_be_mixed),
        cmocka_unit_test(fewer_bits_on_the_wire_cost_few_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
