/* Event files read back by the protobuf reader of the tests and a record reader of its own. */
#include "train/measure/event_file.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/arena.h"
#include "base/sum/checksum.h"
#include "unit/base/protobuf_reader.h"

#define MAX_EVENTS 32

static struct ph__arena arena;
static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    static int number;
    snprintf(folder, sizeof folder, "%s/%d", test_folder(), number++);
    assert_ok(ph__directory_create(folder));
    return 0;
}

static int drop(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static uint64_t number_at(const unsigned char *bytes, int size)
{
    uint64_t number = 0;
    for (int i = size - 1; i >= 0; i--)
        number = number * 256 + bytes[i];
    return number;
}

/* crc' = ((crc >> 15) | (crc << 17)) + 0xa282ead8, undone. */
static uint32_t unmask(uint64_t masked)
{
    uint32_t rotated = (uint32_t)masked - 0xa282ead8u;
    return rotated << 15 | rotated >> 17;
}

/* All events of a file; each record's sums are checked. */
static size_t read_events(const char *path, struct message *events)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        uint64_t length = number_at(at, 8);
        assert_int_equal(unmask(number_at(at + 8, 4)), ph__crc32c(at, 8));
        assert_int_equal(unmask(number_at(at + 12 + length, 4)), ph__crc32c(at + 12, length));
        assert_true(count < MAX_EVENTS);
        events[count++] = (struct message){at + 12, at + 12 + length};
        at += 16 + length;
    }
    assert_true(at == end);
    return count;
}

static double wall_time(struct message event)
{
    double time;
    struct message bytes = inner_field(event, 1, 0);
    memcpy(&time, bytes.bytes, sizeof time);
    return time;
}

static float simple_value(struct message event, size_t index)
{
    float number;
    struct message bytes = inner_field(inner_field(inner_field(event, 5, 0), 1, index), 2, 0);
    memcpy(&number, bytes.bytes, sizeof number);
    return number;
}

static void scalars_are_written_with_their_time_and_step(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    struct message events[MAX_EVENTS];
    const double before = (double)time(NULL); /* may lag behind the clock of the events by a tick */
    const struct ph__scalar scalars[] = {
        {"train/loss", 0.5}, {"train/auc", (double)NAN}, {"train/learning_rate", 1e-3}};
    assert_ok(ph__event_file_open(folder, (struct ph__event_place){0}, &file));
    assert_ok(ph__event_file_write(&file, (struct ph__event_place){300, 77}, scalars, 3));
    assert_ok(ph__event_file_write(&file, (struct ph__event_place){301, 78}, scalars + 1, 1));
    assert_int_equal(read_events(file.path, events), 2);
    assert_text_field(events[0], 3, 0, "brain.Event:2");
    assert_int_equal(integer_field(events[1], 2, 0), 300);
    assert_true(wall_time(events[1]) >= before && wall_time(events[1]) <= (double)time(NULL) + 2);
    struct message summary = inner_field(events[1], 5, 0);
    assert_int_equal(num_fields(summary, 1), 2);
    assert_text_field(inner_field(summary, 1, 0), 1, 0, "train/loss");
    assert_text_field(inner_field(summary, 1, 1), 1, 0, "train/learning_rate");
    assert_near((double)simple_value(events[1], 0), 0.5, 0, 0);
    assert_near((double)simple_value(events[1], 1), 1e-3, 0, 1e-6);
    ph__event_file_close(&file);
}

static void a_resumed_part_says_that_it_starts(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    struct message events[MAX_EVENTS];
    assert_ok(ph__event_file_open(folder, (struct ph__event_place){40, 1000}, &file));
    assert_int_equal(read_events(file.path, events), 2);
    assert_int_equal(integer_field(events[1], 2, 0), 41);
    assert_int_equal(integer_field(inner_field(events[1], 7, 0), 1, 0), 1);
    ph__event_file_close(&file);
}

