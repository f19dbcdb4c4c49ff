/* Labels that are blank in some rows, and in all. */
#include "train/job_check.h"

#include "unit/train/rank_training.h"

#define NUM_TASKS 2

/* Batches of two rows and two labels; mask: which of the four are known, row by row. */
static ph_status check(
    const ph_real mask[][2 * NUM_TASKS], size_t num_batches, const struct ph_encoder *encoder)
{
    struct ph__label_check check;
    assert_ok(ph__label_check_init(&check, NUM_TASKS));
    for (size_t i = 0; i < num_batches; i++) {
        const struct ph_batch batch = {.num_samples = 2, .num_tasks = NUM_TASKS, .label_mask = mask[i]};
        ph__label_check_add(&check, &batch);
    }
    const ph_status status =
        ph__label_check_end(&check, encoder, (struct ph__rows_origin){.path = "rows.csv"});
    ph__label_check_fini(&check);
    return status;
}

/* Makes an encoder with a label "click" and a label "buy" that is made of the column "bought". */
static struct ph_encoder *two_labels(void)
{
    static struct ph__field_settings fields[] = {
        {.name = "click", .kind = PH_FIELD_LABEL, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1},
        {.name = "buy",
            .from = "bought",
            .kind = PH_FIELD_LABEL,
            .encoding = PH_ENCODING_INHERIT,
            .hash_seed = -1},
        {.name = "user", .kind = PH_FIELD_ID, .encoding = PH_ENCODING_HASH, .rows = 10, .hash_seed = -1},
    };
    struct ph_data_settings settings = fixture.data;
    struct ph_encoder *encoder;
    settings.paths.train = test_write_file("labels.csv", "click,bought,user\n1,0,u\n");
    settings.format = PH_DATA_CSV;
    settings.fields.items = fields;
    settings.fields.count = COUNT(fields);
    assert_ok(ph_encoder_create(&settings, &encoder));
    return encoder;
}

static void label_that_some_row_knows_is_enough(void **state)
{
    (void)state;
    static const ph_real late[][4] = {{0, 1, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}};
    static const ph_real never[][4] = {{1, 0, 1, 0}, {1, 0, 0, 0}};
    struct ph_encoder *encoder = two_labels();
    assert_ok(check(late, 3, encoder));
    assert_fails(check(late, 2, encoder), PH_ERROR_DATA, "rows.csv: label 'click' (column 'click') is blank");
    assert_fails(check(never, 2, encoder), PH_ERROR_DATA, "rows.csv: label 'buy' (column 'bought') is blank");
    ph_encoder_destroy(encoder);
}

static void batch_without_a_mask_knows_all_labels(void **state)
{
    (void)state;
    struct ph__label_check check;
    const struct ph_batch batch = {.num_samples = 1, .num_tasks = NUM_TASKS}, none = {.num_tasks = NUM_TASKS};
    assert_ok(ph__label_check_init(&check, NUM_TASKS));
    ph__label_check_add(&check, &none);
    assert_int_equal(check.num_unknown, NUM_TASKS);
    ph__label_check_add(&check, &batch);
    assert_int_equal(check.num_unknown, 0);
    ph__label_check_fini(&check);
}

static void all_ranks_end_with_the_label_that_is_blank(void **state)
{
    (void)state;
    char command[2000];
    struct setup *setup = set_up("lr", "blank_on_ranks");
    struct thread_rank_end ends[3] = {{0}};
    const char *path = ph__path_join(&fixture.arena, test_folder(), "blank.tsv");
    snprintf(command, sizeof command, "awk -F'\t' -v OFS='\t' 'NR > 1 { $1 = \"\" } 1' '%s' >'%s'",
        setup->job.paths.train, path);
    assert_int_equal(system(command), 0);
    setup->job.paths.train = path;
    train_on_ranks(setup, 3, NULL, ends);
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_DATA);
        assert_non_null(strstr(ends[rank].text, "blank.tsv: label 'label' (column 'label') is blank"));
    }
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_that_some_row_knows_is_enough),
        cmocka_unit_test(batch_without_a_mask_knows_all_labels),
        cmocka_unit_test(all_ranks_end_with_the_label_that_is_blank),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
