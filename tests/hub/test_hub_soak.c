/* Two hubs through hundreds of jobs: tenants of one or of both come and go, with workers that leave, die,
 * come back and are killed, beside visitors that look, that say nothing or nonsense, and that ask for too
 * much. What synchronous jobs pull is right to the bit; and whenever all have gone, each hub has as many
 * descriptors and threads as when it started, and its memory does not grow. Neither does this process, which
 * has been all those workers.
 *
 * $PH_TEST_SOAK_SECONDS: how long (300). What comes is drawn from the seed that is printed, in rounds; each
 * ends with a moment at which nothing is under way. */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "hub/hub_processes.h"
#include "hub/process_usage.h"
#include "hub/soak_job.h"
#include "hub/soak_visitors.h"
#include "net/link/socket.h"
#include "support/is_sanitized.h"
#include "support/test_support.h"

enum {
    NUM_HUBS = 2,
    NUM_TENANTS = 3,
    JOBS_OF_TENANT = 4, /* a round */
    VISITS = 8,
    NUM_SILENT = 3,                                   /* to each hub */
    JOBS_OF_ROUND = NUM_TENANTS * JOBS_OF_TENANT + 1, /* with that of killed processes */
    MAX_JOBS = 16,
    MAX_JOB_BYTES = 1 << 25,
    PATIENCE_MS = 60000, /* for what takes no time unless the machine is very busy */
};

/* With plain_malloc() the pages of a hub at rest are the same to some dozens of KiB from its first minute to
 * its last, so five minutes, of some ten thousand jobs, show a leak of 32 bytes a job, and an hour one of 20.
 * What malloc has given out in this process is known to the byte, but for what belongs to threads. */
static const struct usage_limits hub_limits = {
    .bytes = 1 << 16, .bytes_per_job = 16, .mappings = 4, .jobs_per_mapping = 100};
static const struct usage_limits own_limits = {
    .bytes = 4096, .bytes_per_job = 4, .mappings = 4, .jobs_per_mapping = 100};

static struct usage_history hub_histories[NUM_HUBS], own_history;

struct served {
    struct hub_job job; /* only its hub */
    struct soak_hub hub;
    struct process_usage base; /* before the first job */
};

struct soak {
    struct served hubs[NUM_HUBS];
    char addresses[80]; /* of both */
    struct process_usage own_base;
    uint64_t num_jobs;
};

/* Of the first hub, or of both. */
static const char *draw_address(const struct soak *soak, struct ph__rng_sequence *chances)
{
    return ph__rng_below(chances, 2) == 0 ? soak->addresses : soak->hubs[0].hub.address;
}

/* ---- a round ---- */

struct guest { /* a thread of jobs, or of visits */
    const struct soak *soak;
    char name[32];
    struct ph__rng_sequence chances;
    ph_status status;
    char text[1024];
    pthread_t thread;
};

static void *run_jobs(void *context)
{
    struct guest *guest = context;
    for (int i = 0; i < JOBS_OF_TENANT && guest->status == PH_OK; i++) {
        const char *address = draw_address(guest->soak, &guest->chances);
        guest->status = soak_job_run(address, guest->name, ph__rng_next(&guest->chances));
    }
    snprintf(guest->text, sizeof guest->text, "%s", ph_error_text());
    return NULL;
}

static void *pay_visits(void *context)
{
    struct guest *guest = context;
    for (int i = 0; i < VISITS && guest->status == PH_OK; i++) {
        const struct served *served = &guest->soak->hubs[ph__rng_below(&guest->chances, NUM_HUBS)];
        guest->status = soak_visit(&served->hub, guest->name, ph__rng_next(&guest->chances));
    }
    snprintf(guest->text, sizeof guest->text, "%s", ph_error_text());
    return NULL;
}

