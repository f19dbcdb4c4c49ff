/* Reading: plain text, gzip, zstd, and what is wrong with files. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file/compress.h"
#include "base/file/stream.h"
#include "support/test_support.h"

#define MARK "\xef\xbb\xbf"
#define TEXT "alpha\nbeta\r\n\ngamma"

static const char *write_bytes(const char *name, const void *bytes, size_t size)
{
    const char *path = test_write_file(name, "");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* TEXT as gzip 1.12 and zstd 1.5.4 write it. */
static const unsigned char text_of_gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b,
    0xcc, 0x29, 0xc8, 0x48, 0xe4, 0x4a, 0x4a, 0x2d, 0x49, 0xe4, 0xe5, 0xe2, 0x4a, 0x4f, 0xcc, 0xcd, 0x4d,
    0x04, 0x00, 0xda, 0x8a, 0xfc, 0x3d, 0x12, 0x00, 0x00, 0x00};
static const unsigned char text_of_zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x91, 0x00, 0x00, 0x61, 0x6c,
    0x70, 0x68, 0x61, 0x0a, 0x62, 0x65, 0x74, 0x61, 0x0d, 0x0a, 0x0a, 0x67, 0x61, 0x6d, 0x6d, 0x61, 0xa5,
    0x9f, 0xe3, 0x19};

/* One member or frame of our own writing; returns its size. */
static size_t compress_as(const char *name, const char *text, unsigned char *out, size_t capacity)
{
    const char *path = test_write_file(name, "");
    FILE *file = fopen(path, "w+b");
    assert_non_null(file);
    struct ph__compressor *compressor = NULL;
    assert_ok(ph__compressor_create(fileno(file), path, &compressor));
    assert_ok(ph__compressor_write(compressor, text, strlen(text), true));
    ph__compressor_destroy(compressor);
    rewind(file);
    size_t size = fread(out, 1, capacity, file);
    assert_true(size > 0 && size < capacity);
    fclose(file);
    return size;
}

static size_t gzip(const char *text, unsigned char *out, size_t capacity)
{
    return compress_as("member.gz", text, out, capacity);
}

static size_t zstd(const char *text, unsigned char *out, size_t capacity)
{
    return compress_as("frame.zst", text, out, capacity);
}

static void expect_lines(const char *path, const char *const *lines, size_t count)
{
    struct ph__reader *reader = NULL;
    char *line = NULL;
    size_t length = 0;
    assert_ok(ph__reader_open(path, &reader));
    assert_string_equal(ph__reader_path(reader), strcmp(path, "-") == 0 ? "standard input" : path);
    for (size_t i = 0; i < count; i++) {
        assert_ok(ph__reader_line(reader, &line, &length));
        assert_non_null(line);
        assert_string_equal(line, lines[i]);
        assert_int_equal(length, strlen(lines[i]));
        assert_int_equal(ph__reader_line_number(reader), i + 1);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(ph__reader_line(reader, &line, &length));
        assert_null(line);
    }
    ph__reader_close(reader);
}

/* Reads lines until one fails. */
static void expect_failure(const char *path, const char *part)
{
    struct ph__reader *reader = NULL;
    ph_status status = ph__reader_open(path, &reader);
    char *line = "";
    size_t length = 0;
    while (status == PH_OK && line != NULL)
        status = ph__reader_line(reader, &line, &length);
    assert_fails(status, PH_ERROR_DATA, part);
    assert_non_null(strstr(ph_error_text(), path));
    ph__reader_close(reader);
}

static const char *const text_lines[] = {"alpha", "beta", "", "gamma"};

static void lines_end_with_lf_or_crlf_or_the_file(void **state)
{
    (void)state;
    expect_lines(test_write_file("plain.txt", TEXT), text_lines, 4);
    expect_lines(test_write_file("ended.txt", TEXT "\n"), text_lines, 4);
    expect_lines(test_write_file("empty.txt", ""), NULL, 0);
    static const char *const blank[] = {""};
    expect_lines(test_write_file("blank.txt", "\n"), blank, 1);
    static const char *const inner[] = {"a\rb", "c\r"};
    expect_lines(test_write_file("inner.txt", "a\rb\r\nc\r"), inner, 2);
}

