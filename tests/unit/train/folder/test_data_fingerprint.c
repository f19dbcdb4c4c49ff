/* Trainings that are stopped and resumed while something happens to their data. */
#include "train/folder/data_fingerprint.h"

#include <signal.h>

#include "base/file/stream.h"
#include "train/folder/checkpoints.h"
#include "train/loop/loop.h"
#include "unit/train/rank_training.h"

#define COPIES 6 /* of the fixture's rows in the data that is changed: more than both of its ends */
#define BATCH 1500
#define STEPS_AN_EPOCH 12

static struct {
    volatile int signal;
    uint64_t stop_step; /* 0: never */
    size_t num_notes;
    char note[512];
} watch;

static ph_status see_progress(void *context, const struct ph_train_progress *progress)
{
    (void)context;
    if (progress->valid == NULL && progress->step == watch.stop_step)
        watch.signal = SIGTERM;
    return PH_OK;
}

static void see_note(void *context, const char *text)
{
    (void)context;
    watch.num_notes++;
    snprintf(watch.note, sizeof watch.note, "%s", text);
}

static const struct ph_train_observer observer = {.on_progress = see_progress, .on_note = see_note};

/* ---- data ---- */

static void shell(const char *command)
{
    char text[4096];
    snprintf(text, sizeof text, "cd '%s' && { %s; }", test_folder(), command);
    assert_int_equal(system(text), 0);
}

/* NAME.tsv, the rows of the fixture's training data, again and again. */
static const char *write_rows(const char *name)
{
    char command[512], file[64];
    snprintf(command, sizeof command,
        "head -n 1 train.tsv >%s.tsv; for i in $(seq %d); do tail -n +2 train.tsv >>%s.tsv; done", name,
        COPIES, name);
    snprintf(file, sizeof file, "%s.tsv", name);
    shell(command);
    return test_path(file);
}

/* A compressed copy, by its name's ending. */
static void pack(const char *from, const char *to)
{
    char *text;
    size_t size;
    struct ph__writer *writer;
    assert_ok(ph__file_read(&fixture.arena, from, 1 << 24, &text, &size));
    assert_ok(ph__writer_open(to, &writer));
    assert_ok(ph__writer_write(writer, text, size));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
}

/* The label of the first row behind a part of the file becomes the other one. */
static void change_label(const char *path, double part)
{
    uint64_t num_bytes;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_ok(ph__file_size(path, &num_bytes));
    assert_int_equal(fseek(file, (long)((double)num_bytes * part), SEEK_SET), 0);
    int byte = fgetc(file);
    while (byte != '\n')
        byte = fgetc(file);
    byte = fgetc(file);
    assert_true(byte == '0' || byte == '1');
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(byte ^ 1, file);
    fclose(file);
}

/* ---- trainings ---- */

static struct setup *set_up_watched(const char *folder, const char *train_path)
{
    struct setup *setup = set_up("dnn", folder);
    setup->train.batch_size = BATCH;
    setup->train.report_seconds = 0;
    setup->train.patience = 0;
    setup->job.paths.train = train_path;
    setup->job.options.observer = &observer;
    setup->job.options.stop_signal = &watch.signal;
    setup->job.reading.num_prefetched = 2;
    memset(&watch, 0, sizeof watch);
    remove_folder(setup);
    return setup;
}

/* Trains until behind the step that follows the report of this one. */
static void train_until(struct setup *setup, uint64_t step)
{
    struct ph_train_summary summary;
    watch.stop_step = step;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_TERMINATED, "--resume continues from it");
    watch.stop_step = 0;
    watch.signal = 0;
    setup->job.options.is_resumed = true;
}

static void expect_refused(struct setup *setup, const char *what)
{
    struct ph_train_summary summary;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DATA, what);
    assert_non_null(strstr(ph_error_text(), "put them back, or begin a new training with another --out"));
    assert_false(ph__file_exists(ph__path_join(&fixture.arena, setup->folder, "summary.json")));
}

static struct ph_train_summary expect_resumed(struct setup *setup)
{
    struct ph_train_summary summary;
    assert_ok(ph__train(&setup->job, &summary));
    assert_true(summary.resumed_step > 0 && !summary.was_finished);
    return summary;
}

/* ---- text ---- */

static void rows_behind_are_noticed(void **state)
{
    (void)state;
    struct setup *setup = set_up_watched("behind", write_rows("behind"));
    train_until(setup, 4);
    shell("cp behind.tsv kept.tsv && tail -n 5 behind.tsv >>behind.tsv");
    expect_refused(setup, "behind.tsv: had ");
    shell("cp kept.tsv behind.tsv");
    expect_resumed(setup);
    free(setup);
}

