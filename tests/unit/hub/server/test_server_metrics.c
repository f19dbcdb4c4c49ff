/* A hub's metrics as Prometheus scrapes them: what is a sample, that counters grow and never fall, and of
 * what. */
#include <poll.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "net/link/socket.h"
#include "support/hub_thread.h"

#define MAX_PAGE 65536

static const struct ph_hub_key a_key = {.num_elements = 40000, .dtype = PH_F32};

/* ---- scraping ---- */

/* The page's body. Static storage. */
static const char *scrape(const struct hub_thread *hub)
{
    static char page[MAX_PAGE];
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n";
    int connected;
    size_t used = 0;
    assert_ok(
        ph__socket_connect(ph_hub_server_metrics_address(hub->server), HUB_THREAD_TIMEOUT_MS, &connected));
    assert_int_equal(send(connected, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    for (ssize_t received = 1; received > 0; used += (size_t)received) {
        struct pollfd polled = {.fd = connected, .events = POLLIN};
        assert_int_equal(poll(&polled, 1, HUB_THREAD_TIMEOUT_MS), 1);
        received = recv(connected, page + used, sizeof page - 1 - used, 0);
        assert_true(received >= 0);
    }
    close(connected);
    page[used] = '\0';
    assert_int_equal(strncmp(page, "HTTP/1.1 200 ", 13), 0);
    assert_non_null(strstr(page, "Content-Type: text/plain; version=0.0.4"));
    const char *body = strstr(page, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

/* Of the sample with exactly this name and labels; -1: there is none. */
static double value_of(const char *page, const char *sample)
{
    const size_t length = strlen(sample);
    for (const char *line = page; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, length) == 0 && line[length] == ' ')
            return strtod(line + length, NULL);
    }
    return -1;
}

/* ---- every line ---- */

#define NAME "[a-zA-Z_][a-zA-Z0-9_]*"
#define LABEL NAME "=\"([^\"\\]|\\\\[\\n\"])*\""

static void check_lines(const char *page)
{
    regex_t sample, type, help;
    char family[128] = "", former[MAX_PAGE] = " ";
    assert_int_equal(regcomp(&sample, "^" NAME "(\\{" LABEL "(," LABEL ")*\\})? [0-9]+$", REG_EXTENDED), 0);
    assert_int_equal(regcomp(&type, "^# TYPE " NAME " (counter|gauge)$", REG_EXTENDED), 0);
    assert_int_equal(regcomp(&help, "^# HELP " NAME " .+\\.$", REG_EXTENDED), 0);
    assert_true(page[strlen(page) - 1] == '\n');
    while (*page != '\0') {
        char line[512], wanted[140];
        const size_t length = strcspn(page, "\n");
        assert_true(length < sizeof line);
        snprintf(line, sizeof line, "%.*s", (int)length, page);
        page += length + 1;
        if (line[0] != '#') {
            assert_int_equal(regexec(&sample, line, 0, NULL, 0), 0);
            assert_int_equal(strncmp(line, family, strlen(family)), 0);
            continue;
        }
        const bool is_type = strncmp(line, "# TYPE", 6) == 0;
        assert_int_equal(regexec(is_type ? &type : &help, line, 0, NULL, 0), 0);
        sscanf(line + 7, "%127s", family);
        snprintf(wanted, sizeof wanted, " %s ", family);
        assert_int_equal(strstr(former, wanted) != NULL, is_type); /* once, its help first */
        if (!is_type)
            strcat(strcat(former, family), " ");
        assert_int_equal(
            is_type && strstr(line, " counter") != NULL, is_type && strstr(family, "_total") != NULL);
    }
    regfree(&sample);
    regfree(&type);
    regfree(&help);
}

/* ---- what they say ---- */

static void counters_count_what_a_job_does(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.metrics_address = "127.0.0.1:0"});
    struct ph_hub_service service = hub_thread_service("a \"job\" \\", 2);
    service.chunk_bytes = 40000; /* four chunks */
    assert_ok(ph_hub_create_service(&hub.options, &service));
    check_lines(scrape(&hub));
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, 7, PH_HUB_SHARED_MEMORY);
    hub_workers_wait(&workers);
    const char *page = scrape(&hub);
    check_lines(page);
    assert_true(value_of(page, "phloem_hub_jobs") == 1);
    assert_true(value_of(page, "phloem_hub_job_running{job=\"a \\\"job\\\" \\\\\"}") == 1);
    assert_true(value_of(page, "phloem_hub_job_workers{job=\"a \\\"job\\\" \\\\\"}") == 2);
    assert_true(value_of(page, "phloem_hub_job_iteration{job=\"a \\\"job\\\" \\\\\"}") == 7);
    assert_true(value_of(page, "phloem_hub_job_updates_total{job=\"a \\\"job\\\" \\\\\"}") == 7 * 4);
    assert_true(value_of(page, "phloem_hub_job_pushes_total{job=\"a \\\"job\\\" \\\\\"}") == 7 * 4 * 2);
    assert_true(
        value_of(page, "phloem_hub_job_gradient_bytes_total{job=\"a \\\"job\\\" \\\\\"}") == 7 * 160000 * 2);
    assert_true(value_of(page, "phloem_hub_job_memory_bytes{job=\"a \\\"job\\\" \\\\\"}") >= 3 * 160000);
    /* Pushes and replies of seven iterations, and the pulls of the beginning. */
    assert_true(value_of(page,
                    "phloem_hub_link_messages_total{transport=\"shared memory\",direction=\"received\"}") ==
                8 * 4 * 2);
    assert_true(
        value_of(page, "phloem_hub_link_messages_total{transport=\"shared memory\",direction=\"sent\"}") ==
        8 * 4 * 2);
    assert_true(value_of(page, "phloem_hub_core_rounds_total{core=\"1\"}") > 0);
    assert_true(value_of(page, "phloem_hub_core_rounds_total{core=\"2\"}") < 0);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