/* Once, at the beginning of the text; also where it is read again, and when it is all there is. */
static void a_byte_order_mark_is_no_text(void **state)
{
    (void)state;
    static const char *const lines[] = {"alpha", MARK "beta"}, *const blank[] = {""};
    static const char text[] = MARK "alpha\r\n" MARK "beta\n";
    unsigned char bytes[4096];
    const char *path = test_write_file("mark.txt", text);
    expect_lines(path, lines, 2);
    size_t size = gzip(text, bytes, sizeof bytes);
    expect_lines(write_bytes("mark.gz", bytes, size), lines, 2);
    expect_lines(test_write_file("only_mark.txt", MARK), blank, 1);
    struct ph__reader *reader = NULL;
    char *line = NULL;
    size_t length = 0;
    assert_ok(ph__reader_open(path, &reader));
    for (int i = 0; i < 2; i++) {
        assert_ok(ph__reader_line(reader, &line, &length));
        assert_string_equal(line, "alpha");
        assert_int_equal(length, 5);
        assert_int_equal(ph__reader_byte(reader), 10); /* the mark's bytes count */
        assert_ok(ph__reader_seek(reader, 0, 0));
    }
    assert_ok(ph__reader_seek(reader, 10, 1));
    assert_ok(ph__reader_line(reader, &line, &length));
    assert_string_equal(line, lines[1]);
    ph__reader_close(reader);
}

static void compressed_lines_are_the_same_whatever_the_name(void **state)
{
    (void)state;
    expect_lines(write_bytes("a.gz", text_of_gzip, sizeof text_of_gzip), text_lines, 4);
    expect_lines(write_bytes("a.csv", text_of_gzip, sizeof text_of_gzip), text_lines, 4);
    expect_lines(write_bytes("a.zst", text_of_zstd, sizeof text_of_zstd), text_lines, 4);
}

static void members_and_frames_follow_one_another(void **state)
{
    (void)state;
    unsigned char bytes[4096];
    size_t size = gzip("alpha\nbe", bytes, sizeof bytes);
    size += gzip("", bytes + size, sizeof bytes - size);
    size += gzip("ta\r\n\ngamma", bytes + size, sizeof bytes - size);
    memset(bytes + size, 0, 100); /* padding, as tapes have it */
    expect_lines(write_bytes("members.gz", bytes, size + 100), text_lines, 4);
    static const unsigned char skipped[] = {0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'};
    memcpy(bytes, skipped, sizeof skipped);
    size = sizeof skipped;
    size += zstd("alpha\nbe", bytes + size, sizeof bytes - size);
    size += zstd("", bytes + size, sizeof bytes - size);
    size += zstd("ta\r\n\ngamma", bytes + size, sizeof bytes - size);
    expect_lines(write_bytes("frames.zst", bytes, size), text_lines, 4);
}

static void every_cut_of_a_compressed_file_is_noticed(void **state)
{
    (void)state;
    unsigned char bytes[4096];
    size_t size = gzip(TEXT, bytes, sizeof bytes);
    for (size_t cut = 2; cut < size; cut++)
        expect_failure(write_bytes("cut.gz", bytes, cut), "cut off");
    size = zstd(TEXT, bytes, sizeof bytes);
    for (size_t cut = 4; cut < size; cut++)
        expect_failure(write_bytes("cut.zst", bytes, cut), "cut off");
}

static void corrupt_data_is_reported_with_path_and_line(void **state)
{
    (void)state;
    unsigned char bytes[4096];
    size_t size = gzip(TEXT, bytes, sizeof bytes);
    bytes[size - 6] ^= 0xff; /* the checksum, read when the text is out */
    expect_failure(write_bytes("sum.gz", bytes, size), "sum.gz:");
    size = zstd(TEXT, bytes, sizeof bytes);
    bytes[5] ^= 0xff;
    expect_failure(write_bytes("bad.zst", bytes, size), "bad.zst:1: corrupt zstd data");
    size = gzip(TEXT "\n", bytes, sizeof bytes);
    memcpy(bytes + size, "junk", 4);
    expect_failure(write_bytes("junk.gz", bytes, size + 4), "junk.gz:5: bytes that are not gzip");
    size = zstd(TEXT "\n", bytes, sizeof bytes);
    memcpy(bytes + size, "junk", 4);
    expect_failure(write_bytes("junk.zst", bytes, size + 4), "junk.zst:5: corrupt zstd");
}

static void random_corruption_never_does_worse_than_an_error(void **state)
{
    (void)state;
    unsigned char good[4096], bytes[4096];
    for (int format = 0; format < 2; format++) {
        size_t size = format == 0 ? gzip(TEXT, good, sizeof good) : zstd(TEXT, good, sizeof good);
        for (size_t i = 4; i < size; i++) {
            memcpy(bytes, good, size);
            bytes[i] ^= 0x55;
            const char *path = write_bytes("random", bytes, size);
            struct ph__reader *reader = NULL;
            char *line = "";
            size_t length = 0;
            assert_ok(ph__reader_open(path, &reader));
            while (line != NULL && ph__reader_line(reader, &line, &length) == PH_OK) {
            }
            ph__reader_close(reader);
        }
    }
}

static void a_nul_byte_is_not_text(void **state)
{
    (void)state;
    static const char bytes[] = "one\ntw\0o\nthree\n";
    expect_failure(write_bytes("nul.txt", bytes, sizeof bytes - 1), "nul.txt:2: the line holds a NUL byte");
}

static void lines_longer_than_the_buffer_are_whole(void **state)
{
    (void)state;
    size_t size = (3u << 20) + 17;
    char *text = malloc(size + 8);
    memset(text, 'x', size);
    memcpy(text + size, "\nlast", 6);
    struct ph__reader *reader = NULL;
    char *line = NULL;
    size_t length = 0;
    assert_ok(ph__reader_open(test_write_file("long.txt", text), &reader));
    assert_ok(ph__reader_line(reader, &line, &length));
    assert_int_equal(length, size);
    assert_int_equal(line[size - 1], 'x');
    assert_ok(ph__reader_line(reader, &line, &length));
    assert_string_equal(line, "last");
    ph__reader_close(reader);
    free(text);
}

static void a_line_without_an_end_is_refused(void **state)
{
    (void)state;
    const char *path = test_write_file("endless.txt", "short\n");
    assert_int_equal(truncate(path, (off_t)150 << 20), 0); /* zeros, sparse */
    expect_failure(path, "endless.txt:2: the line is longer than 64 MiB");
}

static void many_lines_keep_their_numbers(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    char *text = malloc((size_t)COUNT * 12), *end = text;
    for (int i = 0; i < COUNT; i++)
        end += sprintf(end, "row%d\n", i);
    struct ph__reader *reader = NULL;
    assert_ok(ph__reader_open(test_write_file("many.txt", text), &reader));
    for (int i = 0; i < COUNT; i++) {
        char *line = NULL, wanted[20];
        size_t length = 0;
        assert_ok(ph__reader_line(reader, &line, &length));
        snprintf(wanted, sizeof wanted, "row%d", i);
        assert_string_equal(line, wanted);
    }
    assert_int_equal(ph__reader_line_number(reader), COUNT);
    ph__reader_close(reader);
    free(text);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct ph__reader *reader = NULL;
    assert_fails(
        ph__reader_open("/nowhere/a.csv", &reader), PH_ERROR_DATA, "/nowhere/a.csv: cannot open: No such");
    assert_fails(ph__reader_open(test_folder(), &reader), PH_ERROR_DATA, "must be a file, not a folder");
    assert_null(reader);
    ph__reader_close(NULL);
}

static void a_dash_is_standard_input(void **state)
{
    (void)state;
    int saved = dup(STDIN_FILENO);
    assert_non_null(freopen(test_write_file("stdin.txt", TEXT), "rb", stdin));
    expect_lines("-", text_lines, 4);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
}

static volatile int stop_signal;

static void remember(int number)
{
    stop_signal = number;
}

/* Whoever writes into it has gone to sleep. */
static void a_signal_ends_the_waiting_for_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    char path[64], *line;
    size_t length;
    struct ph__reader *reader;
    const struct sigaction action = {.sa_handler = remember};
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "a line\nhalf", 11), 11);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_ok(ph__reader_open_with(path, &(struct ph__read_options){.stop_signal = &stop_signal}, &reader));
    assert_ok(ph__reader_line(reader, &line, &length));
    assert_string_equal(line, "a line");
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    assert_fails(ph__reader_line(reader, &line, &length), PH_ERROR_INTERRUPTED, "stopped by a signal");
    ph__reader_close(reader);
    close(ends[0]);
    close(ends[1]);
}

