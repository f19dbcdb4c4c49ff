/* Probes of networks that are known: agents of the test's own answer what a flow would get there, alone or
 * while others are measured. */
#include "comm/probe/probe_control.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "net/link/socket.h"
#include "support/test_support.h"

enum { MOST_HOSTS = 32, PATIENCE_MS = 20000 };

static const double host_ns = 10, uplink_ns = 40; /* a byte */

struct network;

struct host {
    struct network *network;
    size_t number;
    int listening;
    char address[PH_ADDRESS_BYTES];
    pthread_t thread;
};

struct network {
    size_t num_hosts, num_racks;
    bool has_slow_host; /* flows between racks from host 0, and to it, have half of an uplink's rate */
    bool is_noisy;      /* some flows are a tenth slower */
    size_t num_flows, num_alone; /* transfers asked for; one at a time */
    pthread_mutex_t lock;        /* guards the counts */
    struct host hosts[MOST_HOSTS];
    struct ph__netprobe_host probed[MOST_HOSTS];
    struct ph__arena arena; /* holds the probe and its result */
};

static double alone_ns(const struct network *network, size_t from, size_t to)
{
    if (from % network->num_racks == to % network->num_racks)
        return host_ns;
    return network->has_slow_host && from * to == 0 ? 2 * uplink_ns : uplink_ns;
}

/* Answers for a flow. One that may be tried again is alone; others share an uplink with half of their rack.
 */
static struct ph__netprobe_answer answer(
    struct network *network, size_t from, const struct ph__netprobe_ask *ask)
{
    const size_t to = (size_t)ask->id - 1;
    const bool is_alone = ask->num_retries > 0, is_far = from % network->num_racks != to % network->num_racks;
    const double noise = network->is_noisy && from + 1 == to ? 1.1 : 1;
    const size_t num_sharing = is_far && !is_alone ? network->num_hosts / network->num_racks / 2 : 1;
    struct ph__netprobe_answer answer = {
        .latency_ns = ask->num_echoes > 0 ? 1000 : 0, .sent_bytes = ask->bytes};
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS && ask->bytes > 0; i++) {
        answer.marks[i].bytes = ask->bytes * (i + 1) / PH_NETPROBE_NUM_MARKS;
        answer.marks[i].ns = (uint64_t)((double)answer.marks[i].bytes * alone_ns(network, from, to) * noise *
                                        (double)num_sharing);
    }
    pthread_mutex_lock(&network->lock);
    network->num_flows += ask->bytes > 0;
    network->num_alone += ask->bytes > 0 && is_alone;
    pthread_mutex_unlock(&network->lock);
    return answer;
}

static void *run_host(void *context)
{
    struct host *host = context;
    struct ph__netprobe_link link = {
        .watched = -1, .deadline_ns = ph__clock_deadline(PATIENCE_MS), .peer = "the probe"};
    struct ph__netprobe_ask ask;
    struct ph__netprobe_answer answered;
    do {
        if (ph__socket_accept(host->listening, &link.socket) != PH_OK)
            return NULL;
    } while (link.socket < 0 && usleep(1000) == 0);
    if (ph__netprobe_admit(&link, NULL, host->number + 1) == PH_OK)
        while (ph__netprobe_expect(&link, PH_NETPROBE_ASK, &ask) == PH_OK) {
            answered = answer(host->network, host->number, &ask);
            if (ph__netprobe_say(&link, PH_NETPROBE_ANSWER, &answered) != PH_OK)
                break;
        }
    close(link.socket);
    return NULL;
}