static void reversed_rows_are_noticed(void **state)
{
    (void)state;
    struct setup *setup = set_up_watched("reversed", write_rows("reversed"));
    train_until(setup, 4);
    shell("{ head -n 1 reversed.tsv; tail -n +2 reversed.tsv | tac; } >back.tsv && mv back.tsv reversed.tsv");
    expect_refused(setup, "reversed.tsv: the contents have changed since the training began");
    free(setup);
}

/* Read as far as the label that is changed, and stopped there, again and again. */
static void changed_row_is_noticed_once_it_was_read(void **state)
{
    (void)state;
    for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
        const char *path = write_rows("edited");
        struct setup *setup = set_up_watched("edited", path);
        setup->job.reading.is_shuffled = is_shuffled;
        setup->job.reading.shuffle_bytes = 64 << 10; /* a twentieth of the rows */
        train_until(setup, 4);
        train_until(setup, 8);
        change_label(path, 0.2);
        expect_refused(setup, "which the training has read, have changed");
        change_label(path, 0.2);
        change_label(path, 0.55); /* read since it was resumed */
        expect_refused(setup, "which the training has read, have changed");
        change_label(path, 0.55);
        expect_resumed(setup);
        free(setup);
    }
}

static void row_that_was_not_read_yet_may_change(void **state)
{
    (void)state;
    const char *path = write_rows("unread");
    struct setup *setup = set_up_watched("unread", path);
    setup->job.reading.is_shuffled = false;
    setup->job.reading.num_prefetched = 0;
    train_until(setup, 2);
    change_label(path, 0.75);
    expect_resumed(setup);
    free(setup);
}

static void changed_row_of_a_former_epoch_is_noticed(void **state)
{
    (void)state;
    const char *path = write_rows("former");
    struct setup *setup = set_up_watched("former", path);
    setup->job.reading.is_shuffled = false;
    train_until(setup, STEPS_AN_EPOCH + 2);
    change_label(path, 0.75);
    expect_refused(setup, "former.tsv: the first ");
    change_label(path, 0.75);
    train_until(setup, STEPS_AN_EPOCH + 4);
    change_label(path, 0.75);
    expect_refused(setup, "former.tsv: the first ");
    free(setup);
}

static void compressed_data_is_compared_as_it_lies(void **state)
{
    (void)state;
    static const char *const names[] = {"packed.tsv.gz", "packed.tsv.zst"};
    const char *rows = write_rows("unpacked");
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *path = test_path(names[i]);
        pack(rows, path);
        struct setup *setup = set_up_watched("packed", path);
        setup->job.reading.is_shuffled = false;
        train_until(setup, 4);
        train_until(setup, STEPS_AN_EPOCH + 3);
        change_label(rows, 0.4);
        pack(rows, path);
        expect_refused(setup, names[i]);
        change_label(rows, 0.4);
        pack(rows, path);
        expect_resumed(setup);
        free(setup);
    }
}

static void each_file_of_a_pattern_is_compared(void **state)
{
    (void)state;
    write_rows("whole");
    shell("for i in 1 2 3; do cp whole.tsv day_$i.tsv; done");
    struct setup *setup = set_up_watched("pattern", test_path("day_*.tsv"));
    setup->job.reading.is_shuffled = false;
    train_until(setup, 2 * STEPS_AN_EPOCH - 5);
    change_label(test_path("day_2.tsv"), 0.3);
    expect_refused(setup, "day_2.tsv: the first ");
    change_label(test_path("day_2.tsv"), 0.3);
    change_label(test_path("day_3.tsv"), 0.5); /* not read yet */
    shell("cp whole.tsv day_4.tsv");
    expect_refused(
        setup, "3 files when the training began, and has 4 now; the first new or changed file is ");
    shell("rm day_4.tsv && mv day_3.tsv night_3.tsv");
    expect_refused(setup, "3 files when the training began, and has 2 now");
    shell("mv night_3.tsv day_3.tsv");
    setup->train.epochs = 1;
    expect_resumed(setup);
    free(setup);
}

/* ---- other rows ---- */

static void changed_validation_rows_are_noticed(void **state)
{
    (void)state;
    const char *path = write_rows("checked");
    struct setup *setup = set_up_watched("checked", write_rows("learnt"));
    setup->job.paths.valid = path;
    train_until(setup, STEPS_AN_EPOCH + 2);
    change_label(path, 0.5);
    expect_refused(setup, "checked.tsv: the first ");
    change_label(path, 0.5);
    expect_resumed(setup);
    free(setup);
}

static void test_rows_may_change(void **state)
{
    (void)state;
    const char *path = write_rows("tested");
    struct setup *setup = set_up_watched("tested", write_rows("learnt"));
    setup->job.paths.test = path;
    train_until(setup, STEPS_AN_EPOCH + 2);
    change_label(path, 0);
    expect_resumed(setup);
    free(setup);
}

