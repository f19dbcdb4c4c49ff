#include "data/synth/synth_slates.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/test_support.h"

static struct ph__arena arena;
static struct ph__slates_settings settings;

static void read_settings(const char *set)
{
    const char *const sets[] = {
        "slates.users=100", "slates.items=300", "slates.slate=8", "slates.hours=24", "slates.seed=5", set};
    struct ph__section section = {&ph__slates_options, &settings};
    assert_ok(ph__config_read(NULL, sets, sizeof sets / sizeof *sets, &section, 1, &arena));
}

/* A row of the stream: columns 0 to 6 of it. */
struct row {
    double label, number, truth, seconds, request, user, item;
};

static size_t read_rows(const char *folder, struct row *rows, size_t most)
{
    char path[600], line[512];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/train.tsv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (count < most && fgets(line, sizeof line, file) != NULL) {
        struct row *row = &rows[count++];
        assert_int_equal(sscanf(line, "%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &row->label, &row->number,
                             &row->truth, &row->seconds, &row->request, &row->user, &row->item),
            7);
    }
    fclose(file);
    return count;
}

enum { MOST = 100000 };

static void slates_keep_items_and_never_show_one_twice(void **state)
{
    (void)state;
    struct ph__slates_figures figures;
    struct row *rows = calloc(MOST, sizeof *rows);
    const char *folder = test_fresh_folder();
    assert_non_null(rows);
    read_settings("slates.stay=0.7");
    assert_ok(ph__slates_write(&settings, folder, &figures));
    const size_t count = read_rows(folder, rows, MOST);
    assert_int_equal(count, figures.num_rows);
    assert_int_equal(count, 8 * figures.num_requests);
    assert_true(figures.num_pairs < count / 2);                      /* most pairs come again */
    assert_true(figures.base_rate > .15 && figures.base_rate < .35); /* what stays is liked */
    for (size_t first = 0; first < count; first += 8)
        for (size_t i = first; i < first + 8; i++) {
            assert_true(rows[i].request == rows[first].request && rows[i].user == rows[first].user);
            assert_true(first == 0 || rows[i].seconds >= rows[first - 1].seconds);
            for (size_t k = first; k < i; k++)
                assert_true(rows[k].item != rows[i].item);
        }
    free(rows);
}

static void without_staying_fewer_pairs_come_again(void **state)
{
    (void)state;
    struct ph__slates_figures figures[2];
    for (int is_staying = 0; is_staying < 2; is_staying++) {
        read_settings(is_staying ? "slates.stay=0.7" : "slates.stay=0");
        assert_ok(ph__slates_write(&settings, test_fresh_folder(), &figures[is_staying]));
    }
    assert_true((double)figures[0].num_pairs / (double)figures[0].num_rows >
                1.3 * (double)figures[1].num_pairs / (double)figures[1].num_rows);
}

static void slates_larger_than_the_items_are_refused(void **state)
{
    (void)state;
    struct ph__slates_figures figures;
    read_settings("slates.slate=301");
    assert_fails(ph__slates_write(&settings, test_fresh_folder(), &figures), PH_ERROR_CONFIG, "slates.items");
}

static int drop_settings(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slates_keep_items_and_never_show_one_twice),
        cmocka_unit_test(without_staying_fewer_pairs_come_again),
        cmocka_unit_test(slates_larger_than_the_items_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, drop_settings);
}