/* ---- every family ---- */

enum { NUM_ITERATIONS = 40, NUM_CHUNKS = 4, NUM_UPDATES = NUM_ITERATIONS * NUM_CHUNKS };
enum {
    NUM_MESSAGES = 2 * (NUM_CHUNKS + NUM_UPDATES)
}; /* pulls of the beginning, and pushes, of two workers */
#define MEMORY_LIMIT (512u << 20)

/* What each sample may be, so that none could stand in another's place unseen: the job has two workers and
 * four chunks, over shared memory, and keeps no checkpoints; another one waits for five workers, of whom none
 * comes. least and most: inclusive. */
static const struct {
    const char *sample;
    double least, most;
} wanted[] = {
    {"phloem_hub_jobs", 2, 2},
    {"phloem_hub_jobs_limit", 9, 9},
    {"phloem_hub_memory_bytes", 3 * 160000, MEMORY_LIMIT / 2},
    {"phloem_hub_memory_limit_bytes", MEMORY_LIMIT, MEMORY_LIMIT},
    {"phloem_hub_connections", 2, 3}, /* of one that has ended the hub may not have heard */
    /* Of who made the services, and of the workers, who came to the local socket next. */
    {"phloem_hub_connections_total", 2 + 2 * 2, 2 + 2 * 2},
    {"phloem_hub_checkpoints_total", 0, 0},
    {"phloem_hub_failures_total{reason=\"connection_broken\"}", 0, 0},
    {"phloem_hub_core_rounds_total{core=\"0\"}", NUM_ITERATIONS, 1e12},
    {"phloem_hub_core_idle_rounds_total{core=\"0\"}", 1, 1e12},
    {"phloem_hub_core_sleeps_total{core=\"0\"}", 1, 1e12},
    {"phloem_hub_link_messages_total{transport=\"shared memory\",direction=\"sent\"}", NUM_MESSAGES,
        NUM_MESSAGES},
    {"phloem_hub_link_payload_bytes_total{transport=\"shared memory\",direction=\"sent\"}", 0, 0},
    {"phloem_hub_link_system_calls_total{transport=\"shared memory\"}", 0, 0},
    {"phloem_hub_link_doorbells_total{transport=\"shared memory\"}", 1, NUM_MESSAGES - 1},
    {"phloem_hub_job_running{job=\"job\"}", 1, 1},
    {"phloem_hub_job_running{job=\"idle\"}", 0, 0},
    {"phloem_hub_job_workers{job=\"job\"}", 2, 2},
    {"phloem_hub_job_workers{job=\"idle\"}", 0, 0},
    {"phloem_hub_job_workers_wanted{job=\"idle\"}", 5, 5},
    {"phloem_hub_job_memory_bytes{job=\"job\"}", 3 * 160000, MEMORY_LIMIT / 2},
    {"phloem_hub_job_iteration{job=\"job\"}", NUM_ITERATIONS, NUM_ITERATIONS},
    {"phloem_hub_job_checkpoint_iteration{job=\"job\"}", 0, 0},
    {"phloem_hub_job_updates_total{job=\"job\"}", NUM_UPDATES, NUM_UPDATES},
    {"phloem_hub_job_gradient_bytes_total{job=\"job\"}", NUM_ITERATIONS * 160000 * 2,
        NUM_ITERATIONS * 160000 * 2},
    {"phloem_hub_job_pushes_total{job=\"job\"}", 2 * NUM_UPDATES, 2 * NUM_UPDATES},
    {"phloem_hub_job_pulls_total{job=\"job\"}", NUM_CHUNKS * 2, NUM_CHUNKS * 2},
    {"phloem_hub_job_reply_waits_total{job=\"job\"}", 0, 0},
};
enum { NUM_WANTED = sizeof wanted / sizeof *wanted };

