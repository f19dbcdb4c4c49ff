#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/sum/digest.h"
#include "data/prepared/prepared_source.h"
#include "unit/data/prepare_fixture.h"

/* ---- folders ---- */

#define MAX_FOLDER_FILES 256

struct listing {
    size_t num_files;
    char names[MAX_FOLDER_FILES][64]; /* relative to the folder */
    char digests[MAX_FOLDER_FILES][65];
};

static struct listing *listing_in_the_making;
static size_t listing_root_length;

static int list_file(const char *path, const struct stat *status, int flag, struct FTW *place)
{
    (void)status;
    (void)place;
    struct listing *listing = listing_in_the_making;
    if (flag != FTW_F)
        return 0;
    assert_true(listing->num_files < MAX_FOLDER_FILES);
    snprintf(listing->names[listing->num_files], 64, "%s", path + listing_root_length + 1);
    assert_ok(ph__digest_file(path, listing->digests[listing->num_files]));
    listing->num_files++;
    return 0;
}

static struct listing *list_folder(const char *name)
{
    struct listing *listing = calloc(1, sizeof *listing);
    assert_non_null(listing);
    const char *path = test_path(name);
    listing_in_the_making = listing;
    listing_root_length = strlen(path);
    assert_int_equal(nftw(path, list_file, 16, FTW_PHYS), 0);
    return listing;
}

/* The same files with the same bytes; prepared.yaml names its own folder. */
static void assert_folders_equal(const char *one_name, const char *other_name)
{
    struct listing *one = list_folder(one_name), *other = list_folder(other_name);
    assert_int_equal(one->num_files, other->num_files);
    for (size_t i = 0; i < one->num_files; i++) {
        size_t k = 0;
        while (k < other->num_files && strcmp(one->names[i], other->names[k]) != 0)
            k++;
        assert_true(k < other->num_files);
        if (strcmp(one->names[i], "prepared.yaml") != 0)
            assert_string_equal(one->digests[i], other->digests[k]);
    }
    free(one);
    free(other);
}

static void remove_from(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", test_folder(), folder, name);
    assert_int_equal(unlink(path), 0);
}

/* ---- tests ---- */

static void the_rows_are_those_of_the_text(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const char *path = prepare_file("train.csv", PREPARE_ROWS, 1);
    prepare_fixture_init(&fixture, path);
    assert_ok(prepare_into(&fixture, "rows", 2, &summary));
    assert_int_equal(summary.num_rows, PREPARE_ROWS);
    assert_int_equal(summary.num_bad_rows, 0);
    uint64_t size;
    assert_ok(ph__file_size(path, &size));
    assert_int_equal(summary.num_text_bytes, size);
    assert_int_equal(summary.num_parts, (size - 1) / PREPARE_PART_BYTES + 1);
    assert_int_equal(summary.num_kept_parts, 0);
    struct ph_encoder *encoder = prepare_encoder("rows");
    for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 97,
            .reading.is_shuffled = is_shuffled,
            .seed = 5,
            .epoch = 2,
            .reading.num_prefetched = 1};
        assert_passes_equal(
            fixture_open(encoder, path, &options), fixture_open(encoder, test_path("rows/train"), &options));
        options.reading.negative_rate = 0.3;
        assert_passes_equal(
            fixture_open(encoder, path, &options), fixture_open(encoder, test_path("rows/train"), &options));
    }
    ph_encoder_destroy(encoder);
}

static void the_result_does_not_depend_on_threads(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    fixture.settings.paths.valid = prepare_file("valid.csv", 300, 2);
    fixture.settings.paths.test = prepare_file("test.csv.zst", 300, 3);
    assert_ok(prepare_into(&fixture, "one", 1, &summary));
    assert_int_equal(summary.num_threads, 1);
    assert_ok(prepare_into(&fixture, "four", 4, &summary));
    assert_int_equal(summary.num_threads, 4);
    assert_int_equal(summary.num_rows, PREPARE_ROWS + 600);
    assert_folders_equal("one", "four");
}

