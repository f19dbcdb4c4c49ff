/* What a job is said to take of its hub, against what the C library and the kernel have given for it; and that a job which would
 * take too much takes nothing. */
#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "hub/shard/tenant.h"
#include "support/hub_thread.h"

enum { NUM_CORES = 3, NUM_WORKERS = 2, CHUNK_BYTES = 64 };

static uint64_t bytes_given(void)
{
    const struct mallinfo2 given = mallinfo2();
    return (uint64_t)given.uordblks + (uint64_t)given.hblkhd;
}

/* Worker 0 shares memory, worker 1 has links. */
static struct ph_tenant *make_tenant(const struct ph_hub_service *service, enum ph_dtype dtype)
{
    const struct ph_hub_share share = {.num_hubs = 1};
    struct ph_service_settings settings;
    struct ph_tenant *tenant;
    ph__service_copy(service, &share, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    tenant->members[0].is_shared = true;
    tenant->num_keys = 3;
    tenant->keys = calloc(tenant->num_keys, sizeof *tenant->keys);
    assert_non_null(tenant->keys);
    for (size_t i = 0; i < tenant->num_keys; i++)
        tenant->keys[i] = (struct ph_init_key){.num_elements = 20000 + 1000 * i, .dtype = dtype};
    return tenant;
}

static ph_status build_within(struct ph_tenant *tenant, bool has_snapshots, uint64_t max_bytes)
{
    enum ph_isa isa;
    assert_ok(ph__cpu_isa(&isa));
    struct ph_autotune tuning = {.kernels = ph__kernels_for(isa)};
    const struct ph_tenant_options options = {.num_cores = NUM_CORES,
        .kernels = tuning.kernels,
        .tuning = &tuning,
        .max_bytes = max_bytes,
        .has_snapshots = has_snapshots};
    return ph__tenant_build(tenant, &options);
}

static void build(struct ph_tenant *tenant, bool has_snapshots)
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
    struct ph_tenant *tenant = make_tenant(service, dtype);
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
    const struct ph_hub_optimizer adam = {.kind = PH_ADAM, .learning_rate = 0.1f};
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
    struct ph_tenant *tenant = make_tenant(&service, PH_F32);
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
        cmocka_unit_test(too_many_chunks_are_refused_before_there_are_any),
        cmocka_unit_test(what_is_counted_is_what_is_given),
        cmocka_unit_test(spreading_the_chunks_counts_while_it_lasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
