#include "unit/op/table_fixture.h"

#include <math.h>

#include "tensor/float16.h"

static struct table_case small_case(enum ph_optimizer_kind kind)
{
    return (struct table_case){.num_features = 1,
        .dim = 4,
        .num_rows = 5,
        .num_samples = 8,
        .max_ids = 3,
        .optimizer = table_optimizer(kind, false, 0)};
}

/* Every bag of the batch gets one id, this one. */
static void set_all_ids(struct table_model *model, int64_t id)
{
    struct ph_batch *batch = &model->batch;
    const size_t num_bags = batch->num_samples * batch->num_sparse;
    uint32_t *offsets = (uint32_t *)(uintptr_t)batch->offsets;
    int32_t *lengths = (int32_t *)(uintptr_t)batch->lengths;
    int64_t *ids = calloc(num_bags + 1, sizeof *ids);
    for (size_t bag = 0; bag < num_bags; bag++) {
        lengths[bag] = 1;
        offsets[bag + 1] = (uint32_t)bag + 1;
        ids[bag] = id;
    }
    free((void *)(uintptr_t)batch->ids);
    batch->ids = ids;
    batch->num_ids = num_bags;
}

/* Adagrad tells merging from repeated updates: s = (sum g)^2, not sum g^2. */
static void duplicates_are_merged_before_one_update(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        struct table_case trial = small_case(PH_ADAGRAD);
        trial.reads_gradient = reads;
        struct table_model model;
        table_model_init(&model, &trial);
        table_model_next_batch(&model);
        set_all_ids(&model, 3);
        double before[4];
        for (size_t d = 0; d < 4; d++)
            before[d] = (double)model.table->data[3 * 4 + d];
        const double rest[4] = {(double)model.bias->data[0], (double)model.bias->data[1],
            (double)model.bias->data[2], (double)model.bias->data[3]};
        double vectors[4];
        for (size_t d = 0; d < 4; d++)
            vectors[d] = (double)model.vectors->data[d];
        assert_ok(table_model_run(&model, 1));
        for (size_t d = 0; d < 4; d++) {
            double sum = 0;
            for (size_t b = 0; b < 8; b++) {
                const double z = before[d] + rest[d] + (double)model.batch.dense[b] * vectors[d];
                sum += (1 / (1 + exp(-z)) - (double)model.batch.labels[b * 4 + d]) / 32;
            }
            assert_near((double)model.table->slots[0].data[3 * 4 + d], sum * sum, 1e-9, 1e-4);
        }
        table_model_fini(&model);
    }
}

static void rows_that_the_batch_does_not_touch_stay_put(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        struct table_case trial = small_case((enum ph_optimizer_kind)kind);
        trial.optimizer.l2 = 0.1;
        struct table_model model;
        table_model_init(&model, &trial);
        ph_real before[20];
        for (uint64_t step = 1; step < 3; step++) {
            memcpy(before, model.table->data, sizeof before);
            table_model_next_batch(&model);
            set_all_ids(&model, 2);
            assert_ok(table_model_run(&model, step));
            assert_memory_equal(before, model.table->data, 2 * 4 * sizeof *before);
            assert_memory_equal(before + 12, model.table->data + 12, 2 * 4 * sizeof *before);
            assert_memory_not_equal(before + 8, model.table->data + 8, 4 * sizeof *before);
        }
        table_model_fini(&model);
    }
}

static void whole_table_decay_reaches_untouched_rows(void **state)
{
    (void)state;
    struct table_case trial = small_case(PH_SGD);
    trial.optimizer.l2 = 0.5;
    trial.optimizer.is_whole_table = true;
    struct table_model model;
    table_model_init(&model, &trial);
    ph_real before[20];
    memcpy(before, model.table->data, sizeof before);
    table_model_next_batch(&model);
    set_all_ids(&model, 2);
    assert_ok(table_model_run(&model, 1));
    for (size_t i = 0; i < 20; i++)
        if (i / 4 != 2)
            assert_near((double)model.table->data[i], (double)before[i] * (1 - 2 * TABLE_LEARNING_RATE * 0.5),
                0, 1e-5);
    table_model_fini(&model);
}

/* Steps of nothing but decay, clipped: the norm reads the rows, too. Split rows are those of fp32 in two
 * parts. */
static void decay_of_split_rows_is_that_of_fp32(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        struct table_case trial = small_case((enum ph_optimizer_kind)kind);
        trial.num_rows = 4000;
        trial.num_samples = 0;
        trial.max_norm = 1e-3;
        trial.optimizer.l2 = 0.5;
        trial.optimizer.is_whole_table = true;
        struct table_case split_trial = trial;
        split_trial.row_format = PH_ROWS_BF16_SPLIT;
        struct table_model whole, split;
        table_model_init(&whole, &trial);
        table_model_init(&split, &split_trial);
        for (uint64_t step = 1; step < 4; step++) {
            table_model_next_batch(&whole);
            table_model_next_batch(&split);
            assert_ok(table_model_run(&whole, step));
            assert_ok(table_model_run(&split, step));
            for (size_t i = 0; i < whole.table->elements; i++) {
                const uint16_t high = ((const uint16_t *)split.table->memory)[i];
                assert_true(ph__join_float(high, split.table->low[i]) == (float)whole.table->data[i]);
            }
        }
        table_model_fini(&whole);
        table_model_fini(&split);
    }
}

/* A program whose loss does not read the table: only a whole-table decay has anything to do. */
static size_t updates_without_gradient(const struct ph_optimizer *optimizer)
{
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const struct ph_table_slice slice = {"table.f", 5};
    ph_value table = ph_table(builder, "table", 1, &slice, 4, (struct ph_init){PH_INIT_NORMAL, 1});
    ph_value scalar = ph_input_scalar(builder, "s");
    ph_update(builder, table, 0, optimizer, scalar, scalar, 0);
    assert_ok(ph_builder_finish(builder, &program));
    const size_t count = ph_program_num_nodes(program, "update_table");
    ph_program_destroy(program);
    ph_builder_destroy(builder);
    return count;
}

static void a_table_without_gradient_is_updated_only_as_a_whole(void **state)
{
    (void)state;
    struct ph_optimizer optimizer = table_optimizer(PH_SGD, false, 0.1);
    assert_int_equal(updates_without_gradient(&optimizer), 0);
    optimizer.is_whole_table = true;
    assert_int_equal(updates_without_gradient(&optimizer), 1);
    optimizer.l2 = 0;
    assert_int_equal(updates_without_gradient(&optimizer), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duplicates_are_merged_before_one_update),
        cmocka_unit_test(rows_that_the_batch_does_not_touch_stay_put),
        cmocka_unit_test(whole_table_decay_reaches_untouched_rows),
        cmocka_unit_test(decay_of_split_rows_is_that_of_fp32),
        cmocka_unit_test(a_table_without_gradient_is_updated_only_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
