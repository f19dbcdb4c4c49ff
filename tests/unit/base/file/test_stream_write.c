#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/compress.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/arena.h"
#include "support/test_support.h"

/* Compressible, and larger than every buffer on the way. */
static char *make_text(size_t *size_out)
{
    enum { COUNT = 150000 };
    char *text = malloc((size_t)COUNT * 24), *end = text;
    for (int i = 0; i < COUNT; i++)
        end += sprintf(end, "%d,%u\n", i, (unsigned)i * 2654435761u);
    *size_out = (size_t)(end - text);
    return text;
}

static char *read_back(const char *path, size_t capacity, size_t *size_out)
{
    struct ph__decompressor *decompressor = NULL;
    char *text = malloc(capacity);
    size_t size = 0, count = 1;
    const int descriptor = open(path, O_RDONLY);
    assert_ok(ph__decompressor_create(descriptor, NULL, &decompressor));
    while (count > 0 && size < capacity) {
        assert_ok(ph__decompressor_read(decompressor, text + size, capacity - size, &count));
        size += count;
    }
    ph__decompressor_destroy(decompressor);
    close(descriptor);
    *size_out = size;
    return text;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    static const char *const names[] = {"out.csv", "out.csv.gz", "out.csv.zst"};
    size_t size = 0;
    char *text = make_text(&size);
    struct ph__arena arena = {0};
    for (size_t n = 0; n < 3; n++) {
        const char *path = ph__path_join(&arena, test_folder(), names[n]);
        struct ph__writer *writer = NULL;
        assert_ok(ph__writer_open(path, &writer));
        size_t done = 0;
        for (size_t step = 1; done < size;
             step = step * 3 % 700001 + 1) { /* small, large and very large pieces */
            size_t piece = step < size - done ? step : size - done;
            assert_ok(ph__writer_write(writer, text + done, piece));
            done += piece;
        }
        assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
        size_t read_size = 0;
        char *read = read_back(path, size + 100, &read_size);
        assert_int_equal(read_size, size);
        assert_memory_equal(read, text, size);
        free(read);
        uint64_t stored = 0;
        assert_ok(ph__file_size(path, &stored));
        assert_true(n == 0 ? stored == size : stored < size * 3 / 4);
    }
    ph__arena_fini(&arena);
    free(text);
}

static void formatted_text_of_any_length_is_written(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, test_folder(), "printf.txt");
    struct ph__writer *writer = NULL;
    size_t length = 600000, size = 0;
    char *text = malloc(length + 1);
    memset(text, 'y', length);
    text[length] = '\0';
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "%d-", 7));
    assert_ok(ph__writer_printf(writer, "%s", text));
    assert_ok(ph__writer_printf(writer, "-%d", 8));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    char *read = read_back(path, length + 100, &size);
    assert_int_equal(size, length + 4);
    assert_memory_equal(read, "7-yy", 4);
    assert_memory_equal(read + size - 4, "yy-8", 4);
    free(read);
    free(text);
    ph__arena_fini(&arena);
}

static void nothing_written_is_a_valid_file(void **state)
{
    (void)state;
    static const char *const names[] = {"none.csv", "none.gz", "none.zst"};
    struct ph__arena arena = {0};
    for (size_t n = 0; n < 3; n++) {
        const char *path = ph__path_join(&arena, test_folder(), names[n]);
        struct ph__writer *writer = NULL;
        size_t size = 1;
        assert_ok(ph__writer_open(path, &writer));
        assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
        free(read_back(path, 10, &size));
        assert_int_equal(size, 0);
    }
    ph__arena_fini(&arena);
}

static void a_compressed_stream_that_is_not_finished_reads_as_cut_off(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, test_folder(), "unfinished.gz");
    struct ph__writer *writer = NULL;
    size_t size = 0;
    char *text = make_text(&size), *line = text;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_write(writer, text, size));
    ph__writer_close(writer);
    struct ph__reader *reader = NULL;
    assert_ok(ph__reader_open(path, &reader));
    ph_status status = PH_OK;
    while (status == PH_OK && line != NULL)
        status = ph__reader_line(reader, &line, &size);
    assert_fails(status, PH_ERROR_DATA, "cut off");
    ph__reader_close(reader);
    free(text);
    ph__arena_fini(&arena);
}

