/* What an iteration costs once a job runs: over shared memory messages alone, and over TCP the calls that
 * move a payload once each way. No allocation, no registration of memory, no lock, no copy: counted by
 * functions of the C library that this program has put its own before (count_calls.h), and by the links'
 * counters. */
#include "support/count_calls.h"

#include "hub/client/client_state.h"
#include "net/link/link.h"
#include "net/link/tcp_link.h"
#include "support/steady_job.h"

#define SETTLE_MS 5000

/* ---- the links' counters ---- */

/* The hub's end of a worker's link. */
static const struct ph__link *other_end(const struct steady_job *job, uint32_t rank, uint32_t link)
{
    const struct ph_hub_client *client = job->workers[rank].client;
    uint32_t hub = 0;
    while (hub + 1 < steady_num_hubs(job) && client->hubs[hub + 1].first_link <= link)
        hub++;
    return ph__shard_link(job->hubs[hub].server->tenants->shards[link - client->hubs[hub].first_link], rank);
}

/* Of both ends of all links. */
static struct ph__link_counters read_links(const struct steady_job *job)
{
    struct ph__link_counters sum = {0};
    for (uint32_t rank = 0; rank < STEADY_WORKERS; rank++) {
        const struct ph_hub_client *client = job->workers[rank].client;
        for (uint32_t link = 0; link < client->num_links; link++) {
            ph__link_counters_add(&sum, &client->links[link]->counters);
            ph__link_counters_add(&sum, &other_end(job, rank, link)->counters);
        }
    }
    return sum;
}

/* ---- what an iteration must move ---- */

static uint64_t key_bytes(const struct steady_job *job)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < STEADY_KEYS; i++)
        bytes += steady_elements[i] * ph_dtype_size(steady_dtype(job, i));
    return bytes;
}

struct theory {
    uint64_t messages, payload_bytes, stream_bytes;
};

/* Of all iterations of all workers: a push and its reply for each chunk, and one learning rate for each core
 * thread of each hub. */
static struct theory work_out(const struct steady_job *job)
{
    struct ph_hub_client_info info;
    ph_hub_client_describe(job->workers[0].client, &info);
    const uint64_t ways = job->is_pulled_apart ? 4 : 2;
    const uint64_t num_messages = STEADY_WORKERS * ways * info.num_chunks + info.num_cores;
    const uint64_t frame_bytes = PH_TCP_FRAME_BYTES + (job->has_secret ? PH_FRAME_TAG_BYTES : 0);
    struct theory theory = {.messages = num_messages * STEADY_ITERATIONS};
    if (job->transport == PH_HUB_TCP)
        theory.payload_bytes = STEADY_WORKERS * 2 * key_bytes(job) * STEADY_ITERATIONS;
    theory.stream_bytes = theory.payload_bytes + theory.messages * frame_bytes;
    return theory;
}

/* ---- running ---- */

/* Workers have what they waited for; the other ends may still have to count it. */
static struct ph__link_counters settle(const struct steady_job *job, const struct ph__link_counters *before)
{
    const uint64_t wanted = work_out(job).messages;
    struct ph__link_counters now = read_links(job);
    for (int i = 0; i < SETTLE_MS && now.messages_sent - before->messages_sent < wanted; i++) {
        steady_nap();
        now = read_links(job);
    }
    return (struct ph__link_counters){.messages_sent = now.messages_sent - before->messages_sent,
        .messages_received = now.messages_received - before->messages_received,
        .payload_bytes_sent = now.payload_bytes_sent - before->payload_bytes_sent,
        .payload_bytes_received = now.payload_bytes_received - before->payload_bytes_received,
        .system_calls = now.system_calls - before->system_calls,
        .doorbells = now.doorbells - before->doorbells};
}

/* Whoever has sent or received something may still have to count it, and the other end has done so already.
 */
static struct ph__link_counters read_settled_links(const struct steady_job *job)
{
    struct ph__link_counters now = read_links(job);
    for (int i = 0; i < SETTLE_MS && now.messages_sent != now.messages_received; i++) {
        steady_nap();
        now = read_links(job);
    }
    return now;
}

/* Runs the job and counts its iterations. The figures are of the links. */
static struct ph__link_counters count_job(struct steady_job *job)
{
    steady_job_begin(job);
    const struct ph__link_counters before = read_settled_links(job);
    count_calls(true);
    steady_job_run(job);
    const struct ph__link_counters figures = settle(job, &before);
    count_calls(false);
    print_calls(job->name);
    return figures;
}