/* The same rows, in blocks of as many as are asked for. */
static void blocks_have_the_rows_that_are_asked_for(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const char *path = prepare_file("train.csv", PREPARE_ROWS, 1);
    prepare_fixture_init(&fixture, path);
    struct ph_prepare_options options = {
        .size = sizeof options, .num_threads = 1, .settings.block_rows = 700};
    assert_ok(ph_prepare(&fixture.settings, test_path("blocks"), &options, &summary));
    struct ph_encoder *encoder = prepare_encoder("blocks");
    struct ph__prepared_set *set;
    assert_ok(ph__prepared_set_open(test_path("blocks/train"), encoder, &set));
    assert_int_equal(ph__prepared_set_num_blocks(set), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ph__prepared_set_block(set, i)->num_rows, i < 4 ? 700 : 200);
    ph__prepared_set_close(set);
    const struct ph_batches_options batches = {.size = sizeof batches, .batch_size = 97};
    assert_passes_equal(
        fixture_open(encoder, path, &batches), fixture_open(encoder, test_path("blocks/train"), &batches));
    ph_encoder_destroy(encoder);
}

static void several_files_and_compressed_ones_are_one_split(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_file("day_1.csv", 1000, 1);
    prepare_file("day_2.csv.gz", 1000, 2);
    prepare_file("day_3.csv.zst", 10, 3);
    prepare_fixture_init(&fixture, test_path("day_*"));
    assert_ok(prepare_into(&fixture, "days", 3, &summary));
    assert_int_equal(summary.num_rows, 2010);
    struct ph_encoder *encoder = prepare_encoder("days");
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 100};
    assert_passes_equal(fixture_open(encoder, test_path("day_*"), &options),
        fixture_open(encoder, test_path("days/train"), &options));
    ph_encoder_destroy(encoder);
}

static void what_an_interruption_has_left_is_kept_and_completed(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary whole, resumed;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    fixture.settings.paths.valid = prepare_file("valid.csv.gz", 2500, 2); /* parts of one block */
    assert_ok(prepare_into(&fixture, "whole", 2, &whole));
    assert_ok(prepare_into(&fixture, "broken", 2, &whole));
    remove_from("broken", "prepared.yaml");
    remove_from("broken", "train/manifest.json");
    remove_from("broken", "valid/manifest.json");
    remove_from("broken", "train/part-00000-00003.phd");
    remove_from("broken", "train/part-00000-00000.phd");
    remove_from("broken", "valid/part-00000-00001.phd");
    assert_int_equal(truncate(test_path("broken/train/part-00000-00005.phd"), 1000), 0);
    fixture_file("broken/train/part-00000-00003.phd.tmp", "half a block");
    assert_ok(prepare_into(&fixture, "broken", 2, &resumed));
    /* of the compressed file also the part behind the missing one is made anew */
    assert_int_equal(resumed.num_kept_parts, whole.num_parts - 5);
    assert_int_equal(resumed.num_rows, whole.num_rows);
    assert_int_equal(resumed.num_text_bytes, whole.num_text_bytes);
    assert_folders_equal("whole", "broken");
}

static void a_signal_stops_and_leaves_what_can_be_resumed(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    volatile int stop_signal = SIGTERM;
    struct ph_prepare_options options = {.size = sizeof options,
        .num_threads = 2,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .stop_signal = &stop_signal};
    assert_fails(ph_prepare(&fixture.settings, test_path("stopped"), &options, &summary), PH_ERROR_TERMINATED,
        "stopped by a signal");
    stop_signal = SIGINT;
    options.may_resume = true;
    assert_fails(ph_prepare(&fixture.settings, test_path("stopped"), &options, &summary),
        PH_ERROR_INTERRUPTED, "stopped by a signal");
    assert_false(ph__file_exists(test_path("stopped/train/manifest.json")));
    stop_signal = 0;
    assert_ok(ph_prepare(&fixture.settings, test_path("stopped"), &options, &summary));
    assert_ok(prepare_into(&fixture, "unstopped", 1, &summary));
    assert_folders_equal("stopped", "unstopped");
}

static void a_folder_that_is_not_empty_is_refused_without_resume(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    const struct ph_prepare_options options = {.size = sizeof options, .num_threads = 1};
    assert_ok(ph_prepare(&fixture.settings, test_path("taken"), &options, &summary));
    assert_fails(ph_prepare(&fixture.settings, test_path("taken"), &options, &summary), PH_ERROR_USAGE,
        "taken: the folder is not empty; continue its preparation with --resume");
}

static void a_folder_has_one_preparation_at_a_time(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    int lock;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    assert_ok(ph__directory_create(test_path("busy")));
    assert_ok(ph__directory_lock(test_path("busy"), &lock));
    assert_fails(prepare_into(&fixture, "busy", 1, &summary), PH_ERROR_USAGE, "busy: another process uses");
    ph__directory_unlock(lock);
    assert_ok(prepare_into(&fixture, "busy", 1, &summary));
}