static void prepared_data_is_known_by_its_manifest(void **state)
{
    (void)state;
    struct ph_data_settings settings = fixture.data;
    struct ph_prepare_summary prepared;
    const struct ph_prepare_options options = {.size = sizeof options, .num_threads = 1};
    const char *rows = write_rows("raw");
    settings.paths.train = rows;
    settings.paths.valid = settings.paths.test = NULL;
    assert_ok(ph_prepare(&settings, test_path("prepared"), &options, &prepared));
    struct setup *setup = set_up_watched("of_prepared", test_path("prepared/train"));
    train_until(setup, 4);
    change_label(rows, 0.5);
    assert_ok(ph_prepare(&settings, test_path("others"), &options, &prepared));
    shell("mv prepared kept && mv others prepared");
    expect_refused(setup, "prepared/train/manifest.json: ");
    setup->job.paths.train = test_path("kept/train");
    expect_resumed(setup);
    free(setup);
}

/* ---- the rest ---- */

/* Removes the data record from the newest checkpoint, as an older version would have left it. */
static void forget_data(struct setup *setup)
{
    struct ph__trainer *trainer;
    assert_ok(ph__trainer_create(&setup->job, &trainer));
    ph__data_fingerprint_fini(&trainer->data);
    assert_ok(ph__trainer_save(trainer));
    ph__trainer_destroy(trainer);
}

static void checkpoint_without_a_record_resumes_with_a_note(void **state)
{
    (void)state;
    const char *path = write_rows("older");
    struct setup *setup = set_up_watched("older", path);
    setup->job.reading.is_shuffled = false;
    train_until(setup, 4);
    forget_data(setup);
    change_label(path, 0.2);
    train_until(setup, 7);
    assert_int_equal(watch.num_notes, 1);
    assert_non_null(strstr(watch.note, "changes of them are not checked"));
    shell("tail -n 5 older.tsv >>older.tsv"); /* from now on it is known what there was */
    expect_refused(setup, "older.tsv: had ");
    free(setup);
}

static void signal_ends_the_comparing(void **state)
{
    (void)state;
    const char *path = write_rows("compared");
    struct setup *setup = set_up_watched("compared", path);
    struct ph__data_fingerprint fingerprint;
    char *text;
    assert_ok(ph__data_fingerprint_begin(&fingerprint, &setup->job));
    assert_ok(ph__fingerprint_begin(&fingerprint.train, 0));
    ph__running_checksum_add(ph__fingerprint_checksum(&fingerprint.train, 0, path), 0, "label", 5);
    ph__fingerprint_tell(&fingerprint.train, &fingerprint.train_place);
    assert_ok(ph__data_fingerprint_text(&fingerprint, &setup->job, &text));
    ph__data_fingerprint_fini(&fingerprint);
    watch.signal = SIGINT;
    assert_ok(ph__data_fingerprint_begin(&fingerprint, &setup->job));
    assert_fails(
        ph__data_fingerprint_resume(&fingerprint, &setup->job, text, "c", &(struct ph__meanwhile){0}),
        PH_ERROR_INTERRUPTED, "while the data were compared");
    ph__data_fingerprint_fini(&fingerprint);
    free(text);
    free(setup);
}

static void ranks_compare_the_data_together(void **state)
{
    (void)state;
    const char *path = write_rows("spread");
    struct setup *setup = set_up_watched("spread", path);
    struct thread_rank_end ends[3] = {{0}};
    setup->job.reading.is_shuffled = false;
    setup->train.max_steps = STEPS_AN_EPOCH / 2;
    setup->train.checkpoint_steps = 3;
    train_on_ranks(setup, 3, NULL, NULL);
    setup->train.max_steps = 0;
    setup->job.options.is_resumed = true;
    change_label(path, 0.25);
    train_on_ranks(setup, 3, NULL, ends);
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_DATA);
        assert_non_null(strstr(ends[rank].text, "spread.tsv: the first "));
    }
    change_label(path, 0.25);
    assert_int_equal(train_on_ranks(setup, 2, NULL, NULL).resumed_step, STEPS_AN_EPOCH / 2);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_behind_are_noticed),
        cmocka_unit_test(reversed_rows_are_noticed),
        cmocka_unit_test(changed_row_is_noticed_once_it_was_read),
        cmocka_unit_test(row_that_was_not_read_yet_may_change),
        cmocka_unit_test(changed_row_of_a_former_epoch_is_noticed),
        cmocka_unit_test(compressed_data_is_compared_as_it_lies),
        cmocka_unit_test(each_file_of_a_pattern_is_compared),
        cmocka_unit_test(changed_validation_rows_are_noticed),
        cmocka_unit_test(test_rows_may_change),
        cmocka_unit_test(prepared_data_is_known_by_its_manifest),
        cmocka_unit_test(checkpoint_without_a_record_resumes_with_a_note),
        cmocka_unit_test(signal_ends_the_comparing),
        cmocka_unit_test(ranks_compare_the_data_together),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