static void assert_is_wanted(const char *family, size_t length)
{
    for (size_t i = 0; i < NUM_WANTED; i++) {
        const size_t name = strcspn(wanted[i].sample, "{");
        if (name == length && strncmp(wanted[i].sample, family, length) == 0)
            return;
    }
    if (strncmp(family, "phloem_hub_crowded", length) != 0)
        fail_msg("nobody looks at %.*s", (int)length, family);
}

static void assert_each_family_is_wanted(const char *page)
{
    static const char type[] = "\n# TYPE ";
    for (const char *line = page; (line = strstr(line, type)) != NULL;) {
        line += sizeof type - 1;
        assert_is_wanted(line, strcspn(line, " "));
    }
}

static void check_families(const char *page)
{
    assert_each_family_is_wanted(page);
    for (size_t i = 0; i < NUM_WANTED; i++) {
        const double value = value_of(page, wanted[i].sample);
        if (value < wanted[i].least || value > wanted[i].most)
            fail_msg(
                "%s is %.0f; wanted %.0f to %.0f", wanted[i].sample, value, wanted[i].least, wanted[i].most);
    }
    const double idle = value_of(page, "phloem_hub_core_idle_rounds_total{core=\"0\"}");
    assert_true(value_of(page, "phloem_hub_core_rounds_total{core=\"0\"}") > idle);
    assert_true(value_of(page, "phloem_hub_core_sleeps_total{core=\"0\"}") <= idle);
    assert_true(value_of(page, "phloem_hub_memory_bytes") >=
                value_of(page, "phloem_hub_job_memory_bytes{job=\"job\"}"));
    assert_true(value_of(page, "phloem_hub_crowded") == (2 + 2 > ph__cpu_count()));
}

static void each_family_says_what_its_name_says(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){
                               .metrics_address = "127.0.0.1:0", .max_bytes = MEMORY_LIMIT, .max_jobs = 9});
    struct ph_hub_service service = hub_thread_service("job", 2);
    const struct ph_hub_service idle = hub_thread_service("idle", 5);
    service.chunk_bytes = 160000 / NUM_CHUNKS;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_create_service(&hub.options, &idle));
    hub.options.wait = PH_HUB_WAIT_SLEEP; /* so that doorbells ring */
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, NUM_ITERATIONS, PH_HUB_SHARED_MEMORY);
    hub_workers_wait(&workers);
    check_families(scrape(&hub));
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

static void run_job(
    const struct hub_thread *hub, const struct ph_hub_service *service, enum ph_hub_transport transport)
{
    struct hub_workers workers;
    hub_workers_begin(&workers, hub, service, &a_key, 1, 3, transport);
    hub_workers_wait(&workers);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
}