static void begin_guests(struct guest guests[NUM_TENANTS + 1], const struct soak *soak, uint64_t round)
{
    for (uint32_t i = 0; i <= NUM_TENANTS; i++) {
        guests[i] = (struct guest){
            .soak = soak, .chances = {.key = {.seed = test_seed(), .step = round, .stream = 1 + i}}};
        snprintf(guests[i].name, sizeof guests[i].name, "guest-%u", i);
        assert_int_equal(
            pthread_create(&guests[i].thread, NULL, i < NUM_TENANTS ? run_jobs : pay_visits, &guests[i]), 0);
    }
}

static void end_guests(struct guest guests[NUM_TENANTS + 1], uint64_t round)
{
    for (uint32_t i = 0; i <= NUM_TENANTS; i++)
        pthread_join(guests[i].thread, NULL);
    for (uint32_t i = 0; i <= NUM_TENANTS; i++) {
        if (guests[i].status != PH_OK)
            fail_msg("round %llu, %s: %s", (unsigned long long)round, guests[i].name, guests[i].text);
    }
}

static bool is_under_way(const struct hub_job *job, void *unused)
{
    (void)unused;
    return hub_job_least_step(job) >= 2;
}

/* Workers that are processes: one is killed, at whatever it does; the others hear of it, or go on without it.
 */
static void run_killed_job(const struct soak *soak, struct ph__rng_sequence *chances)
{
    static const char *const optimizers[] = {"optimizer=momentum", "optimizer=adam", "optimizer=sgd"};
    const bool has_tcp = ph__rng_below(chances, 2) == 0, shrinks = ph__rng_below(chances, 2) == 0;
    const struct ph_hub_options options = {
        .size = sizeof options, .address = draw_address(soak, chances), .timeout_ms = SOAK_TIMEOUT_MS};
    struct hub_job job = {.addresses = options.address,
        .log = soak->hubs[0].job.log,
        .num_workers = 2 + (uint32_t)ph__rng_below(chances, 2),
        .num_iterations = shrinks ? 60 : 1000000,
        .options = {"service=killed", "patience_ms=0", "timeout_ms=60000",
            optimizers[ph__rng_below(chances, 3)], has_tcp ? "tcp=1" : "pause_ms=1",
            ph__rng_below(chances, 2) == 0 ? "checkpoint_every=5" : "chunk_bytes=2048",
            shrinks ? "shrink=1" : NULL}};
    const uint32_t victim = (uint32_t)ph__rng_below(chances, job.num_workers);
    strcpy(job.address, soak->hubs[0].job.address);
    hub_job_begin(&job);
    for (uint32_t rank = 0; rank < job.num_workers; rank++)
        hub_job_start_worker(&job, rank, NULL);
    if (!hub_job_wait(&job, is_under_way, NULL, PATIENCE_MS))
        fail_msg("the workers do not begin");
    hub_process_kill(&job.workers[victim]);
    for (uint32_t rank = 0; rank < job.num_workers; rank++) {
        if (rank != victim)
            assert_int_equal(hub_process_wait(&job.workers[rank], PATIENCE_MS), shrinks ? 0 : 6);
    }
    hub_job_end(&job);
    assert_ok(ph_hub_destroy_service(&options, "killed", 1));
}

static void run_round(const struct soak *soak, uint64_t round)
{
    struct ph__rng_sequence chances = {.key = {.seed = test_seed(), .step = round}};
    struct guest guests[NUM_TENANTS + 1];
    int silent[NUM_HUBS * NUM_SILENT];
    for (size_t i = 0; i < NUM_HUBS * NUM_SILENT; i++)
        assert_ok(ph__socket_connect(soak->hubs[i % NUM_HUBS].hub.address, SOAK_TIMEOUT_MS, &silent[i]));
    begin_guests(guests, soak, round);
    run_killed_job(soak, &chances);
    end_guests(guests, round);
    for (size_t i = 0; i < NUM_HUBS * NUM_SILENT; i++)
        close(silent[i]);
}

/* ---- moments of rest ---- */

static bool is_as_before(const struct process_usage *usage, const struct process_usage *base)
{
    return usage->num_descriptors == base->num_descriptors && usage->num_threads <= base->num_threads;
}