static void a_full_disk_is_reported_with_the_path(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        test_skip("there is no /dev/full");
    struct ph__writer *writer = NULL;
    assert_ok(ph__writer_open("/dev/full", &writer));
    assert_ok(ph__writer_write(writer, "few bytes", 9));
    assert_fails(ph__writer_finish(writer), PH_ERROR_DISK, "/dev/full: cannot write: No space");
    ph__writer_close(writer);
    size_t size = 0;
    char *text = make_text(&size);
    assert_ok(ph__writer_open("/dev/full", &writer));
    assert_fails(ph__writer_write(writer, text, size), PH_ERROR_DISK, "/dev/full: cannot write: No space");
    ph__writer_close(writer);
    free(text);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct ph__writer *writer = NULL;
    assert_fails(
        ph__writer_open("/nowhere/out.csv", &writer), PH_ERROR_DISK, "/nowhere/out.csv: cannot write");
    assert_fails(ph__writer_open(test_folder(), &writer), PH_ERROR_USAGE, "must be a file, not a folder");
    assert_null(writer);
    ph__writer_close(NULL);
}

static void a_dash_is_standard_output(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    printf("printed, then ");
    struct ph__writer *writer = NULL;
    ph_status status = ph__writer_open_atomic("-", &writer);
    if (status == PH_OK)
        status = ph__writer_printf(writer, "to standard output\n");
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    assert_ok(status);
    char text[64] = "";
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "printed, then to standard output\n");
    fclose(file);
}

static void an_atomic_file_appears_when_it_is_finished(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", test_write_file("atomic", "former"));
    struct ph__writer *writer = NULL;
    char *text = NULL;
    size_t size = 0;
    for (int is_finished = 0; is_finished <= 1; is_finished++) {
        assert_ok(ph__writer_open_atomic(path, &writer));
        assert_ok(ph__writer_printf(writer, "new %d", 1));
        if (is_finished)
            assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
        assert_ok(ph__file_read(&arena, path, 100, &text, &size));
        assert_string_equal(text, is_finished ? "new 1" : "former");
        assert_false(ph__file_exists(ph__arena_printf(&arena, "%s.tmp", path)));
    }
    assert_fails(ph__writer_open_atomic("/nowhere/x", &writer), PH_ERROR_DISK, "/nowhere/x");
    ph__arena_fini(&arena);
}

static void what_is_written_to_memory_is_taken(void **state)
{
    (void)state;
    struct ph__writer *writer = NULL;
    size_t size = 0, taken_size = 0;
    char *text = make_text(&size);
    assert_ok(ph__writer_open_memory("a page.gz", size, &writer)); /* the name compresses nothing */
    assert_ok(ph__writer_printf(writer, "%.*s", 100, text));
    for (size_t at = 100, piece; at < size; at += piece) {
        piece = size - at < 30011 ? size - at : 30011;
        assert_ok(ph__writer_write(writer, text + at, piece));
    }
    assert_ok(ph__writer_finish(writer));
    char *taken = ph__writer_take(writer, &taken_size);
    ph__writer_close(writer);
    assert_int_equal(taken_size, size);
    assert_memory_equal(taken, text, size);
    free(taken);
    assert_ok(ph__writer_open_memory("nothing", 0, &writer));
    assert_ok(ph__writer_finish(writer));
    free(ph__writer_take(writer, &taken_size));
    assert_int_equal(taken_size, 0);
    ph__writer_close(writer);
    assert_ok(ph__writer_open_memory("a page", size - 1, &writer));
    ph_status status = ph__writer_write(writer, text, size);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    assert_fails(status, PH_ERROR_MEMORY, "a page: more than ");
    ph__writer_close(writer); /* with what was written so far */
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_atomic_file_appears_when_it_is_finished),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(formatted_text_of_any_length_is_written),
        cmocka_unit_test(what_is_written_to_memory_is_taken),
        cmocka_unit_test(nothing_written_is_a_valid_file),
        cmocka_unit_test(a_compressed_stream_that_is_not_finished_reads_as_cut_off),
        cmocka_unit_test(a_full_disk_is_reported_with_the_path),
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(a_dash_is_standard_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