/* Probes all hosts of the network, in groups by rack. */
static void probe(struct network *network, struct ph__netprobe_result *result)
{
    const struct ph__netprobe_options options = {
        .arena = &network->arena, .seconds = 300, .bytes = 1e15, .share = 1, .num_echoes = 20};
    struct ph__netprobe *probe;
    pthread_mutex_init(&network->lock, NULL);
    for (size_t i = 0; i < network->num_hosts; i++) {
        struct host *host = &network->hosts[i];
        *host = (struct host){.network = network, .number = i};
        assert_ok(ph__socket_listen("127.0.0.1:0", &host->listening));
        assert_ok(ph__socket_address(host->listening, host->address));
        assert_int_equal(pthread_create(&host->thread, NULL, run_host, host), 0);
        network->probed[i] = (struct ph__netprobe_host){.name = host->address, .addresses = host->address};
    }
    assert_ok(ph__netprobe_result_init(network->num_hosts, &network->arena, result));
    assert_ok(ph__netprobe_open(&options, network->probed, network->num_hosts, &probe));
    assert_ok(ph__netprobe_rounds(probe, result));
    result->num_groups = network->num_racks;
    for (size_t i = 0; i < network->num_hosts; i++)
        result->groups[i] = (uint32_t)(i % network->num_racks);
    assert_ok(ph__netprobe_held_up(probe, result));
    ph__netprobe_close(probe);
    for (size_t i = 0; i < network->num_hosts; i++) {
        pthread_join(network->hosts[i].thread, NULL);
        close(network->hosts[i].listening);
    }
    pthread_mutex_destroy(&network->lock);
}

static void assert_known(const struct network *network, const struct ph__netprobe_result *result)
{
    for (size_t from = 0; from < network->num_hosts; from++)
        for (size_t to = 0; to < network->num_hosts; to++)
            if (from != to)
                assert_near(
                    result->ns_per_byte[from * network->num_hosts + to], alone_ns(network, from, to), 0, .01);
}

static void three_pairs_speak_for_all_between_two_racks(void **state)
{
    (void)state;
    struct network network = {.num_hosts = MOST_HOSTS, .num_racks = 4};
    struct ph__netprobe_result result;
    probe(&network, &result);
    assert_known(&network, &result);
    const size_t num_courses = 4 * 3, pairs_a_course = 8 * 8;
    assert_int_equal(network.num_alone, MOST_HOSTS + 3 * num_courses);
    assert_int_equal(network.num_flows, MOST_HOSTS * (MOST_HOSTS - 1) + network.num_alone);
    assert_int_equal(ph__netprobe_result_count(&result, PH_NETPROBE_ALONE), network.num_alone);
    assert_int_equal(
        ph__netprobe_result_count(&result, PH_NETPROBE_ALIKE), num_courses * (pairs_a_course - 3));
    ph__arena_fini(&network.arena);
}

/* The pairs of a course are measured one by one where those that speak for them do not agree. */
static void pairs_that_differ_are_all_measured_alone(void **state)
{
    (void)state;
    struct network network = {.num_hosts = 8, .num_racks = 2, .has_slow_host = true};
    struct ph__netprobe_result result;
    probe(&network, &result);
    assert_known(&network, &result);
    assert_int_equal(ph__netprobe_result_count(&result, PH_NETPROBE_ALIKE), 0);
    assert_int_equal(network.num_alone, 8 + 2 * 16);
    ph__arena_fini(&network.arena);
}

static void a_network_that_holds_nobody_up_is_done_after_the_rounds(void **state)
{
    (void)state;
    struct network network = {.num_hosts = 8, .num_racks = 1};
    struct ph__netprobe_result result;
    probe(&network, &result);
    assert_known(&network, &result);
    assert_int_equal(network.num_alone, 8);
    ph__arena_fini(&network.arena);
}

static void noise_of_flows_that_nothing_holds_up_is_left_out(void **state)
{
    (void)state;
    struct network network = {.num_hosts = 8, .num_racks = 1, .is_noisy = true};
    struct ph__netprobe_result result;
    probe(&network, &result);
    assert_known(&network, &result);
    ph__arena_fini(&network.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_pairs_speak_for_all_between_two_racks),
        cmocka_unit_test(pairs_that_differ_are_all_measured_alone),
        cmocka_unit_test(a_network_that_holds_nobody_up_is_done_after_the_rounds),
        cmocka_unit_test(noise_of_flows_that_nothing_holds_up_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
