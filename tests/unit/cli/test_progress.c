#include "support/test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"

static const struct ph_train_progress report = {.epoch = 2,
    .epochs = 10,
    .step = 150,
    .total_steps = 1000,
    .samples_per_s = 12345.6,
    .loss = 0.25,
    .auc = 0.875,
    .seconds_left = 3725.2};

static void report_names_epoch_step_speed_loss_auc_and_time_left(void **state)
{
    (void)state;
    char line[256];
    cli_progress_format(&report, line, sizeof line);
    assert_string_equal(
        line, "epoch 2/10  step 150/1000  12346 samples/s  loss 0.2500  auc 0.8750  left 1:02:05");
}

static void the_auc_of_many_ranks_is_the_first_ones(void **state)
{
    (void)state;
    struct ph_train_progress progress = report;
    progress.num_ranks = 4;
    char line[256];
    cli_progress_format(&progress, line, sizeof line);
    assert_string_equal(
        line, "epoch 2/10  step 150/1000  12346 samples/s  loss 0.2500  auc of rank 0 0.8750  left 1:02:05");
}

static void what_is_unknown_is_a_dash(void **state)
{
    (void)state;
    struct ph_train_progress progress = report;
    progress.total_steps = 0;
    progress.auc = progress.seconds_left = (double)NAN;
    char line[256];
    cli_progress_format(&progress, line, sizeof line);
    assert_string_equal(line, "epoch 2/10  step 150  12346 samples/s  loss 0.2500  auc -  left -");
}

static void evaluation_says_whether_it_is_the_best(void **state)
{
    (void)state;
    struct ph_metrics valid = {.auc = 0.9, .accuracy = (double)NAN, .logloss = 0.3};
    struct ph_train_progress progress = report;
    progress.valid = &valid;
    progress.is_best = true;
    char line[256];
    cli_progress_format(&progress, line, sizeof line);
    assert_string_equal(line, "epoch 2/10  step 150  valid auc 0.9000  logloss 0.3000  (best so far)");
}

static void preparation_says_what_is_left_where_it_is_known(void **state)
{
    (void)state;
    struct ph_prepare_progress progress = {.is_learning = true,
        .num_rows = 3000000,
        .num_text_bytes = 750000000,
        .total_text_bytes = 3000000000,
        .seconds = 5};
    char line[256];
    cli_progress_format_preparation(&progress, line, sizeof line);
    assert_string_equal(line, "learning  25.0% of 3000.0 MB  150.0 MB/s  600000 rows/s  left 0:15");
    progress.is_learning = false;
    progress.total_text_bytes = 0;
    cli_progress_format_preparation(&progress, line, sizeof line);
    assert_string_equal(line, "encoding  750.0 MB  150.0 MB/s  3000000 rows  600000 rows/s");
}

static void show(bool is_live, char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    struct cli_progress progress = {.file = file, .is_live = is_live};
    struct ph_train_progress shorter = report;
    shorter.step = 7;
    assert_ok(cli_progress_show(&progress, &report));
    assert_ok(cli_progress_show(&progress, &shorter));
    cli_progress_end(&progress);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void file_gets_a_plain_line_a_report(void **state)
{
    (void)state;
    char text[1024];
    show(false, text, sizeof text);
    assert_null(strchr(text, '\r'));
    assert_non_null(strstr(text, "left 1:02:05\nepoch 2/10  step 7/1000"));
}

static void terminal_gets_one_line_written_over(void **state)
{
    (void)state;
    char text[1024];
    show(true, text, sizeof text);
    assert_int_equal(text[0], '\r');
    char *second = strchr(text + 1, '\r');
    assert_non_null(second);
    char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_true(end > second && end[1] == '\0');
    assert_int_equal(end - second, second - text); /* the shorter line covers the longer one */
}

static void a_simulation_shows_both_times(void **state)
{
    (void)state;
    struct cli_simulated simulated = {.step = 2, .total_steps = 20, .seconds = .0125, .wall_seconds = 61};
    char line[256];
    cli_progress_format_simulation(&simulated, line, sizeof line);
    assert_string_equal(line, "step 2/20  simulated 0.012500 s  wall time 1:01");
    simulated.total_steps = 0;
    cli_progress_format_simulation(&simulated, line, sizeof line);
    assert_string_equal(line, "step 2  simulated 0.012500 s  wall time 1:01");
}

static void a_simulation_shows_nothing_in_a_file_and_rests_on_a_terminal(void **state)
{
    (void)state;
    const struct cli_simulated simulated = {.step = 1, .seconds = 1, .wall_seconds = 1};
    for (int is_live = 0; is_live < 2; is_live++) {
        FILE *file = tmpfile();
        assert_non_null(file);
        struct cli_progress progress = {.file = file, .is_live = is_live == 1};
        cli_progress_show_simulation(&progress, &simulated);
        const long length = ftell(file);
        cli_progress_show_simulation(&progress, &simulated);
        assert_int_equal(ftell(file), length);
        assert_int_equal(length > 0, is_live);
        fclose(file);
    }
}

static void progress_that_cannot_be_written_stops_nothing(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    struct cli_progress progress = cli_progress_on(full);
    assert_ok(cli_progress_show(&progress, &report));
    assert_true(ferror(full) != 0);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_names_epoch_step_speed_loss_auc_and_time_left),
        cmocka_unit_test(the_auc_of_many_ranks_is_the_first_ones),
        cmocka_unit_test(what_is_unknown_is_a_dash),
        cmocka_unit_test(evaluation_says_whether_it_is_the_best),
        cmocka_unit_test(preparation_says_what_is_left_where_it_is_known),
        cmocka_unit_test(file_gets_a_plain_line_a_report),
        cmocka_unit_test(terminal_gets_one_line_written_over),
        cmocka_unit_test(a_simulation_shows_both_times),
        cmocka_unit_test(a_simulation_shows_nothing_in_a_file_and_rests_on_a_terminal),
        cmocka_unit_test(progress_that_cannot_be_written_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
