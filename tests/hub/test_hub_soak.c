/* One hub through hundreds of jobs: tenants come and go, with workers that leave, die, come back and are killed, beside
 * visitors that look, that say nothing or nonsense, and that ask for too much. What synchronous jobs pull is right to the bit; and
 * whenever all have gone, the hub has as many descriptors and threads as when it started, and its memory does not grow.
 * Neither does this process, which has been all those workers.
 *
 * $PH_TEST_SOAK_SECONDS: how long (300). What comes is drawn from the seed that is printed, in rounds; each ends with a moment
 * at which nothing is under way. */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/rng.h"
#include "hub/hub_processes.h"
#include "hub/process_usage.h"
#include "hub/soak_job.h"
#include "hub/soak_visitors.h"
#include "net/socket.h"
#include "support/test_support.h"

enum {
    NUM_TENANTS = 3,
    JOBS_OF_TENANT = 4, /* a round */
    VISITS = 8,
    NUM_SILENT = 3,
    JOBS_OF_ROUND = NUM_TENANTS * JOBS_OF_TENANT + 1, /* with that of killed processes */
    MAX_JOBS = 16,
    MAX_JOB_BYTES = 1 << 25,
    PATIENCE_MS = 60000, /* for what takes no time unless the machine is very busy */
};

/* With plain_malloc() the pages of a hub at rest are the same to some dozens of KiB from its first minute to its last, so a
 * minute, of some thousands of jobs, shows a leak of 64 bytes a job, and an hour one of 20. What malloc has given out in
 * this process is known to the byte, but for what belongs to threads. */
static const struct usage_limits hub_limits = {
    .bytes = 1 << 16, .bytes_per_job = 16, .mappings = 4, .jobs_per_mapping = 100};
static const struct usage_limits own_limits = {
    .bytes = 4096, .bytes_per_job = 4, .mappings = 4, .jobs_per_mapping = 100};

static struct usage_history hub_history, own_history;

struct soak {
    struct hub_job job; /* only its hub */
    struct soak_hub hub;
    struct process_usage hub_base, own_base; /* before the first job */
    uint64_t num_jobs;
};

/* ---- a round ---- */

struct guest { /* a thread of jobs, or of visits */
    const struct soak_hub *hub;
    char name[32];
    struct ph_rng_sequence chances;
    ph_status status;
    char text[1024];
    pthread_t thread;
};

static void *run_jobs(void *context)
{
    struct guest *guest = context;
    for (int i = 0; i < JOBS_OF_TENANT && guest->status == PH_OK; i++)
        guest->status = soak_job_run(guest->hub->address, guest->name, ph__rng_next(&guest->chances));
    snprintf(guest->text, sizeof guest->text, "%s", ph_error_text());
    return NULL;
}

static void *pay_visits(void *context)
{
    struct guest *guest = context;
    for (int i = 0; i < VISITS && guest->status == PH_OK; i++)
        guest->status = soak_visit(guest->hub, guest->name, ph__rng_next(&guest->chances));
    snprintf(guest->text, sizeof guest->text, "%s", ph_error_text());
    return NULL;
}