/* In the last row: the file's size stays as it is. */
static void change_byte(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -2, SEEK_END), 0);
    assert_int_equal(fputc('z', file), 'z');
    assert_int_equal(fclose(file), 0);
}

static void what_has_changed_since_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const char *path = prepare_file("changing.csv", 100, 1);
    prepare_fixture_init(&fixture, path);
    assert_ok(prepare_into(&fixture, "changed", 1, &summary));
    const struct ph_prepare_options options = {
        .size = sizeof options, .num_threads = 1, .settings.part_bytes = 4096, .may_resume = true};
    assert_fails(ph_prepare(&fixture.settings, test_path("changed"), &options, &summary), PH_ERROR_CONFIG,
        "prepare.part_bytes was 8192 and is now 4096");
    const struct ph_prepare_options smaller = {.size = sizeof smaller,
        .num_threads = 1,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .settings.block_rows = 100,
        .may_resume = true};
    assert_fails(ph_prepare(&fixture.settings, test_path("changed"), &smaller, &summary), PH_ERROR_CONFIG,
        "prepare.block_rows was 1024 and is now 100");
    fixture.fields[2].rows = 4000;
    assert_fails(
        prepare_into(&fixture, "changed", 1, &summary), PH_ERROR_CONFIG, "data.fields[2].rows was '3000'");
    fixture.fields[2].rows = PREPARE_ROWS;
    fixture.settings.paths.valid = prepare_file("late.csv", 10, 1);
    assert_fails(prepare_into(&fixture, "changed", 1, &summary), PH_ERROR_DATA,
        "the preparation began with 1 files, and now has 2");
    fixture.settings.paths.valid = NULL;
    prepare_file("changing.csv", 101, 1);
    assert_fails(prepare_into(&fixture, "changed", 1, &summary), PH_ERROR_DATA, "changing.csv: had ");
    prepare_file("changing.csv", 100, 1);
    change_byte(path);
    assert_fails(prepare_into(&fixture, "changed", 1, &summary), PH_ERROR_DATA,
        "changing.csv: the contents have changed since the preparation began");
    prepare_file("changing.csv", 100, 1);
    fixture.settings.reading.max_bad_rows = 7; /* may change */
    assert_ok(prepare_into(&fixture, "changed", 1, &summary));
}

/* The words' vocabulary is learnt in a first pass, whose parts are of no use for other data. */
static void what_has_changed_since_the_first_pass_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    volatile int stop_signal = SIGTERM;
    struct ph_prepare_options options = {.size = sizeof options,
        .num_threads = 1,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .may_resume = true,
        .stop_signal = &stop_signal};
    prepare_fixture_init(&fixture, prepare_file("growing.csv", 1000, 1));
    const char *folder = test_path("learning");
    assert_fails(ph_prepare(&fixture.settings, folder, &options, &summary), PH_ERROR_TERMINATED, "stopped");
    assert_false(ph__file_exists(test_path("learning/encoder.json")));
    stop_signal = 0;
    options.settings.part_bytes = 4096;
    assert_fails(ph_prepare(&fixture.settings, folder, &options, &summary), PH_ERROR_CONFIG,
        "prepare.part_bytes was 8192 and is now 4096");
    options.settings.part_bytes = PREPARE_PART_BYTES;
    prepare_file("growing.csv", 1100, 1);
    assert_fails(
        ph_prepare(&fixture.settings, folder, &options, &summary), PH_ERROR_DATA, "growing.csv: had ");
    prepare_file("growing.csv", 1000, 1);
    assert_ok(ph_prepare(&fixture.settings, folder, &options, &summary));
}

struct reports {
    struct ph_prepare_progress learning, encoding; /* the last of each pass */
};

static void take_report(void *context, const struct ph_prepare_progress *progress)
{
    struct reports *reports = context;
    assert_true(progress->seconds >= 0);
    *(progress->is_learning ? &reports->learning : &reports->encoding) = *progress;
}

