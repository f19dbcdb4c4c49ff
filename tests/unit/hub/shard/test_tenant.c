/* What becomes of a running job when a worker leaves it in good order, seen by the one that stays; and a job
 * that is refused. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "hub/shard/tenant.h"
#include "support/hub_thread.h"

#define NUM_ELEMENTS 20000u /* several chunks */

static const struct ph_hub_key a_key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32};

struct pair {
    struct hub_thread hub;
    enum ph_hub_transport transport;
    pthread_barrier_t has_left;
    ph_status left;  /* what the one that leaves got */
    ph_status again; /* what the one that stays got for its second iteration */
    char error[1024];
    bool is_own_sum;
    uint32_t num_contributors;
};

static struct ph_hub_client *join_as(const struct pair *pair, uint32_t rank)
{
    struct ph_hub_options options = pair->hub.options;
    struct ph_hub_client *client = NULL;
    options.transport = pair->transport;
    if (ph_hub_connect(&options, "pair", HUB_THREAD_NONCE, rank, &client) != PH_OK ||
        ph_hub_init(client, &a_key, 1, NULL) != PH_OK) {
        ph_hub_client_destroy(client);
        return NULL;
    }
    return client;
}

static ph_status exchange(struct ph_hub_client *client, uint32_t rank, uint64_t iteration)
{
    float *gradient = ph_hub_gradient(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        gradient[i] = hub_thread_gradient(rank, 0, iteration, i);
    PH_TRY(ph_hub_pushpull_start(client, 0));
    return ph_hub_wait(client, 0);
}

static void *leave_after_one(void *context)
{
    struct pair *pair = context;
    struct ph_hub_client *client = join_as(pair, 1);
    pair->left = client != NULL ? exchange(client, 1, 1) : PH_ERROR_PEER;
    if (pair->left == PH_OK)
        pair->left = ph_hub_leave(client);
    pthread_barrier_wait(&pair->has_left);
    ph_hub_client_destroy(client);
    return NULL;
}

static bool is_own_sum(const struct ph_hub_client *client)
{
    const float *got = ph_hub_parameters(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        if (got[i] != hub_thread_gradient(0, 0, 2, i))
            return false;
    }
    return true;
}

static void stay_for_two(struct pair *pair)
{
    struct ph_hub_client_info info;
    struct ph_hub_client *client = join_as(pair, 0);
    assert_non_null(client);
    assert_ok(exchange(client, 0, 1));
    pthread_barrier_wait(&pair->has_left);
    pair->again = exchange(client, 0, 2);
    snprintf(pair->error, sizeof pair->error, "%s", ph_error_text());
    pair->is_own_sum = pair->again == PH_OK && is_own_sum(client);
    ph_hub_client_describe(client, &info);
    pair->num_contributors = info.num_contributors;
    ph_hub_client_destroy(client);
}

static void run_pair(struct pair *pair, enum ph_hub_transport transport, enum ph_hub_on_death on_death)
{
    pthread_t thread;
    *pair = (struct pair){.transport = transport};
    hub_thread_begin(&pair->hub, (struct ph_hub_server_options){0});
    struct ph_hub_service service = hub_thread_service("pair", 2);
    service.on_death = on_death;
    assert_ok(ph_hub_create_service(&pair->hub.options, &service));
    pthread_barrier_init(&pair->has_left, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, leave_after_one, pair), 0);
    stay_for_two(pair);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&pair->has_left);
    assert_int_equal(pair->left, PH_OK);
    hub_thread_end(&pair->hub);
}

/* Never a sum that lacks a worker without a word. */
static void a_synchronous_job_ends_when_its_first_worker_leaves(void **state)
{
    (void)state;
    for (int transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct pair pair;
        run_pair(&pair, (enum ph_hub_transport)transport, PH_HUB_ABORT);
        assert_int_equal(pair.again, PH_ERROR_PEER);
        assert_non_null(strstr(pair.error, "worker 1 has left before iteration 2"));
    }
}

static void a_job_that_may_shrink_goes_on(void **state)
{
    (void)state;
    for (int transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct pair pair;
        run_pair(&pair, (enum ph_hub_transport)transport, PH_HUB_SHRINK);
        assert_int_equal(pair.again, PH_OK);
        assert_true(pair.is_own_sum);
        assert_int_equal(pair.num_contributors, 1);
    }
}

/* Placing so many chunks would keep the control thread, and so all other jobs, waiting for seconds. */
static void a_job_of_too_many_chunks_is_refused_before_they_are_placed(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const struct ph_hub_key key = {.num_elements = (size_t)1 << 24, .dtype = PH_F32};
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_bytes = (uint64_t)1 << 20});
    struct ph_hub_service service = hub_thread_service("crumbs", 1);
    service.chunk_bytes = PH_ALIGNMENT;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&hub.options, "crumbs", HUB_THREAD_NONCE, 0, &client));
    assert_fails(ph_hub_init(client, &key, 1, NULL), PH_ERROR_MEMORY, "bytes on the hub");
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* ---- quotas ---- */

/* What a job is said to take of its hub, against what the C library and the kernel have given for it; and
 * that a job which would take too much takes nothing. */

enum { NUM_CORES = 3, NUM_WORKERS = 2, CHUNK_BYTES = 64 };

static uint64_t bytes_given(void)
{
    const struct mallinfo2 given = mallinfo2();
    return (uint64_t)given.uordblks + (uint64_t)given.hblkhd;
}