static void write_three(struct ph__event_file *file)
{
    assert_ok(ph__event_file_open(folder, (struct ph__event_place){0}, file));
    for (uint64_t i = 1; i <= 3; i++)
        assert_ok(ph__event_file_write(file, (struct ph__event_place){i, 300 * i},
            &(struct ph__scalar){"valid/auc", 0.1 * (double)i}, 1));
}

/* Two events of one step, with a checkpoint between them, are told apart by how long metrics.jsonl was. */
static void events_behind_the_kept_lines_are_cut(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    struct message events[MAX_EVENTS];
    char path[sizeof file.path];
    write_three(&file);
    snprintf(path, sizeof path, "%s", file.path);
    ph__event_file_close(&file);
    assert_ok(ph__event_files_cut(folder, 900));
    assert_int_equal(read_events(path, events), 4);
    assert_ok(ph__event_files_cut(folder, 899));
    assert_int_equal(read_events(path, events), 3);
    assert_int_equal(integer_field(events[2], 2, 0), 2);
    assert_ok(ph__event_files_cut(folder, 0));
    assert_int_equal(read_events(path, events), 1);
}

static void a_record_that_is_half_written_or_damaged_is_cut(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    struct message events[MAX_EVENTS];
    char path[sizeof file.path];
    uint64_t size = 0;
    write_three(&file);
    snprintf(path, sizeof path, "%s", file.path);
    ph__event_file_close(&file);
    assert_ok(ph__file_size(path, &size));
    assert_int_equal(truncate(path, (off_t)size - 3), 0);
    assert_ok(ph__event_files_cut(folder, UINT64_MAX));
    assert_int_equal(read_events(path, events), 3);
    FILE *damaged = fopen(path, "r+b");
    assert_non_null(damaged);
    assert_int_equal(fseek(damaged, -8, SEEK_END), 0); /* in the last event */
    assert_int_equal(fputc(0xa5, damaged), 0xa5);
    assert_int_equal(fclose(damaged), 0);
    assert_ok(ph__event_files_cut(folder, UINT64_MAX));
    assert_int_equal(read_events(path, events), 2);
}

static void an_empty_file_stays(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/events.out.tfevents.1700000000.phloem.0", folder);
    test_write_text(path, "");
    assert_ok(ph__event_files_cut(folder, 0));
    assert_true(ph__file_exists(path));
}

static void files_of_others_are_left_alone(void **state)
{
    (void)state;
    char path[512], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/events.out.tfevents.1700000000.host.1.0", folder);
    test_write_text(path, "theirs");
    assert_ok(ph__event_files_cut(folder, 0));
    assert_ok(ph__file_read(&arena, path, 100, &text, &size));
    assert_string_equal(text, "theirs");
}

static void none_writes_nothing(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    assert_ok(ph__event_file_write(&file, (struct ph__event_place){1, 1}, &(struct ph__scalar){"a", 1}, 1));
    ph__event_file_close(&file);
}

static void a_folder_that_is_missing_is_named(void **state)
{
    (void)state;
    struct ph__event_file file = {0};
    assert_fails(ph__event_file_open(test_path("no/folder"), (struct ph__event_place){0}, &file),
        PH_ERROR_DISK, "no/folder/events.out.tfevents.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scalars_are_written_with_their_time_and_step, make_folder, drop),
        cmocka_unit_test_setup_teardown(a_resumed_part_says_that_it_starts, make_folder, drop),
        cmocka_unit_test_setup_teardown(events_behind_the_kept_lines_are_cut, make_folder, drop),
        cmocka_unit_test_setup_teardown(a_record_that_is_half_written_or_damaged_is_cut, make_folder, drop),
        cmocka_unit_test_setup_teardown(an_empty_file_stays, make_folder, drop),
        cmocka_unit_test_setup_teardown(files_of_others_are_left_alone, make_folder, drop),
        cmocka_unit_test(none_writes_nothing),
        cmocka_unit_test(a_folder_that_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