/* ... however jobs, their links and their services come and go. */
static void counters_never_fall(void **state)
{
    (void)state;
    static const char received[] =
        "phloem_hub_link_messages_total{transport=\"shared memory\",direction=\"received\"}";
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.metrics_address = "127.0.0.1:0"});
    struct ph_hub_service service = hub_thread_service("job", 2);
    service.chunk_bytes = 40000;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    run_job(&hub, &service, PH_HUB_SHARED_MEMORY);
    assert_true(value_of(scrape(&hub), received) == 4 * 4 * 2);
    run_job(&hub, &service, PH_HUB_SHARED_MEMORY);
    const char *page = scrape(&hub);
    assert_true(value_of(page, received) == 2 * 4 * 4 * 2);
    assert_true(value_of(page, "phloem_hub_job_updates_total{job=\"job\"}") == 2 * 3 * 4);
    assert_true(value_of(page, "phloem_hub_job_running{job=\"job\"}") == 0);
    assert_ok(ph_hub_destroy_service(&hub.options, "job", HUB_THREAD_NONCE));
    page = scrape(&hub);
    check_lines(page);
    assert_true(value_of(page, received) == 2 * 4 * 4 * 2);
    assert_true(value_of(page, "phloem_hub_job_updates_total{job=\"job\"}") < 0);
    assert_true(value_of(page, "phloem_hub_jobs") == 0);
    hub_thread_end(&hub);
}

static void tcp_is_told_apart_and_has_payloads(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.metrics_address = "127.0.0.1:0"});
    const struct ph_hub_service service = hub_thread_service("job", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    run_job(&hub, &service, PH_HUB_TCP);
    const char *page = scrape(&hub);
    check_lines(page);
    assert_true(
        value_of(page, "phloem_hub_link_payload_bytes_total{transport=\"tcp\",direction=\"received\"}") ==
        2 * 3 * 160000);
    assert_true(value_of(page, "phloem_hub_link_payload_bytes_total{transport=\"tcp\",direction=\"sent\"}") ==
                2 * 4 * 160000);
    assert_true(value_of(page, "phloem_hub_link_system_calls_total{transport=\"tcp\"}") > 0);
    hub_thread_end(&hub);
}

static void checkpoints_are_counted(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){
                               .metrics_address = "127.0.0.1:0", .checkpoint_folder = test_path("kept")});
    struct ph_hub_service service = hub_thread_service("job", 2);
    service.checkpoint_every = 6;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, 6, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    while (value_of(scrape(&hub), "phloem_hub_job_checkpoint_iteration{job=\"job\"}") < 6)
        continue; /* it is written while the job goes on */
    const char *page = scrape(&hub);
    check_lines(page);
    assert_true(value_of(page, "phloem_hub_checkpoints_total") > 0);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"checkpoint_failed\"}") == 0);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

static void failures_are_told_by_their_reason(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.metrics_address = "127.0.0.1:0"});
    const struct ph_hub_service service = hub_thread_service("job", 2);
    const char *page = scrape(&hub);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"request_refused\"}") == 0);
    assert_int_not_equal(ph_hub_connect(&hub.options, "job", 1, 0, &client), PH_OK);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&hub.options, "job", HUB_THREAD_NONCE, 0, &client));
    ph_hub_client_destroy(client); /* it has not left */
    int stranger;
    char byte;
    assert_ok(ph__socket_connect(hub.options.address, HUB_THREAD_TIMEOUT_MS, &stranger));
    assert_int_equal(send(stranger, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, MSG_NOSIGNAL), 8);
    struct pollfd polled = {.fd = stranger, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, HUB_THREAD_TIMEOUT_MS), 1);
    (void)!recv(stranger, &byte, 1, 0);
    close(stranger);
    page = scrape(&hub);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"request_refused\"}") == 1);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"worker_ended\"}") == 1);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"connection_broken\"}") == 1);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"worker_failed\"}") == 0);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"connection_silent\"}") == 0);
    assert_true(value_of(page, "phloem_hub_failures_total{reason=\"connections_wait\"}") == 0);
    hub_thread_end(&hub);
}

static void addresses_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x"};
    struct ph_hub_server *server;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        const struct ph_hub_server_options options = {
            .size = sizeof options, .metrics_address = addresses[i]};
        assert_fails(ph_hub_server_create(&options, &server), PH_ERROR_CONFIG, "127.0.0.1");
    }
}

static void without_an_address_there_are_none(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    assert_null(ph_hub_server_metrics_address(hub.server));
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_count_what_a_job_does),
        cmocka_unit_test(each_family_says_what_its_name_says),
        cmocka_unit_test(counters_never_fall),
        cmocka_unit_test(tcp_is_told_apart_and_has_payloads),
        cmocka_unit_test(checkpoints_are_counted),
        cmocka_unit_test(failures_are_told_by_their_reason),
        cmocka_unit_test(addresses_that_cannot_be_are_refused),
        cmocka_unit_test(without_an_address_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
