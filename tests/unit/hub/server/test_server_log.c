/* A hub's log: which events it writes, in which order, and that each line is what it should be. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "support/hub_thread.h"

static const struct ph_hub_key a_key = {.num_elements = 1000, .dtype = PH_F32};

/* One job that ends well, one worker that does not, and one that is refused. */
static void make_history(int log, bool is_json)
{
    struct hub_thread hub;
    struct hub_workers workers;
    struct ph_hub_client *client;
    hub_thread_begin(&hub, (struct ph_hub_server_options){
                               .log_descriptor = log, .log = is_json ? PH_HUB_LOG_JSON : PH_HUB_LOG_TEXT});
    const struct ph_hub_service service = hub_thread_service("a job", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, 2, PH_HUB_SHARED_MEMORY);
    hub_workers_wait(&workers);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    assert_ok(ph_hub_connect(&hub.options, "a job", HUB_THREAD_NONCE, 1, &client));
    ph_hub_client_destroy(client);
    assert_int_not_equal(ph_hub_connect(&hub.options, "a job", 1, 1, &client), PH_OK);
    assert_ok(ph_hub_destroy_service(&hub.options, "a job", HUB_THREAD_NONCE));
    hub_thread_end(&hub);
}

static void write_history(const char *name, bool is_json)
{
    const int log = open(test_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(log > 0);
    make_history(log, is_json);
    close(log);
}

/* The first line at or behind `line` with this event; NULL: none. */
static struct ph__json *find_event(char **lines, size_t num_lines, size_t *line, const char *event)
{
    for (; *line < num_lines; (*line)++) {
        struct ph__json *json;
        assert_ok(ph__json_parse(lines[*line], strlen(lines[*line]), "a line", PH_ERROR_DATA, &json));
        if (strcmp(ph__json_as_text(ph__json_get(json, "event"), ""), event) == 0)
            return json;
        ph__json_destroy(json);
    }
    return NULL;
}

static size_t split_lines(char *text, char **lines, size_t max_lines)
{
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_true(count < max_lines);
        lines[count++] = line;
    }
    return count;
}

static void events_come_in_the_order_of_what_happens(void **state)
{
    (void)state;
    static const struct {
        const char *event, *key, *text; /* key NULL: whatever it says */
    } wanted[] = {{"hub_started", NULL, NULL}, {"connection_opened", NULL, NULL},
        {"service_created", "job", "a job"}, {"worker_joined", "transport", "shared memory"},
        {"job_begun", "job", "a job"}, {"worker_left", "job", "a job"},
        {"job_ended", "reason", "all workers have left"},
        {"worker_failed", "reason", "the process has ended"}, {"request_refused", NULL, NULL},
        {"service_destroyed", "job", "a job"}, {"hub_stopped", NULL, NULL}};
    struct ph__arena arena = {0};
    char *text, *lines[128];
    size_t size, line = 0;
    write_history("log.json", true);
    assert_ok(ph__file_read(&arena, test_path("log.json"), 1 << 20, &text, &size));
    const size_t num_lines = split_lines(text, lines, 128);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct ph__json *json = find_event(lines, num_lines, &line, wanted[i].event);
        if (json == NULL)
            fail_msg("no event '%s' at its place", wanted[i].event);
        if (wanted[i].key != NULL)
            assert_string_equal(ph__json_as_text(ph__json_get(json, wanted[i].key), ""), wanted[i].text);
        ph__json_destroy(json);
    }
    ph__arena_fini(&arena);
}

static void lines_are_text_unless_asked_otherwise(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    write_history("log.txt", false);
    assert_ok(ph__file_read(&arena, test_path("log.txt"), 1 << 20, &text, &size));
    assert_non_null(strstr(
        text, " level=info event=service_created job=\"a job\" workers=2 mode=synchronous hub=1 hubs=1\n"));
    assert_non_null(
        strstr(text, " level=warning event=worker_failed job=\"a job\" rank=1 reason=\"the process"));
    ph__arena_fini(&arena);
}

static void without_a_descriptor_nothing_is_written(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    const int input = dup(STDIN_FILENO); /* -1: there is none */
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], 0), 0);
    make_history(0, false); /* 0 is no log: what it names would take a line */
    if (input >= 0)
        assert_int_equal(dup2(input, 0), 0);
    else
        close(0);
    close(input);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_the_order_of_what_happens),
        cmocka_unit_test(lines_are_text_unless_asked_otherwise),
        cmocka_unit_test(without_a_descriptor_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
