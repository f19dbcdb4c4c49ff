/* Agents on the loopback: what they measure of each other, and what they make of those who know no secret,
 * send what no client sends, or end in the middle. */
#include "comm/probe/probe_agent.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "comm/probe/probe_control.h"
#include "net/link/socket.h"
#include "support/test_support.h"

enum { NUM_HOSTS = 3, NUM_PAIRS = NUM_HOSTS * NUM_HOSTS, PATIENCE_MS = 20000 };

static const struct ph__secret secret = {.size = 20, .bytes = "twenty bytes of it.."},
                               other_secret = {.size = 20, .bytes = "twenty other bytes.."};

struct cluster {
    struct ph__netprobe_agent *agents[NUM_HOSTS];
    char addresses[NUM_HOSTS][PH_ADDRESS_BYTES]; /* agents may end before the probe does */
    struct ph__netprobe_host hosts[NUM_HOSTS];
    struct ph__netprobe_options options;
    struct ph__netprobe_result result;
    struct ph__arena arena; /* holds the probe and its result */
};

static void start(struct cluster *cluster)
{
    *cluster = (struct cluster){
        .options = {.secret = &secret, .seconds = 300, .bytes = 1e12, .share = 1, .num_echoes = 20}};
    for (size_t i = 0; i < NUM_HOSTS; i++) {
        assert_ok(ph__netprobe_agent_create("127.0.0.1:0", &secret, &cluster->agents[i]));
        snprintf(
            cluster->addresses[i], PH_ADDRESS_BYTES, "%s", ph__netprobe_agent_address(cluster->agents[i]));
        cluster->hosts[i] =
            (struct ph__netprobe_host){.name = cluster->addresses[i], .addresses = cluster->addresses[i]};
    }
    cluster->options.arena = &cluster->arena;
    assert_ok(ph__netprobe_result_init(NUM_HOSTS, &cluster->arena, &cluster->result));
}

static void stop(struct cluster *cluster)
{
    for (size_t i = 0; i < NUM_HOSTS; i++)
        ph__netprobe_agent_destroy(cluster->agents[i]);
    ph__arena_fini(&cluster->arena);
}

static struct ph__netprobe *open_probe(struct cluster *cluster)
{
    struct ph__netprobe *probe;
    assert_ok(ph__netprobe_open(&cluster->options, cluster->hosts, NUM_HOSTS, &probe));
    return probe;
}

/* Sets what is known of all pairs. */
static void know(struct cluster *cluster, double latency_ns, double ns_per_byte, enum ph__netprobe_way way)
{
    for (size_t i = 0; i < NUM_PAIRS; i++) {
        if (i % (NUM_HOSTS + 1) == 0)
            continue;
        cluster->result.latency_ns[i] = latency_ns;
        cluster->result.ns_per_byte[i] = ns_per_byte;
        cluster->result.ways[i] = (char)way;
    }
}

/* ---- measuring ---- */

static void all_pairs_and_trunks_are_measured(void **state)
{
    (void)state;
    struct cluster cluster;
    start(&cluster);
    stop(&cluster); /* with the first thread a sanitizer may start one of its own */
    const size_t num_threads = test_count_threads(), num_descriptors = test_count_descriptors();
    start(&cluster);
    struct ph__netprobe_result *result = &cluster.result;
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_ok(ph__netprobe_rounds(probe, result));
    assert_ok(ph__netprobe_held_up(probe, result));
    for (size_t i = 0; i < NUM_PAIRS; i++) {
        assert_true(i % (NUM_HOSTS + 1) == 0 || result->latency_ns[i] > 0);
        assert_true(i % (NUM_HOSTS + 1) == 0 || result->ns_per_byte[i] > 0);
    }
    assert_true(result->latency_ns[1] == result->latency_ns[NUM_HOSTS]);
    assert_int_equal(ph__netprobe_result_count(result, PH_NETPROBE_UNKNOWN), 0);
    result->groups[2] = 1;
    result->num_groups = 2;
    assert_ok(ph__netprobe_trunks(probe, result));
    assert_true(result->trunks[1] > 0 && result->trunks[2] > 0);
    assert_true(isnan(result->trunks[0]) && isnan(result->trunks[3]));
    assert_true(result->sent_bytes > 0);
    ph__netprobe_close(probe);
    stop(&cluster);
    for (size_t i = 0; test_count_threads() != num_threads && i < 1000; i++)
        usleep(1000); /* the system forgets a thread a little after it was joined */
    assert_int_equal(test_count_threads(), num_threads);
    assert_int_equal(test_count_descriptors(), num_descriptors);
}