static void add_sample(
    struct usage_history *history, const struct soak *soak, size_t mappings, uint64_t bytes)
{
    const struct usage_sample sample = {.num_jobs = soak->num_jobs, .num_mappings = mappings, .bytes = bytes};
    usage_history_add(history, &sample);
}

static void print_usage(
    const char *process, const struct process_usage *usage, const struct process_usage *base)
{
    print_error("%s: %zu descriptors and %zu threads instead of %zu and %zu\n", process,
        usage->num_descriptors, usage->num_threads, base->num_descriptors, base->num_threads);
}

struct sight { /* of a moment */
    ph_status status;
    struct process_usage hubs[NUM_HUBS], own;
};

static bool is_at_rest(const struct soak *soak, struct sight *sight_out)
{
    bool is_as_ever = true;
    sight_out->status = PH_OK;
    for (size_t i = 0; i < NUM_HUBS && sight_out->status == PH_OK; i++)
        sight_out->status = soak_is_idle(&soak->hubs[i].hub);
    for (size_t i = 0; i < NUM_HUBS; i++) {
        process_usage_read(soak->hubs[i].job.hub.id, &sight_out->hubs[i]);
        is_as_ever &= is_as_before(&sight_out->hubs[i], &soak->hubs[i].base);
    }
    process_usage_read(getpid(), &sight_out->own);
    return sight_out->status == PH_OK && is_as_ever && is_as_before(&sight_out->own, &soak->own_base);
}

static void fail_at_rest(const struct soak *soak, const struct sight *sight)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        print_usage(soak->hubs[i].hub.address, &sight->hubs[i], &soak->hubs[i].base);
    print_usage("the clients", &sight->own, &soak->own_base);
    fail_msg("after %llu jobs: %s", (unsigned long long)soak->num_jobs,
        sight->status != PH_OK ? ph_error_text() : "no jobs are left");
}

/* What a hub hears last it may hear a little later than we said it. */
static void rest(const struct soak *soak)
{
    struct sight sight;
    const double deadline = ph__clock_seconds() + PATIENCE_MS / 1e3;
    while (!is_at_rest(soak, &sight)) {
        if (ph__clock_seconds() > deadline)
            fail_at_rest(soak, &sight);
        usleep(1000);
    }
    const struct mallinfo2 heap = mallinfo2();
    for (size_t i = 0; i < NUM_HUBS; i++)
        add_sample(&hub_histories[i], soak, sight.hubs[i].num_mappings, sight.hubs[i].bytes);
    add_sample(&own_history, soak, sight.own.num_mappings, heap.uordblks + heap.hblkhd);
}

/* ---- the soak ---- */

static double num_seconds = 300;

/* False where what the environment says is no number of seconds. */
static bool read_num_seconds(void)
{
    char *end;
    const char *text = getenv("PH_TEST_SOAK_SECONDS");
    if (text == NULL)
        return true;
    num_seconds = strtod(text, &end);
    return end != text && *end == '\0' && num_seconds >= 0 && isfinite(num_seconds);
}

static void *do_nothing(void *unused)
{
    return unused;
}

/* The thread sanitizer's own thread begins with the first other one. */
static void read_bases(struct soak *soak)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < NUM_HUBS; i++)
        process_usage_read(soak->hubs[i].job.hub.id, &soak->hubs[i].base);
    process_usage_read(getpid(), &soak->own_base);
}

static const char *numbered_path(const char *name, size_t number)
{
    char text[64];
    snprintf(text, sizeof text, "%s-%zu", name, number);
    return test_path(text);
}

static void start_hub(struct served *served, size_t number)
{
    static char jobs[48], bytes[48];
    const char *folder = numbered_path("checkpoints", number);
    assert_ok(ph__directory_create(folder));
    snprintf(jobs, sizeof jobs, "hub.max_jobs=%d", MAX_JOBS);
    snprintf(bytes, sizeof bytes, "hub.max_job_bytes=%d", MAX_JOB_BYTES);
    served->job = (struct hub_job){.folder = folder,
        .log = numbered_path("log", number),
        .settings = {"hub.metrics_address=127.0.0.1:0", "hub.threads=2", jobs, bytes}};
    hub_job_begin(&served->job);
    hub_job_start_hub(&served->job);
    served->hub = (struct soak_hub){.address = served->job.address,
        .metrics = served->job.hub.metrics,
        .max_jobs = MAX_JOBS,
        .max_job_bytes = MAX_JOB_BYTES};
}

