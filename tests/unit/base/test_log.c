#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/text/utf8.h"
#include "base/thread/clock.h"
#include "support/count_allocations.h"
#include "support/test_support.h"

static int ends[2]; /* of a pipe that the test's log goes into */

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(ends, O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    close(ends[0]);
    return close(ends[1]);
}

static struct ph__log make_log(enum ph__log_format format)
{
    return (struct ph__log){.descriptor = ends[1], .least_level = PH_LOG_INFO, .format = format};
}

/* What the pipe holds, without its time, which differs; until the next call. */
static const char *read_line(void)
{
    static char text[2 * PH_LOG_LINE_BYTES];
    const ssize_t size = read(ends[0], text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    char *time = strstr(text, "time"), *rest = strstr(text, "Z");
    if (time == NULL || rest == NULL)
        return text;
    return rest + (text[0] == '{' ? 3 : 2);
}

static void write_all_kinds(struct ph__log *log)
{
    PH_LOG(log, PH_LOG_WARNING, "joined", ph__log_text("job", "click"),
        ph__log_text("note", "a \"b\" = c\\\n\x1b[1m"), ph__log_text("city", "z\xc3\xbcrich"),
        ph__log_text("broken", "a\xff\xc3"), ph__log_text("nothing", ""), ph__log_text("null", NULL),
        ph__log_count("rows", UINT64_MAX), ph__log_number("share", 0.1), ph__log_number("whole", 3),
        ph__log_number("unknown", NAN), ph__log_number("endless", -INFINITY));
}

static void a_line_of_logfmt_quotes_what_needs_it(void **state)
{
    (void)state;
    struct ph__log log = make_log(PH_LOG_LOGFMT);
    write_all_kinds(&log);
    assert_string_equal(read_line(), "level=warning event=joined job=click note=\"a \\\"b\\\" = "
                                     "c\\\\\\n\\u001b[1m\" city=\"z\xc3\xbcrich\" "
                                     "broken=\"a\xef\xbf\xbd\xef\xbf\xbd\" nothing=\"\" null=\"\" "
                                     "rows=18446744073709551615 share=0.1 whole=3 "
                                     "unknown=nan endless=-inf\n");
    ph__log_event(&log, PH_LOG_ERROR, "stopped", NULL, 0);
    assert_string_equal(read_line(), "level=error event=stopped\n");
}

/* The line as a parser that is not ours reads it. */
static struct ph__json *read_json(void)
{
    struct ph__json *json = NULL;
    char text[2 * PH_LOG_LINE_BYTES];
    const ssize_t size = read(ends[0], text, sizeof text);
    assert_true(size > 0 && size <= PH_LOG_LINE_BYTES);
    assert_ptr_equal(memchr(text, '\n', (size_t)size), text + size - 1);
    assert_ok(ph__json_parse(text, (size_t)size, "line", PH_ERROR_DATA, &json));
    return json;
}

static const char *text_of(const struct ph__json *json, const char *key)
{
    return ph__json_as_text(ph__json_get(json, key), "missing");
}

static void a_line_of_json_reads_back(void **state)
{
    (void)state;
    struct ph__log log = make_log(PH_LOG_JSON);
    write_all_kinds(&log);
    assert_string_equal(read_line(),
        "\"level\":\"warning\",\"event\":\"joined\",\"job\":\"click\","
        "\"note\":\"a \\\"b\\\" = c\\\\\\n\\u001b[1m\",\"city\":\"z\xc3\xbcrich\","
        "\"broken\":\"a\xef\xbf\xbd\xef\xbf\xbd\",\"nothing\":\"\",\"null\":\"\",\"rows\":"
        "18446744073709551615,"
        "\"share\":0.1,\"whole\":3,\"unknown\":null,\"endless\":null}\n");
    PH_LOG(&log, PH_LOG_INFO, "read",
        ph__log_text("text", "a \"b\" = c\\\n\t\r\x01\x7f \xc2\x9b z\xc3\xbcrich"),
        ph__log_count("count", 1234567890123), ph__log_number("number", -2.5e-300));
    struct ph__json *json = read_json();
    assert_string_equal(text_of(json, "level"), "info");
    assert_string_equal(text_of(json, "event"), "read");
    assert_string_equal(text_of(json, "text"), "a \"b\" = c\\\n\t\r\x01\x7f \xc2\x9b z\xc3\xbcrich");
    assert_int_equal(ph__json_as_integer(ph__json_get(json, "count"), 0), 1234567890123);
    assert_true(ph__json_as_number(ph__json_get(json, "number"), 0) == -2.5e-300);
    assert_int_equal(ph__json_size(json), 6);
    ph__json_destroy(json);
}

static void the_time_is_now_in_utc(void **state)
{
    (void)state;
    struct ph__log log = make_log(PH_LOG_JSON);
    const uint64_t before = ph__clock_utc_ms();
    ph__log_event(&log, PH_LOG_INFO, "tick", NULL, 0);
    const uint64_t after = ph__clock_utc_ms();
    struct ph__json *json = read_json();
    const char *text = text_of(json, "time");
    struct tm time = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &time);
    unsigned ms = 0;
    assert_int_equal(strlen(text), strlen("2026-03-01T12:00:00.123Z"));
    assert_non_null(rest);
    assert_int_equal(sscanf(rest, ".%3uZ", &ms), 1);
    assert_in_range((uint64_t)timegm(&time) * 1000 + ms, before, after);
    ph__json_destroy(json);
}