static void what_is_known_is_not_measured_again(void **state)
{
    (void)state;
    struct cluster cluster;
    start(&cluster);
    know(&cluster, 1234, 5, PH_NETPROBE_ALONE);
    cluster.result.ns_per_byte[1] = (double)NAN;
    cluster.result.ways[1] = PH_NETPROBE_UNKNOWN;
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_ok(ph__netprobe_rounds(probe, &cluster.result));
    assert_ok(ph__netprobe_held_up(probe, &cluster.result));
    assert_true(cluster.result.ns_per_byte[1] > 0 && cluster.result.latency_ns[1] == 1234);
    assert_true(cluster.result.ns_per_byte[2] == 5 && cluster.result.latency_ns[2] == 1234);
    ph__netprobe_close(probe);
    stop(&cluster);
}

static void limits_end_a_probe_and_keep_its_results(void **state)
{
    (void)state;
    struct cluster cluster;
    size_t num_latencies = 0;
    start(&cluster);
    cluster.options.bytes = 1 << 19; /* enough for some first transfers, not for all */
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_fails(ph__netprobe_rounds(probe, &cluster.result), PH_ERROR_DATA, "limit, --bytes 524288");
    for (size_t i = 0; i < NUM_PAIRS; i++)
        num_latencies += isnan(cluster.result.latency_ns[i]) ? 0 : 1;
    const size_t num_missing = ph__netprobe_result_count(&cluster.result, PH_NETPROBE_UNKNOWN);
    assert_int_equal(num_latencies, 6);
    assert_true(num_missing > 0 && num_missing < 6);
    assert_true(cluster.result.sent_bytes <= 1 << 19);
    ph__netprobe_close(probe);
    cluster.options.seconds = 1e-9;
    probe = open_probe(&cluster);
    assert_fails(ph__netprobe_rounds(probe, &cluster.result), PH_ERROR_DATA, "limit, --seconds");
    ph__netprobe_close(probe);
    stop(&cluster);
}

/* ---- hosts that are not there ---- */

static void hosts_without_an_agent_are_named(void **state)
{
    (void)state;
    struct cluster cluster;
    struct ph__netprobe *probe;
    const volatile int signal_number = SIGINT;
    start(&cluster);
    cluster.options.stop_signal = &signal_number; /* else it waits for an agent to start */
    cluster.hosts[1] = (struct ph__netprobe_host){.name = "node7", .addresses = "127.0.0.1:1"};
    assert_fails(ph__netprobe_open(&cluster.options, cluster.hosts, NUM_HOSTS, &probe), PH_ERROR_INTERRUPTED,
        "stopped by a signal");
    cluster.options.stop_signal = NULL;
    assert_fails(ph__netprobe_open(&cluster.options, cluster.hosts, NUM_HOSTS, &probe), PH_ERROR_PEER,
        "no agent answers for host node7: '127.0.0.1:1' cannot be reached");
    stop(&cluster);
}

static void one_agent_is_not_two_hosts(void **state)
{
    (void)state;
    struct cluster cluster;
    struct ph__netprobe *probe;
    start(&cluster);
    cluster.hosts[2].addresses = cluster.addresses[0];
    assert_fails(ph__netprobe_open(&cluster.options, cluster.hosts, NUM_HOSTS, &probe), PH_ERROR_USAGE,
        "are one agent");
    stop(&cluster);
}