/* Both passes report all that there is to do, and when they are resumed what was left of it. */
static void progress_is_told_of_both_passes(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    struct reports reports = {0};
    uint64_t size;
    const char *path = prepare_file("told.csv", PREPARE_ROWS, 1), *folder = test_path("told");
    const struct ph_prepare_options options = {.size = sizeof options,
        .num_threads = 2,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .may_resume = true,
        .on_progress = take_report,
        .progress_context = &reports};
    prepare_fixture_init(&fixture, path);
    assert_ok(ph_prepare(&fixture.settings, folder, &options, &summary));
    assert_ok(ph__file_size(path, &size));
    assert_int_equal(reports.learning.total_text_bytes, size);
    assert_int_equal(reports.learning.num_text_bytes, size);
    assert_int_equal(reports.learning.num_rows, PREPARE_ROWS);
    assert_int_equal(reports.encoding.total_text_bytes, size);
    assert_int_equal(reports.encoding.num_text_bytes, size);
    assert_int_equal(reports.encoding.num_rows, PREPARE_ROWS);
    remove_from("told", "train/part-00000-00003.phd");
    remove_from("told", "train/manifest.json");
    reports = (struct reports){0};
    assert_ok(ph_prepare(&fixture.settings, folder, &options, &summary));
    assert_int_equal(reports.learning.num_rows, 0);
    assert_int_equal(reports.encoding.total_text_bytes, PREPARE_PART_BYTES);
    assert_in_range(reports.encoding.num_rows, 1, 1000);
}

static ph_status fail_entry(void *argument, const char *name)
{
    (void)argument;
    return ph_fail(PH_ERROR_DATA, "%s is in the folder", name);
}

/* What is wrong with the settings is said before anything is written, so that they can be mended. */
static void wrong_settings_leave_the_folder_empty(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const struct ph_prepare_options options = {.size = sizeof options, .num_threads = 1};
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    fixture.fields[1].name = "cuont";
    assert_fails(ph_prepare(&fixture.settings, test_path("mended"), &options, &summary), PH_ERROR_CONFIG,
        "column 'count' has no entry");
    assert_ok(ph__directory_visit(test_path("mended"), fail_entry, NULL));
    fixture.fields[1].name = "count";
    fixture.settings.paths.valid = test_path("absent.csv");
    assert_fails(ph_prepare(&fixture.settings, test_path("mended"), &options, &summary), PH_ERROR_DATA,
        "absent.csv: No such file");
    assert_ok(ph__directory_visit(test_path("mended"), fail_entry, NULL));
    fixture.settings.paths.valid = NULL;
    assert_ok(ph_prepare(&fixture.settings, test_path("mended"), &options, &summary));
}

/* More than a part of them: the part in whose text the header lies has no rows before it. */
static void empty_lines_before_the_header_are_no_rows(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    struct ph__writer *writer;
    const char *path = test_path("late.csv");
    assert_ok(ph__writer_open(path, &writer));
    for (int i = 0; i < PREPARE_PART_BYTES + 100; i++)
        assert_ok(ph__writer_printf(writer, "\n"));
    assert_ok(ph__writer_printf(writer, "label,count,row,words,scores,weight,user\n"
                                        "1,2,3,w1,,1,u1\n0,many,4,w2,,1,u2\n1,5,6,w3,,1,u3\n"));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    prepare_fixture_init(&fixture, path);
    fixture.settings.reading.max_bad_rows = 1;
    assert_ok(prepare_into(&fixture, "late", 2, &summary));
    assert_int_equal(summary.num_rows, 2);
    char place[64];
    snprintf(place, sizeof place, "late.csv:%d: field 'count'", PREPARE_PART_BYTES + 103);
    assert_non_null(strstr(prepare_first_bad_row, place));
}

static void what_cannot_be_prepared_is_named(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, NULL);
    assert_fails(prepare_into(&fixture, "nothing", 1, &summary), PH_ERROR_CONFIG, "data.train is missing");
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    fixture.settings.paths.test = test_path("missing.csv");
    assert_fails(
        prepare_into(&fixture, "without_test", 1, &summary), PH_ERROR_DATA, "missing.csv: No such file");
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    assert_fails(ph_prepare(&fixture.settings, "/proc/nowhere",
                     &(struct ph_prepare_options){.size = sizeof(struct ph_prepare_options)}, &summary),
        PH_ERROR_DISK, "/proc/nowhere");
}

