/* What a hub tells of itself, against what it goes by. */
#include "hub/server/server_figures.h"

#include "hub/keep/snapshot.h"
#include "support/hub_thread.h"

static struct ph__tenant *add_tenant(struct ph_hub_server *server)
{
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    const struct ph_hub_service service = hub_thread_service("over", 1);
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    ph__server_add_tenant(server, tenant);
    return tenant;
}

/* As when the disk is slow: the run is over, and its last snapshot is still being written. */
static void memory_of_a_run_that_is_over_is_told_until_it_is_written(void **state)
{
    (void)state;
    const struct ph__init_key key = {.num_elements = 100000, .dtype = PH_F32};
    struct ph_hub_server *server;
    struct ph__hub_figures figures;
    struct ph__snapshot *snapshot;
    struct ph__checkpoint_outcome outcome;
    assert_ok(ph_hub_server_create(
        &(struct ph_hub_server_options){
            .size = sizeof(struct ph_hub_server_options), .num_threads = 1, .max_bytes = 1 << 30},
        &server));
    struct ph__tenant *tenant = add_tenant(server);
    assert_ok(ph__snapshot_create(&tenant->settings, &key, 1, 32768, &snapshot));
    const struct ph__checkpoint_order order = {.work = PH_CHECKPOINT_WRITE, .part = PH_NO_ITERATION};
    assert_ok(ph__checkpoint_task_start(
        &order, test_path("over.safetensors"), snapshot, server->bell[1], &tenant->saves.task));
    tenant->saves.num_runs = 1;
    assert_ok(ph__hub_figures_read(server, &figures));
    assert_in_range(figures.used_bytes, 400000, 500000);
    assert_int_equal(figures.used_bytes, server->max_bytes - ph__server_bytes_left(server));
    ph__hub_figures_fini(&figures);
    assert_ok(ph__checkpoint_task_finish(tenant->saves.task, &outcome));
    tenant->saves.task = NULL;
    assert_ok(ph__hub_figures_read(server, &figures));
    assert_int_equal(figures.used_bytes, 0);
    ph__hub_figures_fini(&figures);
    ph__snapshot_destroy(outcome.snapshot);
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_a_run_that_is_over_is_told_until_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