static void an_address_of_an_earlier_agent_is_passed_over(void **state)
{
    (void)state;
    struct cluster cluster;
    char both[2 * PH_ADDRESS_BYTES];
    start(&cluster);
    snprintf(both, sizeof both, "%s %s", cluster.addresses[0], cluster.addresses[1]);
    cluster.hosts[1].addresses = both;
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_string_equal(cluster.hosts[1].address, cluster.addresses[1]);
    ph__netprobe_close(probe);
    stop(&cluster);
}

static void a_host_with_several_addresses_that_comes_first_is_this_one(void **state)
{
    (void)state;
    struct cluster cluster;
    char both[2 * PH_ADDRESS_BYTES];
    start(&cluster);
    const char *port = strrchr(cluster.addresses[0], ':');
    snprintf(both, sizeof both, "localhost%s 127.0.0.2%s", port, port);
    cluster.hosts[0].addresses = both;
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_string_equal(cluster.hosts[0].address, cluster.addresses[0]);
    assert_ok(ph__netprobe_rounds(probe, &cluster.result));
    ph__netprobe_close(probe);
    stop(&cluster);
}

/* An agent ends while others measure: the controller names two hosts, and the agent ends at once. */
static void *end_second(void *context)
{
    struct cluster *cluster = context;
    usleep(150000);
    ph__netprobe_agent_destroy(cluster->agents[1]);
    cluster->agents[1] = NULL;
    return NULL;
}

static void an_agent_that_ends_is_named(void **state)
{
    (void)state;
    struct cluster cluster;
    pthread_t thread;
    start(&cluster);
    cluster.options.num_echoes = 50000;
    struct ph__netprobe *probe = open_probe(&cluster);
    assert_int_equal(pthread_create(&thread, NULL, end_second, &cluster), 0);
    assert_fails(
        ph__netprobe_rounds(probe, &cluster.result), PH_ERROR_PEER, "could not measure the way to host");
    pthread_join(thread, NULL);
    ph__netprobe_close(probe);
    stop(&cluster);
}

/* ---- strangers ---- */

static struct ph__netprobe_link visit(const struct ph__netprobe_agent *agent)
{
    struct ph__netprobe_link link = {
        .watched = -1, .deadline_ns = ph__clock_deadline(PATIENCE_MS), .peer = "the agent"};
    assert_ok(ph__socket_connect(ph__netprobe_agent_address(agent), PATIENCE_MS, &link.socket));
    return link;
}

/* Sends any body as a message. */
static void say(const struct ph__netprobe_link *link, unsigned kind, const void *body, size_t size)
{
    unsigned char bytes[6 + 64];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, (uint16_t)kind);
    ph__wire_put_bytes(&writer, body, size);
    assert_ok(ph__netprobe_write(link, bytes, writer.used));
}

/* The agent closes the connection, and serves others as before. */
static void assert_closed(struct ph__netprobe_link *link, const struct ph__netprobe_agent *agent)
{
    unsigned char bytes[64];
    uint64_t id;
    size_t got;
    ph_status status;
    while ((status = ph__netprobe_read_some(link, bytes, sizeof bytes, &got)) == PH_OK)
        ;
    assert_int_equal(status, PH_ERROR_PEER);
    assert_null(strstr(ph_error_text(), "timed out"));
    close(link->socket);
    *link = visit(agent);
    assert_ok(ph__netprobe_greet(link, &secret, &id));
    close(link->socket);
}

static void another_secret_is_noticed_by_both_sides(void **state)
{
    (void)state;
    struct ph__netprobe_agent *agent;
    uint64_t id;
    assert_ok(ph__netprobe_agent_create("127.0.0.1:0", &secret, &agent));
    struct ph__netprobe_link link = visit(agent);
    assert_fails(ph__netprobe_greet(&link, &other_secret, &id), PH_ERROR_PEER,
        "the agent has another secret than the one given here");
    close(link.socket);
    link = visit(agent);
    assert_fails(ph__netprobe_greet(&link, NULL, &id), PH_ERROR_PEER, "another secret");
    close(link.socket);
    ph__netprobe_agent_destroy(agent);
}