static void a_file_that_has_become_shorter_is_refused(void **state)
{
    (void)state;
    struct ph__reader *reader;
    const char *path = test_write_file("shorter.txt", "one\ntwo\n");
    assert_ok(ph__reader_open(path, &reader));
    assert_ok(ph__reader_seek(reader, 8, 2));
    assert_ok(ph__reader_seek(reader, 0, 0));
    assert_fails(ph__reader_seek(reader, 9, 2), PH_ERROR_DATA, "shorter.txt: the file ends before byte 9");
    ph__reader_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_lf_or_crlf_or_the_file),
        cmocka_unit_test(a_byte_order_mark_is_no_text),
        cmocka_unit_test(compressed_lines_are_the_same_whatever_the_name),
        cmocka_unit_test(members_and_frames_follow_one_another),
        cmocka_unit_test(every_cut_of_a_compressed_file_is_noticed),
        cmocka_unit_test(corrupt_data_is_reported_with_path_and_line),
        cmocka_unit_test(random_corruption_never_does_worse_than_an_error),
        cmocka_unit_test(a_nul_byte_is_not_text),
        cmocka_unit_test(lines_longer_than_the_buffer_are_whole),
        cmocka_unit_test(a_line_without_an_end_is_refused),
        cmocka_unit_test(many_lines_keep_their_numbers),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(a_dash_is_standard_input),
        cmocka_unit_test(a_signal_ends_the_waiting_for_a_pipe),
        cmocka_unit_test(a_file_that_has_become_shorter_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
