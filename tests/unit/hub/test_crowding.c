/* Who is told that more threads want to run than there are processors: core threads and clients. A thread
 * that waits by `auto` then offers its processor to others, by sched_yield, which this program has put its
 * own before. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "hub/client/client_state.h"
#include "hub/server/server_state.h"
#include "hub/shard/core.h"
#include "support/core_job.h"
#include "support/hub_thread.h"
#include "support/hub_turns.h"

static const struct ph_hub_key a_key = {.num_elements = 1000, .dtype = PH_F32};

static atomic_uint num_offers;

int sched_yield(void)
{
    atomic_fetch_add(&num_offers, 1);
    return (int)syscall(SYS_sched_yield);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- a core thread ---- */

struct resting {
    struct ph__core *core;
    bool is_resting, is_crowded;
};

static void work(void *context)
{
    struct resting *resting = context;
    resting->is_resting = false;
}

static void rest(void *context)
{
    struct resting *resting = context;
    ph__core_set_crowded(resting->core, resting->is_crowded);
    resting->is_resting = true;
}

static void wait_for_sleep(const struct ph__core *core)
{
    const uint64_t num_sleeps = ph__core_counters(core).sleeps;
    while (ph__core_counters(core).sleeps == num_sleeps)
        nap();
}

/* Of a core thread that has worked and has nothing to do any more, until it sleeps. */
static unsigned count_offers(struct resting *resting, bool is_crowded)
{
    resting->is_crowded = is_crowded;
    ph__core_call(resting->core, work, resting);
    atomic_store(&num_offers, 0);
    ph__core_call(resting->core, rest, resting);
    wait_for_sleep(resting->core);
    return atomic_load(&num_offers);
}

static void a_core_thread_in_a_crowd_offers_its_processor(void **state)
{
    (void)state;
    const struct ph__core_options options = {
        .wait = PH_WAIT_AUTO, .max_shards = 1, .max_links = 1, .processor = -1};
    struct resting resting = {.is_resting = true};
    struct core_job job;
    assert_ok(ph__core_create(&options, &resting.core));
    core_job_init(&job, 4096, 1024, 1, false);
    core_job_attach_tireless(&job, &resting.is_resting);
    core_job_start(&job, resting.core);
    assert_int_equal(count_offers(&resting, false), 0);
    assert_true(count_offers(&resting, true) > 0);
    assert_int_equal(count_offers(&resting, false), 0);
    core_job_stop(&job, resting.core);
    core_job_fini(&job);
    ph__core_destroy(resting.core);
}

/* ---- a hub's ---- */

/* Whether its one core thread offers its processor, while the workers of a job sleep whenever they wait. */
static bool are_offers_made(struct hub_thread *hub, uint32_t num_workers)
{
    struct hub_workers workers;
    const struct ph_hub_service service = hub_thread_service("crowd", num_workers);
    const uint64_t begin_ns = ph__clock_ns();
    atomic_store(&num_offers, 0);
    assert_ok(ph_hub_create_service(&hub->options, &service));
    hub_workers_begin(&workers, hub, &service, &a_key, 1, 3, PH_HUB_SHARED_MEMORY);
    hub_workers_wait(&workers);
    struct ph__core *core = hub->server->cores[0];
    if (num_workers < ph__cpu_count())
        wait_for_sleep(core);
    while (num_workers >= ph__cpu_count() && atomic_load(&num_offers) == 0 &&
           ph__clock_ns() - begin_ns < HUB_THREAD_TIMEOUT_MS * 1000000ull)
        nap();
    const bool are_made = atomic_load(&num_offers) > 0;
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    assert_ok(ph_hub_destroy_service(&hub->options, "crowd", HUB_THREAD_NONCE));
    return are_made;
}

static void a_hubs_core_threads_hear_of_workers_that_come(void **state)
{
    (void)state;
    const uint32_t num_processors = (uint32_t)ph__cpu_count();
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    hub.options.wait = PH_HUB_WAIT_SLEEP;
    if (num_processors > 1)
        assert_false(are_offers_made(&hub, num_processors - 1));
    assert_true(are_offers_made(&hub, num_processors));
    if (num_processors > 1)
        assert_false(are_offers_made(&hub, num_processors - 1));
    hub_thread_end(&hub);
}

/* ---- a client ---- */

static bool is_client_told(uint32_t num_threads)
{
    struct hub_thread hub;
    struct ph_hub_client *client;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = num_threads});
    const struct ph_hub_service service = hub_thread_service("one", 1);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub.options.transport = PH_HUB_SHARED_MEMORY;
    assert_ok(ph_hub_connect(&hub.options, "one", HUB_THREAD_NONCE, 0, &client));
    assert_ok(ph_hub_init(client, &a_key, 1, NULL));
    const bool is_told = client->waiter.is_crowded;
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
    return is_told;
}

static void a_client_hears_of_the_crowd_that_it_joins(void **state)
{
    (void)state;
    const uint32_t num_processors = (uint32_t)ph__cpu_count();
    assert_true(is_client_told(num_processors)); /* and the worker itself */
    if (num_processors > 1)
        assert_false(is_client_told(num_processors - 1));
}

static bool says_that_it_is_crowded(int socket)
{
    struct ph__control_stream *stream;
    struct ph__control_frame frame;
    struct ph__job_layout layout;
    bool is_there = true;
    assert_ok(ph__control_stream_create(socket, &stream));
    assert_ok(ph__control_stream_receive(stream));
    for (frame.type = 0; frame.type != PH_FRAME_LAYOUT;) {
        assert_ok(ph__control_stream_take(stream, &frame, &is_there));
        assert_true(is_there);
    }
    assert_ok(ph__get_layout(frame.body, frame.size, &layout));
    ph__control_stream_destroy(stream);
    return layout.is_crowded;
}

static void a_client_of_another_host_has_processors_of_its_own(void **state)
{
    (void)state;
    unsigned char keys[PH_HUB_KEY_BYTES];
    struct ph__wire_writer writer;
    int sockets[2];
    struct ph_hub_server *server = hub_turns_begin(
        (struct ph_hub_server_options){.num_threads = (uint32_t)ph__cpu_count() + 1, .chunk_bytes = 4096});
    for (uint32_t rank = 0; rank < 2; rank++) {
        sockets[rank] = hub_turns_connect(server, rank == 0);
        hub_turns_join(server, sockets[rank], rank);
    }
    ph__wire_writer_init(&writer, keys, sizeof keys);
    ph__put_keys(&writer, &a_key, 1);
    for (uint32_t rank = 0; rank < 2; rank++)
        hub_turns_say(server, sockets[rank], PH_FRAME_INIT, keys, writer.used);
    assert_true(says_that_it_is_crowded(sockets[0]));
    assert_false(says_that_it_is_crowded(sockets[1]));
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_thread_in_a_crowd_offers_its_processor),
        cmocka_unit_test(a_hubs_core_threads_hear_of_workers_that_come),
        cmocka_unit_test(a_client_hears_of_the_crowd_that_it_joins),
        cmocka_unit_test(a_client_of_another_host_has_processors_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
