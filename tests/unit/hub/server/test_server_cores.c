/* Where core threads run, and when they are told that they are a crowd. */
#include <sched.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "hub/client/client_operator.h"
#include "hub/layout/placement.h"
#include "hub/shard/core.h"
#include "support/hub_thread.h"

static const struct ph_hub_key a_key = {.num_elements = 1000, .dtype = PH_F32};

static void look_where(void *context)
{
    assert_int_equal(sched_getaffinity(0, sizeof(cpu_set_t), context), 0);
}

static void a_core_thread_stays_on_its_processor(void **state)
{
    (void)state;
    struct ph__machine machine;
    struct ph__core *core;
    cpu_set_t set;
    assert_ok(ph__machine_detect(&machine));
    const uint32_t processor = machine.units[machine.num_units - 1].processor;
    const struct ph__core_options options = {
        .wait = PH_WAIT_SLEEP, .max_shards = 1, .max_links = 1, .processor = (int)processor};
    assert_ok(ph__core_create(&options, &core));
    ph__core_call(core, look_where, &set);
    assert_int_equal(CPU_COUNT(&set), 1);
    assert_true(CPU_ISSET(processor, &set));
    ph__core_destroy(core);
    ph__machine_fini(&machine);
}

static void one_that_may_run_anywhere_does(void **state)
{
    (void)state;
    struct ph__core *core;
    cpu_set_t mine, set;
    const struct ph__core_options options = {
        .wait = PH_WAIT_SLEEP, .max_shards = 1, .max_links = 1, .processor = -1};
    look_where(&mine);
    assert_ok(ph__core_create(&options, &core));
    ph__core_call(core, look_where, &set);
    assert_true(CPU_EQUAL(&mine, &set));
    ph__core_destroy(core);
}

static bool is_crowded(const struct hub_thread *hub)
{
    struct ph__json *status;
    assert_ok(ph__hub_status(&hub->options, NULL, &status));
    const bool is_so = ph__json_as_bool(ph__json_get(status, "is_crowded"), false);
    ph__json_destroy(status);
    return is_so;
}

static bool is_crowded_by(struct hub_thread *hub, uint32_t num_workers, enum ph_hub_transport transport)
{
    struct hub_workers workers;
    struct ph_hub_service service = hub_thread_service("crowd", num_workers);
    assert_ok(ph_hub_create_service(&hub->options, &service));
    hub_workers_begin(&workers, hub, &service, &a_key, 1, 1, transport);
    hub_workers_wait(&workers);
    const bool is_so = is_crowded(hub);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    assert_ok(ph_hub_destroy_service(&hub->options, "crowd", HUB_THREAD_NONCE));
    return is_so;
}

static void workers_of_this_host_make_a_crowd(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    assert_false(is_crowded(&hub));
    const uint32_t num_processors = (uint32_t)ph__cpu_count(); /* one core thread, and as many workers */
    assert_true(is_crowded_by(&hub, num_processors, PH_HUB_SHARED_MEMORY));
    assert_false(is_crowded(&hub));
    assert_true(is_crowded_by(&hub, num_processors, PH_HUB_TCP));
    hub_thread_end(&hub);
}

/* Its caller's and that of its links. */
static void a_worker_over_tcp_has_two_threads(void **state)
{
    (void)state;
    struct hub_thread hub;
    const uint32_t num_processors = (uint32_t)ph__cpu_count(), num_workers = (num_processors + 1) / 2;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    assert_int_equal(
        is_crowded_by(&hub, num_workers, PH_HUB_SHARED_MEMORY), 1 + num_workers > num_processors);
    assert_true(is_crowded_by(&hub, num_workers, PH_HUB_TCP));
    hub_thread_end(&hub);
}

static void core_threads_alone_can_be_one(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = (uint32_t)ph__cpu_count() + 1});
    assert_true(is_crowded(&hub));
    hub_thread_end(&hub);
}

static void there_is_a_limit_to_core_threads(void **state)
{
    (void)state;
    struct ph_hub_server *server;
    const struct ph_hub_server_options options = {.size = sizeof options, .num_threads = 129};
    assert_fails(ph_hub_server_create(&options, &server), PH_ERROR_CONFIG, "129 core threads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_thread_stays_on_its_processor),
        cmocka_unit_test(one_that_may_run_anywhere_does),
        cmocka_unit_test(workers_of_this_host_make_a_crowd),
        cmocka_unit_test(a_worker_over_tcp_has_two_threads),
        cmocka_unit_test(core_threads_alone_can_be_one),
        cmocka_unit_test(there_is_a_limit_to_core_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