static void check_nothing_but_transfers(const struct steady_job *job)
{
    assert_int_equal(num_allocations(ALLOCATOR_OURS) + num_allocations(ALLOCATOR_LIBRARY), 0);
    for (enum counted_call call = 0; call < CALL_send; call++) {
        if (num_calls(call) > 0)
            fail_msg("%s: %llu calls of %s, %llu bytes", job->name, num_calls(call), counted_call_names[call],
                num_call_bytes(call));
    }
    assert_int_equal(num_calls(CALL_read) + num_calls(CALL_write), 0);
    assert_int_equal(num_call_bytes(CALL_recvmsg_for_descriptors), 0); /* nothing is said there */
    assert_int_equal(num_call_bytes(CALL_send), num_calls(CALL_send)); /* doorbells */
}

static void check_links(const struct steady_job *job, const struct ph__link_counters *figures)
{
    const struct theory theory = work_out(job);
    assert_int_equal(figures->messages_sent, theory.messages);
    assert_int_equal(figures->messages_received, theory.messages);
    assert_int_equal(figures->payload_bytes_sent, theory.payload_bytes);
    assert_int_equal(figures->payload_bytes_received, theory.payload_bytes);
}

static void check_shared(struct steady_job job)
{
    const struct ph__link_counters figures = count_job(&job);
    check_nothing_but_transfers(&job);
    check_links(&job, &figures);
    assert_int_equal(figures.system_calls, 0);
    assert_int_equal(num_calls(CALL_sendmsg) + num_calls(CALL_recvmsg) + num_calls(CALL_sendfile), 0);
    assert_true(figures.doorbells <= num_calls(CALL_send));
    if (job.wait == PH_HUB_WAIT_SPIN) {
        assert_int_equal(num_calls(CALL_send) + num_calls(CALL_recv) + num_calls(CALL_poll), 0);
        assert_int_equal(figures.doorbells, 0);
    }
    steady_job_end(&job);
}

static void check_tcp(struct steady_job job)
{
    const struct ph__link_counters figures = count_job(&job);
    const uint64_t stream_bytes = work_out(&job).stream_bytes;
    check_nothing_but_transfers(&job);
    check_links(&job, &figures);
    assert_int_equal(num_call_bytes(CALL_sendmsg) + num_call_bytes(CALL_sendfile), stream_bytes);
    assert_int_equal(num_call_bytes(CALL_recvmsg), stream_bytes);
    assert_int_equal(figures.doorbells, 0);
    steady_job_end(&job);
}

/* ---- the tests ---- */

static void setting_up_is_counted(void **state)
{
    struct steady_job job = {.name = "setting up", .transport = PH_HUB_SHARED_MEMORY};
    (void)state;
    count_calls(true);
    steady_job_begin(&job);
    count_calls(false);
    print_calls(job.name);
    assert_true(num_allocations(ALLOCATOR_OURS) > 0);
    assert_true(num_calls(CALL_mmap) > 0 && num_calls(CALL_memfd_create) > 0);
    assert_true(num_calls(CALL_pthread_mutex_lock) > 0 && num_calls(CALL_pthread_cond_signal) > 0);
    assert_true(num_call_bytes(CALL_sendmsg) > 0 && num_call_bytes(CALL_recvmsg_for_descriptors) > 0);
    assert_true(num_calls(CALL_free) > 0 && num_calls(CALL_epoll_wait) > 0);
    steady_job_run(&job);
    steady_job_end(&job);
}

/* A pull without a push finds the parameters where all workers read them: only then its own are copied. */
static void copies_are_counted(void **state)
{
    struct steady_job job = {.name = "own parameters, pulled apart",
        .transport = PH_HUB_SHARED_MEMORY,
        .has_own_parameters = true,
        .is_pulled_apart = true};
    (void)state;
    (void)count_job(&job);
    assert_int_equal(num_call_bytes(CALL_memcpy),
        STEADY_ITERATIONS * STEADY_WORKERS * (key_bytes(&job) - steady_elements[0] * sizeof(float)));
    steady_job_end(&job);
}

static void shared_memory_takes_messages_alone(void **state)
{
    static const enum ph_hub_wait_policy policies[] = {
        PH_HUB_WAIT_AUTO, PH_HUB_WAIT_SPIN, PH_HUB_WAIT_SPIN_THEN_SLEEP, PH_HUB_WAIT_SLEEP};
    static const char *const names[] = {
        "shared memory", "... spinning", "... spinning, then sleeping", "... sleeping"};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        check_shared(
            (struct steady_job){.name = names[i], .transport = PH_HUB_SHARED_MEMORY, .wait = policies[i]});
}