static void nothing_is_served_without_a_proof(void **state)
{
    (void)state;
    static const unsigned kinds[] = {
        PH_NETPROBE_PROOF, PH_NETPROBE_ASK, PH_NETPROBE_ECHO, PH_NETPROBE_SEND, 77};
    struct ph__netprobe_agent *agent;
    unsigned char zeros[PH_PROOF_BYTES] = {0};
    assert_ok(ph__netprobe_agent_create("127.0.0.1:0", &secret, &agent));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct ph__netprobe_link link = visit(agent);
        say(&link, kinds[i], zeros, sizeof zeros);
        assert_closed(&link, agent);
    }
    struct ph__netprobe_link link = visit(agent);
    assert_ok(ph__netprobe_write(&link, "GET / HTTP/1.1\r\n\r\n", 18)); /* a size beyond any message */
    assert_closed(&link, agent);
    ph__netprobe_agent_destroy(agent);
}

static void bad_requests_end_their_connection_alone(void **state)
{
    (void)state;
    struct ph__netprobe_agent *agent;
    unsigned char zeros[64] = {0}, endless[8];
    struct ph__netprobe_link link;
    uint64_t id;
    memset(endless, 255, sizeof endless);
    const struct {
        unsigned kind;
        const void *body;
        size_t size;
    } requests[] = {{PH_NETPROBE_ASK, zeros, 20}, {PH_NETPROBE_SEND, zeros, 8},
        {PH_NETPROBE_SEND, endless, 8}, {PH_NETPROBE_SEND, zeros, 7}, {PH_NETPROBE_ANSWER, zeros, 64},
        {99, NULL, 0}};
    assert_ok(ph__netprobe_agent_create("127.0.0.1:0", &secret, &agent));
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        link = visit(agent);
        assert_ok(ph__netprobe_greet(&link, &secret, &id));
        say(&link, requests[i].kind, requests[i].body, requests[i].size);
        assert_closed(&link, agent);
    }
    link = visit(agent); /* leaves in the middle of a transfer */
    assert_ok(ph__netprobe_greet(&link, &secret, &id));
    zeros[2] = 1;
    say(&link, PH_NETPROBE_SEND, zeros, 8);
    assert_ok(ph__netprobe_write(&link, zeros, sizeof zeros));
    shutdown(link.socket, SHUT_WR);
    assert_closed(&link, agent);
    ph__netprobe_agent_destroy(agent);
}

static void addresses_that_others_reach_need_a_secret(void **state)
{
    (void)state;
    struct ph__netprobe_agent *agent;
    assert_fails(ph__netprobe_agent_create("0.0.0.0:0", NULL, &agent), PH_ERROR_CONFIG,
        "can be reached from other hosts: requires --secret-file");
    assert_fails(ph__netprobe_agent_create("nowhere", NULL, &agent), PH_ERROR_CONFIG, "'nowhere'");
    assert_ok(ph__netprobe_agent_create("127.0.0.1:0", NULL, &agent));
    ph__netprobe_agent_destroy(agent);
    ph__netprobe_agent_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs_and_trunks_are_measured),
        cmocka_unit_test(what_is_known_is_not_measured_again),
        cmocka_unit_test(limits_end_a_probe_and_keep_its_results),
        cmocka_unit_test(hosts_without_an_agent_are_named),
        cmocka_unit_test(one_agent_is_not_two_hosts),
        cmocka_unit_test(an_address_of_an_earlier_agent_is_passed_over),
        cmocka_unit_test(a_host_with_several_addresses_that_comes_first_is_this_one),
        cmocka_unit_test(an_agent_that_ends_is_named),
        cmocka_unit_test(another_secret_is_noticed_by_both_sides),
        cmocka_unit_test(nothing_is_served_without_a_proof),
        cmocka_unit_test(bad_requests_end_their_connection_alone),
        cmocka_unit_test(addresses_that_others_reach_need_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
