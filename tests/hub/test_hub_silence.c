/* A job over two hosts, and a hub beyond the loopback, so with a secret: when one host falls silent, the
 * other hears of it within five seconds, and so does the worker that sits beside the hub. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/thread/clock.h"
#include "hub/hub_processes.h"
#include "hub/two_hosts.h"
#include "support/test_support.h"

enum {
    LIMIT_MS = 5000,  /* the hub's promise */
    START_MS = 60000, /* until all train: no limit of its own, but the test's */
    SETTLE_MS = 300,  /* until what was pushed has arrived */
    HERE = 0,         /* the hub's host */
    FAR = 1,
    FAR_RANK = 0
};

static const char *secret_setting(const char *name)
{
    static char setting[2][4200];
    static size_t count;
    char *text = setting[count++ % 2];
    snprintf(text, sizeof setting[0], "%s=%s", name, test_path("secret"));
    return text;
}

static void write_secret(void)
{
    assert_int_equal(chmod(test_write_file("secret", "sixteen bytes and some more\n"), 0600), 0);
}

static bool have_come_to(const struct hub_job *job, void *step)
{
    return hub_job_least_step(job) >= *(const uint64_t *)step;
}

/* Worker 0 is far from the hub, the others are beside it. */
static void begin(struct hub_job *job, const struct two_hosts *hosts)
{
    uint64_t step = 5;
    write_secret();
    two_hosts_enter(hosts, HERE);
    snprintf(job->address, sizeof job->address, "%s:4711", hosts->addresses[HERE]);
    hub_job_begin(job);
    job->settings[0] = secret_setting("hub.secret_file");
    job->settings[1] = "hub.threads=2";
    job->settings[2] = "hub.log=none";
    job->options[0] = secret_setting("secret");
    job->options[1] = "pause_ms=2";
    job->num_iterations = 1000000;
    hub_job_start_hub(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        two_hosts_enter(hosts, rank == FAR_RANK ? FAR : HERE);
        hub_job_start_worker(job, rank, NULL);
    }
    if (!hub_job_wait(job, have_come_to, &step, START_MS))
        fail_msg("no worker comes to iteration %llu", (unsigned long long)step);
}

static bool have_heard(const struct hub_job *job, void *unused)
{
    (void)unused;
    return job->workers[0].num_lost > 0 && job->workers[1].num_lost > 0;
}

static void assert_heard(struct hub_job *job, const struct two_hosts *hosts)
{
    const uint64_t cut_ns = ph__clock_ns();
    two_hosts_cut(hosts);
    if (!hub_job_wait(job, have_heard, NULL, hub_ms_left(cut_ns, LIMIT_MS)))
        fail_msg("worker %d has not heard of the silence within %d ms",
            job->workers[FAR_RANK].num_lost > 0 ? 1 : FAR_RANK, LIMIT_MS);
    assert_non_null(strstr(job->workers[1].last_lost, "worker 0 of service 'worker' failed"));
}

static void a_host_that_falls_silent_is_noticed_while_all_train(void **state)
{
    (void)state;
    struct two_hosts hosts;
    struct hub_job job = {.num_workers = 2};
    two_hosts_begin(&hosts);
    begin(&job, &hosts);
    assert_heard(&job, &hosts);
    hub_job_end(&job);
    two_hosts_end(&hosts);
}

/* Nothing is on its way then that could stay without an answer. */
static void a_host_that_falls_silent_is_noticed_while_all_wait(void **state)
{
    (void)state;
    struct two_hosts hosts;
    struct hub_job job = {.num_workers = 3};
    two_hosts_begin(&hosts);
    begin(&job, &hosts);
    kill(job.workers[2].id, SIGSTOP);
    hub_job_listen(&job, SETTLE_MS);
    assert_heard(&job, &hosts);
    hub_job_end(&job);
    two_hosts_end(&hosts);
}

#define test_of_job(test) cmocka_unit_test_teardown(test, hub_processes_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of_job(a_host_that_falls_silent_is_noticed_while_all_train),
        test_of_job(a_host_that_falls_silent_is_noticed_while_all_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