static void so_do_other_ways_of_a_job_over_shared_memory(void **state)
{
    (void)state;
    check_shared((struct steady_job){
        .name = "pushes and pulls", .transport = PH_HUB_SHARED_MEMORY, .is_pulled_apart = true});
    check_shared((struct steady_job){
        .name = "own parameters", .transport = PH_HUB_SHARED_MEMORY, .has_own_parameters = true});
    check_shared((struct steady_job){.name = "depth 2", .transport = PH_HUB_SHARED_MEMORY, .depth = 2});
    check_shared(
        (struct steady_job){.name = "clipping", .transport = PH_HUB_SHARED_MEMORY, .clip_norm = .5F});
    check_shared((struct steady_job){
        .name = "asynchronous", .transport = PH_HUB_SHARED_MEMORY, .mode = PH_HUB_ASYNCHRONOUS});
    check_shared(
        (struct steady_job){.name = "bounded", .transport = PH_HUB_SHARED_MEMORY, .mode = PH_HUB_BOUNDED});
    check_shared((struct steady_job){
        .name = "arrival order", .transport = PH_HUB_SHARED_MEMORY, .order = PH_HUB_ARRIVAL_ORDER});
    check_shared(
        (struct steady_job){.name = "narrow keys", .transport = PH_HUB_SHARED_MEMORY, .is_narrow = true});
    check_shared((struct steady_job){.name = "wide", .transport = PH_HUB_SHARED_MEMORY, .is_wide = true});
}

static void so_do_ways_together(void **state)
{
    (void)state;
    check_shared((struct steady_job){.name = "narrow keys, depth 2, own parameters",
        .transport = PH_HUB_SHARED_MEMORY,
        .depth = 2,
        .is_narrow = true,
        .has_own_parameters = true});
    check_shared((struct steady_job){.name = "arrival order, depth 2, clipping, sleeping",
        .transport = PH_HUB_SHARED_MEMORY,
        .wait = PH_HUB_WAIT_SLEEP,
        .order = PH_HUB_ARRIVAL_ORDER,
        .depth = 2,
        .clip_norm = .5F});
    check_shared((struct steady_job){.name = "asynchronous, narrow keys",
        .transport = PH_HUB_SHARED_MEMORY,
        .mode = PH_HUB_ASYNCHRONOUS,
        .is_narrow = true});
}

static void tcp_takes_only_what_moves_bytes(void **state)
{
    (void)state;
    check_tcp((struct steady_job){.name = "tcp", .transport = PH_HUB_TCP});
    check_tcp(
        (struct steady_job){.name = "... sleeping", .transport = PH_HUB_TCP, .wait = PH_HUB_WAIT_SLEEP});
    check_tcp((struct steady_job){.name = "... spinning, without a thread",
        .transport = PH_HUB_TCP,
        .wait = PH_HUB_WAIT_SPIN,
        .has_no_thread = true});
}

static void so_do_other_ways_of_a_job_over_tcp(void **state)
{
    (void)state;
    check_tcp(
        (struct steady_job){.name = "without a thread", .transport = PH_HUB_TCP, .has_no_thread = true});
    check_tcp((struct steady_job){.name = "with tags", .transport = PH_HUB_TCP, .has_secret = true});
    check_tcp((struct steady_job){.name = "depth 2", .transport = PH_HUB_TCP, .depth = 2});
    check_tcp(
        (struct steady_job){.name = "asynchronous", .transport = PH_HUB_TCP, .mode = PH_HUB_ASYNCHRONOUS});
    check_tcp((struct steady_job){.name = "bounded", .transport = PH_HUB_TCP, .mode = PH_HUB_BOUNDED});
    check_tcp((struct steady_job){.name = "clipping", .transport = PH_HUB_TCP, .clip_norm = .5F});
    check_tcp(
        (struct steady_job){.name = "arrival order", .transport = PH_HUB_TCP, .order = PH_HUB_ARRIVAL_ORDER});
    check_tcp((struct steady_job){.name = "narrow keys", .transport = PH_HUB_TCP, .is_narrow = true});
    check_tcp((struct steady_job){.name = "wide", .transport = PH_HUB_TCP, .is_wide = true});
}

static void so_do_several_hubs(void **state)
{
    (void)state;
    check_tcp((struct steady_job){.name = "two hubs", .transport = PH_HUB_TCP, .num_hubs = 2});
    check_tcp((struct steady_job){.name = "two hubs, narrow keys, depth 2, with tags",
        .transport = PH_HUB_TCP,
        .num_hubs = 2,
        .depth = 2,
        .is_narrow = true,
        .has_secret = true});
    check_tcp((struct steady_job){.name = "two hubs, sleeping, without a thread",
        .transport = PH_HUB_TCP,
        .wait = PH_HUB_WAIT_SLEEP,
        .num_hubs = 2,
        .has_no_thread = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_up_is_counted),
        cmocka_unit_test(copies_are_counted),
        cmocka_unit_test(shared_memory_takes_messages_alone),
        cmocka_unit_test(so_do_other_ways_of_a_job_over_shared_memory),
        cmocka_unit_test(so_do_ways_together),
        cmocka_unit_test(tcp_takes_only_what_moves_bytes),
        cmocka_unit_test(so_do_other_ways_of_a_job_over_tcp),
        cmocka_unit_test(so_do_several_hubs),
    };
    if (!allocations_are_counted())
        test_skip("the sanitizer has functions of its own where these would stand");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