static void begin_guests(struct guest guests[NUM_TENANTS + 1], const struct soak_hub *hub, uint64_t round)
{
    for (uint32_t i = 0; i <= NUM_TENANTS; i++) {
        guests[i] = (struct guest){
            .hub = hub, .chances = {.key = {.seed = test_seed(), .step = round, .stream = 1 + i}}};
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

/* Workers that are processes: one is killed, at whatever it does; the others hear of it, or go on without it. */
static void run_killed_job(const struct soak *soak, struct ph_rng_sequence *chances)
{
    static const char *const optimizers[] = {"optimizer=momentum", "optimizer=adam", "optimizer=sgd"};
    const bool has_tcp = ph__rng_below(chances, 2) == 0, shrinks = ph__rng_below(chances, 2) == 0;
    const struct ph_hub_options options = {.address = soak->hub.address, .timeout_ms = SOAK_TIMEOUT_MS};
    struct hub_job job = {.log = soak->job.log,
        .num_workers = 2 + (uint32_t)ph__rng_below(chances, 2),
        .num_iterations = shrinks ? 60 : 1000000,
        .options = {"service=killed", "patience_ms=0", "timeout_ms=60000",
            optimizers[ph__rng_below(chances, 3)], has_tcp ? "tcp=1" : "pause_ms=1",
            ph__rng_below(chances, 2) == 0 ? "checkpoint_every=5" : "chunk_bytes=2048",
            shrinks ? "shrink=1" : NULL}};
    const uint32_t victim = (uint32_t)ph__rng_below(chances, job.num_workers);
    strcpy(job.address, soak->job.address);
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
    struct ph_rng_sequence chances = {.key = {.seed = test_seed(), .step = round}};
    struct guest guests[NUM_TENANTS + 1];
    int silent[NUM_SILENT];
    for (size_t i = 0; i < NUM_SILENT; i++)
        assert_ok(ph__socket_connect(soak->hub.address, SOAK_TIMEOUT_MS, &silent[i]));
    begin_guests(guests, &soak->hub, round);
    run_killed_job(soak, &chances);
    end_guests(guests, round);
    for (size_t i = 0; i < NUM_SILENT; i++)
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

static void fail_at_rest(const struct soak *soak, ph_status status, const struct process_usage *hub,
    const struct process_usage *own)
{
    fail_msg("after %llu jobs: %s; the hub has %zu descriptors and %zu threads instead of %zu and %zu, "
             "the clients have %zu and %zu instead of %zu and %zu",
        (unsigned long long)soak->num_jobs, status != PH_OK ? ph_error_text() : "no jobs are left",
        hub->num_descriptors, hub->num_threads, soak->hub_base.num_descriptors, soak->hub_base.num_threads,
        own->num_descriptors, own->num_threads, soak->own_base.num_descriptors, soak->own_base.num_threads);
}

/* What the hub hears last it may hear a little later than we said it. */
static void rest(struct soak *soak)
{
    struct process_usage hub, own;
    ph_status status = PH_ERROR_DATA;
    const double deadline = ph__clock_seconds() + PATIENCE_MS / 1e3;
    for (;;) {
        if (status != PH_OK)
            status = soak_is_idle(&soak->hub);
        process_usage_read(soak->job.hub.id, &hub);
        process_usage_read(getpid(), &own);
        if (status == PH_OK && is_as_before(&hub, &soak->hub_base) && is_as_before(&own, &soak->own_base))
            break;
        if (ph__clock_seconds() > deadline)
            fail_at_rest(soak, status, &hub, &own);
        usleep(1000);
    }
    const struct mallinfo2 heap = mallinfo2();
    add_sample(&hub_history, soak, hub.num_mappings, hub.bytes);
    add_sample(&own_history, soak, own.num_mappings, heap.uordblks + heap.hblkhd);
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
    process_usage_read(soak->job.hub.id, &soak->hub_base);
    process_usage_read(getpid(), &soak->own_base);
}

static void start_hub(struct soak *soak)
{
    static char jobs[48], bytes[48];
    const char *folder = test_path("checkpoints");
    assert_ok(ph__directory_create(folder));
    snprintf(jobs, sizeof jobs, "hub.max_jobs=%d", MAX_JOBS);
    snprintf(bytes, sizeof bytes, "hub.max_job_bytes=%d", MAX_JOB_BYTES);
    soak->job = (struct hub_job){.folder = folder,
        .log = test_path("hub.log"),
        .settings = {"hub.metrics_address=127.0.0.1:0", "hub.threads=2", jobs, bytes}};
    hub_job_begin(&soak->job);
    hub_job_start_hub(&soak->job);
    soak->hub = (struct soak_hub){.address = soak->job.address,
        .metrics = soak->job.hub.metrics,
        .max_jobs = MAX_JOBS,
        .max_job_bytes = MAX_JOB_BYTES};
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
static void stop_hub(struct soak *soak)
{
    assert_int_equal(truncate(soak->job.log, 0), 0);
    kill(soak->job.hub.id, SIGTERM);
    const int code = hub_process_wait(&soak->job.hub, PATIENCE_MS);
    if (code != 128 + SIGTERM)
        print_log(soak->job.log);
    assert_int_equal(code, 128 + SIGTERM);
    hub_job_end(&soak->job);
}

static bool goes_on(uint64_t round, double end)
{
    return round < MIN_USAGE_SAMPLES || ph__clock_seconds() < end;
}

static void a_hub_stays_as_it_is_while_jobs_come_and_go(void **state)
{
    (void)state;
    struct soak soak = {0};
    const double end = ph__clock_seconds() + num_seconds;
    start_hub(&soak);
    for (uint64_t round = 0; goes_on(round, end); round++) {
        run_round(&soak, round);
        soak.num_jobs += JOBS_OF_ROUND;
        if (round % 8 == 0)
            assert_ok(soak_fill(&soak.hub));
        rest(&soak);
        assert_int_equal(truncate(soak.job.log, 0), 0); /* of the last round is enough */
    }
    stop_hub(&soak);
    print_message("%llu jobs in %zu rounds\n", (unsigned long long)soak.num_jobs, hub_history.count);
    usage_history_check(&hub_history, "the hub", &hub_limits);
    usage_history_check(&own_history, "its clients", &own_limits);
}

/* What malloc keeps for later hides what is lost: its caches pin pages of the greatest heap that there ever was. It reads
 * how it shall be when a process begins, so this one begins anew, and the hub and all others do as it does. */
static void plain_malloc(char **arguments)
{
    static const struct {
        const char *name, *value;
    } settings[] = {{"MALLOC_ARENA_MAX", "1"}, {"MALLOC_MMAP_THRESHOLD_", "16384"},
        {"MALLOC_TRIM_THRESHOLD_", "0"}, {"MALLOC_TOP_PAD_", "0"},
        {"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}};
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
        cmocka_unit_test_teardown(a_hub_stays_as_it_is_while_jobs_come_and_go, hub_processes_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