static void events_below_the_level_and_of_no_log_are_not_written(void **state)
{
    (void)state;
    struct ph__log log = make_log(PH_LOG_LOGFMT);
    unsigned num_asked = 0;
    PH_LOG(&log, PH_LOG_DEBUG, "hidden", ph__log_count("asked", ++num_asked));
    PH_LOG((struct ph__log *)NULL, PH_LOG_ERROR, "hidden", ph__log_count("asked", ++num_asked));
    ph__log_event(&log, PH_LOG_DEBUG, "hidden", NULL, 0);
    ph__log_event(NULL, PH_LOG_ERROR, "hidden", NULL, 0);
    assert_string_equal(read_line(), "");
    assert_int_equal(num_asked, 0);
    log.least_level = PH_LOG_DEBUG;
    PH_LOG(&log, PH_LOG_DEBUG, "shown", ph__log_count("asked", ++num_asked));
    assert_string_equal(read_line(), "level=debug event=shown asked=1\n");
    ph__log_init(&log);
    assert_int_equal(log.descriptor, STDERR_FILENO);
    assert_true(ph__log_wants(&log, PH_LOG_INFO) && !ph__log_wants(&log, PH_LOG_DEBUG));
}

static void expect_cut_or_whole(const char *text, bool is_utf8)
{
    struct ph__log logs[] = {make_log(PH_LOG_JSON), make_log(PH_LOG_LOGFMT)};
    PH_LOG(&logs[0], PH_LOG_INFO, "long", ph__log_text("text", text), ph__log_count("after", 1));
    struct ph__json *json = read_json();
    const bool is_cut = ph__json_as_bool(ph__json_get(json, "cut"), false);
    const size_t kept = strlen(text_of(json, "text"));
    assert_true(is_cut != (ph__json_as_integer(ph__json_get(json, "after"), 0) == 1));
    assert_true(!is_utf8 || strncmp(text, text_of(json, "text"), kept) == 0);
    assert_true(is_cut || !is_utf8 || kept == strlen(text));
    ph__json_destroy(json);
    PH_LOG(&logs[1], PH_LOG_INFO, "long", ph__log_text("text", text), ph__log_count("after", 1));
    const char *line = read_line();
    const size_t size = strlen(line);
    assert_true(size > 0 && line[size - 1] == '\n' && ph__utf8_is_valid(line, size));
    assert_true((strstr(line, " cut=true\n") != NULL) != (strstr(line, " after=1\n") != NULL));
}

/* Texts of about as many characters as a line has room for: plain ones, escaped ones, of several bytes,
 * broken ones. */
static void a_line_that_is_too_long_is_cut_and_still_whole(void **state)
{
    (void)state;
    static const struct {
        const char *character;
        size_t spelled_size;
    } cases[] = {{"x", 1}, {"\n", 2}, {"\x01", 6}, {"\xe2\x82\xac", 3}, {"\xff", 3}};
    static char text[PH_LOG_LINE_BYTES * 2];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t size = 3900; size < PH_LOG_LINE_BYTES + 20; size += cases[c].spelled_size) {
            char *at = text;
            for (size_t i = 0; i < size / cases[c].spelled_size; i++)
                at = stpcpy(at, cases[c].character);
            expect_cut_or_whole(text, c < 4);
        }
}

/* The line ends between fields, whichever of them has no room. */
static void many_fields_are_left_out_from_where_there_is_no_room(void **state)
{
    (void)state;
    static struct ph__log_field fields[1000];
    struct ph__log log = make_log(PH_LOG_JSON);
    for (size_t i = 0; i < 1000; i++)
        fields[i] = i % 2 == 0 ? ph__log_count("count", 123456) : ph__log_number("number", 1e300 / 7);
    for (size_t first = 0; first < 40; first++) {
        char text[41];
        memset(text, 'x', sizeof text);
        text[first] = '\0';
        fields[0] = ph__log_text("text", text);
        ph__log_event(&log, PH_LOG_INFO, "many", fields, 1000);
        char line[2 * PH_LOG_LINE_BYTES];
        const ssize_t size = read(ends[0], line, sizeof line);
        assert_true(size > PH_LOG_LINE_BYTES - 60 && size <= PH_LOG_LINE_BYTES);
        assert_memory_equal(line + size - strlen(",\"cut\":true}\n"), ",\"cut\":true}\n", 13);
        const char *before_end = line + size - 14;
        assert_true(*before_end >= '0' && *before_end <= '9');
    }
}