/* Worker 0 shares memory, worker 1 has links. */
static struct ph__tenant *make_tenant(const struct ph_hub_service *service, enum ph_dtype dtype)
{
    const struct ph__hub_share share = {.num_hubs = 1};
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    ph__service_copy(service, &share, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    tenant->members[0].is_shared = true;
    tenant->num_keys = 3;
    tenant->keys = calloc(tenant->num_keys, sizeof *tenant->keys);
    assert_non_null(tenant->keys);
    for (size_t i = 0; i < tenant->num_keys; i++)
        tenant->keys[i] = (struct ph__init_key){.num_elements = 20000 + 1000 * i, .dtype = dtype};
    return tenant;
}

static ph_status build_within(struct ph__tenant *tenant, bool has_snapshots, uint64_t max_bytes)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    struct ph__autotune tuning = {.kernels = ph__kernels_for(isa)};
    const struct ph__tenant_options options = {.num_cores = NUM_CORES,
        .kernels = tuning.kernels,
        .tuning = &tuning,
        .max_bytes = max_bytes,
        .has_snapshots = has_snapshots};
    return ph__tenant_build(tenant, &options);
}

static void build(struct ph__tenant *tenant, bool has_snapshots)
{
    assert_ok(build_within(tenant, has_snapshots, UINT64_MAX));
    for (uint16_t core = 0; core < NUM_CORES; core++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        assert_ok(ph__tenant_link_tcp(tenant, 1, core, ends[0], NULL, NULL));
        close(ends[1]);
    }
}

static void check_bytes(const struct ph_hub_service *service, enum ph_dtype dtype, bool has_snapshots)
{
    const uint64_t before = bytes_given();
    struct ph__tenant *tenant = make_tenant(service, dtype);
    build(tenant, has_snapshots);
    const uint64_t of_library = bytes_given() - before;
    const uint64_t taken = of_library + tenant->memory->region.size + tenant->memory->workers[0].region.size;
    assert_true(taken <= tenant->num_bytes + tenant->num_bytes / 50); /* the library's own heads */
    if (of_library > 0)                                      /* a sanitizer's library does not tell */
        assert_true(tenant->num_bytes <= taken + taken / 4); /* rings of powers of two, for the fullest */
    ph__tenant_destroy(tenant);
}

static void what_is_counted_is_what_is_given(void **state)
{
    (void)state;
    const struct ph_hub_optimizer adam = {.rule.kind = PH_ADAM, .learning_rate = 0.1f};
    struct ph_hub_service service = hub_thread_service("job", NUM_WORKERS);
    service.chunk_bytes = CHUNK_BYTES;
    check_bytes(&service, PH_F32, false);
    service.optimizers = &adam;
    check_bytes(&service, PH_F32, true);
    service.order = PH_HUB_ARRIVAL_ORDER;
    service.depth = 2;
    check_bytes(&service, PH_BF16, false);
    service.mode = PH_HUB_ASYNCHRONOUS;
    check_bytes(&service, PH_F16, true);
}

static void spreading_the_chunks_counts_while_it_lasts(void **state)
{
    (void)state;
    struct ph_hub_service service = hub_thread_service("job", NUM_WORKERS);
    service.chunk_bytes = CHUNK_BYTES;
    struct ph__tenant *tenant = make_tenant(&service, PH_F32);
    assert_ok(build_within(tenant, false, UINT64_MAX));
    const uint64_t lasting = tenant->num_bytes;
    const uint64_t passing = ph__spread_bytes(tenant->layout->sizes.num_chunks);
    assert_true(passing >= 30 * tenant->layout->sizes.num_chunks);
    ph__tenant_destroy(tenant);
    tenant = make_tenant(&service, PH_F32);
    assert_fails(build_within(tenant, false, lasting + passing - 1), PH_ERROR_MEMORY, "are left for it");
    ph__tenant_destroy(tenant);
    tenant = make_tenant(&service, PH_F32);
    assert_ok(build_within(tenant, false, lasting + passing));
    assert_true(tenant->num_bytes == lasting);
    ph__tenant_destroy(tenant);
}

/* A key of 64 MiB in chunks of 64 bytes: their books alone are more than that. */
static void too_many_chunks_are_refused_before_there_are_any(void **state)
{
    (void)state;
    static const uint64_t max_bytes = 64u << 20;
    const struct ph_hub_key key = {.num_elements = (size_t)1 << 24, .dtype = PH_F32};
    struct hub_thread hub;
    struct ph_hub_client *client;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_bytes = max_bytes});
    struct ph_hub_service service = hub_thread_service("tiny", 1);
    service.chunk_bytes = CHUNK_BYTES;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&hub.options, "tiny", HUB_THREAD_NONCE, 0, &client));
    const uint64_t before = ph__memory_peak_rss_bytes();
    assert_fails(ph_hub_init(client, &key, 1, NULL), PH_ERROR_MEMORY, "67108864 are left");
    assert_true(ph__memory_peak_rss_bytes() < before + max_bytes);
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synchronous_job_ends_when_its_first_worker_leaves),
        cmocka_unit_test(a_job_that_may_shrink_goes_on),
        cmocka_unit_test(a_job_of_too_many_chunks_is_refused_before_they_are_placed),
        cmocka_unit_test(too_many_chunks_are_refused_before_there_are_any),
        cmocka_unit_test(what_is_counted_is_what_is_given),
        cmocka_unit_test(spreading_the_chunks_counts_while_it_lasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