/* Whether preparing fails just as reading the file does, and leaves nothing that passes for a split. */
static void assert_refused_as_raw(
    struct fixture *fixture, const char *path, const char *folder, const char *split, const char *error)
{
    struct ph_prepare_summary summary;
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    char manifest[256];
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = 10,
        .reading.max_bad_rows = fixture->settings.reading.max_bad_rows};
    prepare_file("good.csv", 10, 1);
    struct fixture good = *fixture;
    good.settings.paths.train = test_path("good.csv");
    good.settings.fields.items = good.fields;
    struct ph_encoder *encoder = fixture_encoder(&good);
    ph_status status = ph_batches_open(encoder, path, &options, &batches);
    for (bool is_end = false; status == PH_OK && !is_end; is_end = batch == NULL)
        status = ph_batches_next(batches, &batch);
    assert_fails(status, PH_ERROR_DATA, error);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    assert_fails(prepare_into(fixture, folder, 2, &summary), PH_ERROR_DATA, error);
    snprintf(manifest, sizeof manifest, "%s/%s/manifest.json", folder, split);
    assert_false(ph__file_exists(test_path(manifest)));
}

static void data_without_rows_is_refused_as_it_is_raw(void **state)
{
    (void)state;
    struct fixture fixture;
    prepare_fixture_init(&fixture, NULL);
    fixture.settings.encoding = PH_ENCODING_HASH; /* no pass before that would find out */
    fixture.settings.rows = 100;
    fixture.settings.paths.train = prepare_file("header.csv", 0, 1);
    assert_refused_as_raw(
        &fixture, fixture.settings.paths.train, "header", "train", "header.csv: has no rows");
    fixture.settings.paths.train =
        fixture_file("all_bad.csv", "label,count,row,words,scores,weight,user\n1,x\n2\n");
    fixture.settings.reading.max_bad_rows = 2;
    assert_refused_as_raw(
        &fixture, fixture.settings.paths.train, "all_bad", "train", "all_bad.csv: has no rows");
    fixture.settings.paths.train = prepare_file("train.csv", 100, 1);
    fixture.settings.paths.valid = prepare_file("header.csv.gz", 0, 1);
    assert_refused_as_raw(
        &fixture, fixture.settings.paths.valid, "valid_empty", "valid", "header.csv.gz: has no rows");
    fixture.settings.paths.valid = NULL;
    prepare_file("several_1.csv", 100, 1);
    fixture_file("several_2.csv", "");
    fixture.settings.paths.train = test_path("several_*.csv");
    assert_refused_as_raw(&fixture, fixture.settings.paths.train, "several", "train", "several_2.csv: ");
}

static void prepared_data_is_not_prepared_again(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    assert_ok(prepare_into(&fixture, "first", 1, &summary));
    fixture.settings.prepared = test_path("first");
    fixture.settings.paths.train = test_path("first/train");
    assert_fails(
        prepare_into(&fixture, "second", 1, &summary), PH_ERROR_CONFIG, "first' is prepared already");
    assert_false(ph__file_exists(test_path("second")));
}

static void a_full_disk_is_a_disk_error(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        test_skip("there is no /dev/full");
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    assert_ok(prepare_into(&fixture, "full", 2, &summary));
    remove_from("full", "train/part-00000-00002.phd");
    assert_int_equal(symlink("/dev/full", test_path("full/train/part-00000-00002.phd.tmp")), 0);
    assert_fails(prepare_into(&fixture, "full", 2, &summary), PH_ERROR_DISK, "No space left");
    assert_ok(prepare_into(&fixture, "full", 2, &summary));
    assert_ok(prepare_into(&fixture, "roomy", 2, &summary));
    assert_folders_equal("full", "roomy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_those_of_the_text),
        cmocka_unit_test(the_result_does_not_depend_on_threads),
        cmocka_unit_test(blocks_have_the_rows_that_are_asked_for),
        cmocka_unit_test(several_files_and_compressed_ones_are_one_split),
        cmocka_unit_test(what_an_interruption_has_left_is_kept_and_completed),
        cmocka_unit_test(a_signal_stops_and_leaves_what_can_be_resumed),
        cmocka_unit_test(a_folder_that_is_not_empty_is_refused_without_resume),
        cmocka_unit_test(a_folder_has_one_preparation_at_a_time),
        cmocka_unit_test(what_has_changed_since_is_refused),
        cmocka_unit_test(what_has_changed_since_the_first_pass_is_refused),
        cmocka_unit_test(progress_is_told_of_both_passes),
        cmocka_unit_test(wrong_settings_leave_the_folder_empty),
        cmocka_unit_test(empty_lines_before_the_header_are_no_rows),
        cmocka_unit_test(what_cannot_be_prepared_is_named),
        cmocka_unit_test(data_without_rows_is_refused_as_it_is_raw),
        cmocka_unit_test(prepared_data_is_not_prepared_again),
        cmocka_unit_test(a_full_disk_is_a_disk_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