enum { NUM_THREADS = 4, NUM_LINES = 500 };

static void *write_lines(void *log)
{
    for (uint64_t i = 0; i < NUM_LINES; i++)
        PH_LOG((struct ph__log *)log, PH_LOG_INFO, "line", ph__log_count("number", i),
            ph__log_text("text", "some words that take a while to be written"));
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    const int descriptor = open(test_path("log"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct ph__log log = {.descriptor = descriptor};
    pthread_t threads[NUM_THREADS];
    for (size_t t = 0; t < NUM_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, write_lines, &log), 0);
    for (size_t t = 0; t < NUM_THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    close(descriptor);
    FILE *file = fopen(test_path("log"), "r");
    char line[PH_LOG_LINE_BYTES];
    size_t num_lines = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file) != NULL; num_lines++) {
        unsigned number = 0;
        int end = 0;
        sscanf(line,
            "time=%*s level=info event=line number=%u text=\"some words that take a while to be written\"%n",
            &number, &end);
        assert_true(end > 0 && strcmp(line + end, "\n") == 0);
    }
    fclose(file);
    assert_int_equal(num_lines, NUM_THREADS * NUM_LINES);
}

static void a_line_that_cannot_be_written_is_dropped_without_a_word(void **state)
{
    (void)state;
    struct ph__log log = make_log(PH_LOG_LOGFMT);
    int num_written = 0;
    for (errno = 7; num_written < 5000; num_written++) /* until the pipe is full, and beyond */
        write_all_kinds(&log);
    assert_int_equal(errno, 7);
    log.descriptor = -1;
    write_all_kinds(&log);
    assert_int_equal(errno, 7);
}

static uint64_t drain(void)
{
    char text[4096];
    uint64_t num_lines = 0;
    for (ssize_t size; (size = read(ends[0], text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < size; i++)
            num_lines += text[i] == '\n';
    return num_lines;
}

/* Nobody reads, and the writing end would wait for that: this test would never end. */
static void lines_that_nobody_reads_are_dropped_and_counted(void **state)
{
    (void)state;
    enum { NUM_WRITTEN = 2000 };
    char wanted[64];
    struct ph__log log = make_log(PH_LOG_LOGFMT);
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    for (int i = 0; i < NUM_WRITTEN; i++)
        write_all_kinds(&log);
    const uint64_t num_read = drain();
    assert_in_range(num_read, 100, NUM_WRITTEN - 1);
    ph__log_event(&log, PH_LOG_ERROR, "again", NULL, 0);
    snprintf(wanted, sizeof wanted, "level=warning event=log_lines_dropped lines=%u\n",
        NUM_WRITTEN - (unsigned)num_read);
    const char *text = read_line();
    assert_memory_equal(text, wanted, strlen(wanted));
    assert_non_null(strstr(text, "level=error event=again\n"));
    ph__log_event(&log, PH_LOG_ERROR, "once", NULL, 0);
    assert_string_equal(read_line(), "level=error event=once\n");
}

/* SIGPIPE would end this test; who blocks it finds none waiting. A socket's error shows only when it is
 * written to. */
static void a_reader_that_is_gone_raises_no_signal(void **state)
{
    (void)state;
    sigset_t pending;
    int pipe_ends[2], sockets[2];
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    close(pipe_ends[0]);
    close(sockets[0]);
    const int descriptors[] = {pipe_ends[1], sockets[1]};
    for (size_t i = 0; i < 2; i++) {
        struct ph__log log = {.descriptor = descriptors[i]};
        ph__log_event(&log, PH_LOG_ERROR, "unheard", NULL, 0);
        assert_int_equal(log.num_dropped, 1);
        close(descriptors[i]);
    }
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
}

static void a_line_allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_are_counted())
        return print_message("a sanitizer owns malloc: not counted\n");
    struct ph__log logs[] = {make_log(PH_LOG_JSON), make_log(PH_LOG_LOGFMT)};
    count_allocations(true);
    for (size_t i = 0; i < 2; i++)
        write_all_kinds(&logs[i]);
    count_allocations(false);
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
}

#define test_with_pipe(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_pipe)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_pipe(a_line_allocates_nothing),
        test_with_pipe(a_line_of_logfmt_quotes_what_needs_it),
        test_with_pipe(a_line_of_json_reads_back),
        test_with_pipe(the_time_is_now_in_utc),
        test_with_pipe(events_below_the_level_and_of_no_log_are_not_written),
        test_with_pipe(a_line_that_is_too_long_is_cut_and_still_whole),
        test_with_pipe(many_fields_are_left_out_from_where_there_is_no_room),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        test_with_pipe(a_line_that_cannot_be_written_is_dropped_without_a_word),
        test_with_pipe(lines_that_nobody_reads_are_dropped_and_counted),
        cmocka_unit_test(a_reader_that_is_gone_raises_no_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