static void start_hubs(struct soak *soak)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        start_hub(&soak->hubs[i], i);
    snprintf(soak->addresses, sizeof soak->addresses, "%s,%s", soak->hubs[0].hub.address,
        soak->hubs[1].hub.address);
    read_bases(soak);
}

static void print_log(const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        print_error("%s", line);
    if (file != NULL)
        fclose(file);
}

/* In good order, and with nothing to complain of in a build that looks for leaks. */
static void stop_hub(struct hub_job *job)
{
    assert_int_equal(truncate(job->log, 0), 0);
    kill(job->hub.id, SIGTERM);
    const int code = hub_process_wait(&job->hub, PATIENCE_MS);
    if (code != 128 + SIGTERM)
        print_log(job->log);
    assert_int_equal(code, 128 + SIGTERM);
    hub_job_end(job);
}

static bool goes_on(uint64_t round, double end)
{
    return (round < MIN_USAGE_SAMPLES && !PH_IS_SANITIZED) || ph__clock_seconds() < end;
}

static void fill_hubs(const struct soak *soak)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        assert_ok(soak_fill(&soak->hubs[i].hub));
}

static void truncate_logs(const struct soak *soak)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        assert_int_equal(truncate(soak->hubs[i].job.log, 0), 0);
}

static void hubs_stay_as_they_are_while_jobs_come_and_go(void **state)
{
    (void)state;
    struct soak soak = {0};
    const double end = ph__clock_seconds() + num_seconds;
    start_hubs(&soak);
    for (uint64_t round = 0; goes_on(round, end); round++) {
        run_round(&soak, round);
        soak.num_jobs += JOBS_OF_ROUND;
        if (round % 8 == 0)
            fill_hubs(&soak);
        rest(&soak);
        truncate_logs(&soak); /* that of the last round is enough */
    }
    for (size_t i = 0; i < NUM_HUBS; i++)
        stop_hub(&soak.hubs[i].job);
    print_message("%llu jobs in %zu rounds\n", (unsigned long long)soak.num_jobs, own_history.count);
    if (PH_IS_SANITIZED) /* which keeps what has been freed, and looks for leaks itself */
        return;
    usage_history_check(&hub_histories[0], "the first hub", &hub_limits);
    usage_history_check(&hub_histories[1], "the second hub", &hub_limits);
    usage_history_check(&own_history, "their clients", &own_limits);
}

/* What the C library keeps for later hides what is lost: caches of malloc, and stacks of threads that have
 * ended, with a small table each, pin pages of the greatest heap that there ever was. It reads how it shall
 * be when a process begins, so this one begins anew, and the hubs and all others do as it does. */
static void plain_malloc(char **arguments)
{
    static const struct {
        const char *name, *value;
    } settings[] = {{"MALLOC_ARENA_MAX", "1"}, {"MALLOC_MMAP_THRESHOLD_", "16384"},
        {"MALLOC_TRIM_THRESHOLD_", "0"}, {"MALLOC_TOP_PAD_", "0"},
        {"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.pthread.stack_cache_size=0"}};
    const char *tunables = getenv("GLIBC_TUNABLES");
    if (tunables != NULL && strstr(tunables, "tcache_count=0") != NULL)
        return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i].name, settings[i].value, 1);
    execv("/proc/self/exe", arguments);
    test_skip("this program cannot be started anew");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!read_num_seconds()) {
        fprintf(stderr, "PH_TEST_SOAK_SECONDS is no number of seconds\n");
        return 2;
    }
    plain_malloc(argv);
    (void)test_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(hubs_stay_as_they_are_while_jobs_come_and_go, hub_processes_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
