/* How ranks come to rank 0's watch, as threads on the loopback: past strangers, to the right one of several
 * addresses, all together or not at all; and what they hear then. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "comm/watch/watch_state.h"
#include "net/link/socket.h"
#include "support/is_sanitized.h"
#include "support/test_support.h"

enum { LIMIT_MS = 60000, SOON_MS = 300, PAUSE_US = 1000, LARGE_WORLD = PH_IS_SANITIZED ? 200 : 1000 };

struct comer { /* a rank but 0 */
    struct ph__watch_options options;
    const struct ph__watch_invitation *invitation; /* borrowed */
    pthread_t thread;
    ph_status status;
    char text[PH_NOTICE_TEXT_BYTES]; /* of an error */
    struct ph__comm_watch watch;
};

static void *join(void *context)
{
    struct comer *comer = context;
    comer->status = ph__watch_join(&comer->options, comer->invitation, &comer->watch);
    snprintf(comer->text, sizeof comer->text, "%s", comer->status == PH_OK ? "" : ph_error_text());
    return NULL;
}

static struct ph__watch_options options_of(size_t rank, size_t world_size, uint32_t timeout_ms)
{
    return (struct ph__watch_options){
        .rank = rank, .world_size = world_size, .is_one_host = true, .timeout_ms = timeout_ms};
}

/* Ranks from 1 on; the rest of the world is for others to play. */
static struct comer *start(
    size_t num_comers, struct ph__watch_options options, const struct ph__watch_invitation *invitation)
{
    struct comer *comers = calloc(num_comers, sizeof *comers);
    assert_non_null(comers);
    for (size_t i = 0; i < num_comers; i++) {
        comers[i].options = options;
        comers[i].options.rank = 1 + i;
        comers[i].invitation = invitation;
        assert_int_equal(pthread_create(&comers[i].thread, NULL, join, &comers[i]), 0);
    }
    return comers;
}

static void wait_for(struct comer *comers, size_t num_comers)
{
    for (size_t i = 0; i < num_comers; i++)
        assert_int_equal(pthread_join(comers[i].thread, NULL), 0);
}

struct world {
    size_t size;
    struct ph__watch_invitation invitation;
    struct ph__comm_watch watch; /* rank 0's */
    struct comer *comers;
};

/* All come to what the invitation has become by then. */
static void begin(struct world *world, struct ph__watch_listener *listener)
{
    world->comers = start(world->size - 1, options_of(0, world->size, LIMIT_MS), &world->invitation);
    assert_ok(ph__watch_accept(listener, &world->watch));
    wait_for(world->comers, world->size - 1);
    for (size_t i = 0; i + 1 < world->size; i++)
        assert_string_equal(world->comers[i].text, "");
}

static struct ph__watch_listener *listen_for(struct world *world)
{
    struct ph__watch_listener *listener;
    const struct ph__watch_options options = options_of(0, world->size, LIMIT_MS);
    assert_ok(ph__watch_listen(&options, &world->invitation, &listener));
    return listener;
}

static void end(struct world *world)
{
    for (size_t i = 0; i + 1 < world->size; i++)
        world->comers[i].watch.close(world->comers[i].watch.context, true);
    world->watch.close(world->watch.context, true);
    free(world->comers);
}

static void look_until_notice(const struct ph__comm_watch *watch, struct ph__comm_notice *notice_out)
{
    const uint64_t deadline_ns = ph__clock_deadline(LIMIT_MS);
    while (!watch->look(watch->context, notice_out)) {
        assert_true(ph__clock_ns() < deadline_ns);
        usleep(PAUSE_US);
    }
}

/* ---- coming ---- */

static void all_ranks_come(void **state)
{
    (void)state;
    const size_t num_descriptors = test_count_descriptors();
    for (size_t size = 2; size < 6; size++) {
        struct world world = {.size = size};
        struct ph__comm_notice notice;
        begin(&world, listen_for(&world));
        assert_false(world.watch.look(world.watch.context, &notice));
        assert_false(world.comers[0].watch.look(world.comers[0].watch.context, &notice));
        end(&world);
        assert_int_equal(test_count_descriptors(), num_descriptors);
    }
}

static void rank_0_listens_where_no_other_host_comes(void **state)
{
    (void)state;
    struct world world = {.size = 2};
    struct ph__watch_listener *listener = listen_for(&world);
    assert_in_range(world.invitation.num_addresses, 1, PH_WATCH_MAX_ADDRESSES);
    for (uint32_t i = 0; i < world.invitation.num_addresses; i++)
        assert_true(strncmp(world.invitation.addresses[i], "127.", 4) == 0 ||
                    strncmp(world.invitation.addresses[i], "[::1]:", 6) == 0);
    ph__watch_listener_destroy(listener);
}

static void connect_to(const struct ph__watch_invitation *invitation, int *socket_out)
{
    assert_ok(ph__socket_connect(invitation->addresses[0], LIMIT_MS, socket_out));
}

static void strangers_keep_nobody_away(void **state)
{
    (void)state;
    static const char garbage[] = "GET / HTTP/1.1\r\nHost: rank0\r\n\r\n";
    struct world world = {.size = 3};
    struct ph__watch_listener *listener = listen_for(&world);
    int talks, is_silent;
    char byte;
    connect_to(&world.invitation, &talks);
    connect_to(&world.invitation, &is_silent);
    assert_int_equal(write(talks, garbage, sizeof garbage), sizeof garbage);
    begin(&world, listener);
    assert_true(read(talks, &byte, 1) <= 0);
    assert_true(read(is_silent, &byte, 1) <= 0);
    close(talks);
    close(is_silent);
    end(&world);
}

/* ---- addresses ---- */

/* Before the addresses that rank 0 has. */
static void put_first(struct ph__watch_invitation *invitation, const char *address)
{
    assert_in_range(invitation->num_addresses, 1, PH_WATCH_MAX_ADDRESSES - 1);
    memmove(invitation->addresses[1], invitation->addresses[0],
        invitation->num_addresses * sizeof *invitation->addresses);
    memset(invitation->addresses[0], 0, sizeof *invitation->addresses);
    snprintf(invitation->addresses[0], PH_ADDRESS_BYTES, "%s", address);
    invitation->num_addresses++;
}

static void an_address_where_nobody_listens_is_passed_over(void **state)
{
    (void)state;
    struct world world = {.size = 3};
    struct ph__watch_listener *listener = listen_for(&world);
    char address[PH_ADDRESS_BYTES];
    int listening;
    assert_ok(ph__socket_listen("127.0.0.1:0", &listening));
    assert_ok(ph__socket_address(listening, address));
    close(listening);
    put_first(&world.invitation, address);
    begin(&world, listener);
    end(&world);
}

static void an_address_where_somebody_is_silent_is_passed_over(void **state)
{
    (void)state;
    struct world world = {.size = 3};
    struct ph__watch_listener *listener = listen_for(&world);
    char address[PH_ADDRESS_BYTES];
    int listening;
    assert_ok(ph__socket_listen("127.0.0.1:0", &listening));
    assert_ok(ph__socket_address(listening, address));
    put_first(&world.invitation, address);
    begin(&world, listener);
    close(listening);
    end(&world);
}

static _Atomic bool is_over;

static void *turn(void *context)
{
    struct ph__watch_listener *listener = context;
    while (!atomic_load(&is_over))
        ph__watch_star_turn(ph__watch_listener_star(listener), 1);
    return NULL;
}

/* Two hosts may have a bridge of the same address. */
static void the_watch_of_another_job_is_passed_over(void **state)
{
    (void)state;
    struct world world = {.size = 3}, other = {.size = 3};
    struct ph__watch_listener *listener = listen_for(&world), *of_other = listen_for(&other);
    pthread_t thread;
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, turn, of_other), 0);
    put_first(&world.invitation, other.invitation.addresses[0]);
    begin(&world, listener);
    atomic_store(&is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    ph__watch_listener_destroy(of_other);
    end(&world);
}

static void whoever_has_another_secret_comes_in_vain(void **state)
{
    (void)state;
    struct world world = {.size = 2};
    struct ph__watch_listener *listener = listen_for(&world);
    pthread_t thread;
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, turn, listener), 0);
    world.invitation.secret[0] ^= 1;
    struct comer *comer = start(1, options_of(1, 2, SOON_MS), &world.invitation);
    wait_for(comer, 1);
    atomic_store(&is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(comer->status, PH_ERROR_PEER);
    assert_non_null(strstr(comer->text, "rank 1 could not join the watch of rank 0 within 0.3 s"));
    ph__watch_listener_destroy(listener);
    free(comer);
}

/* ---- rank 0 by hand ---- */

struct played { /* rank 0, or who says he is */
    struct ph__watch_invitation invitation;
    int listening;
    bool knows_secret;
    struct ph__comm_notice notice; /* that it gives at once */
    pthread_t thread;
};

static void take_frame(struct ph__control_stream *stream, struct ph__control_frame *frame_out)
{
    bool is_there = false;
    while (!is_there) {
        assert_ok(ph__control_stream_receive(stream));
        assert_ok(ph__control_stream_take(stream, frame_out, &is_there));
        usleep(PAUSE_US);
    }
}

static void put(
    struct ph__control_stream *stream, enum ph__watch_frame type, const struct ph__wire_writer *body)
{
    assert_ok(ph__control_stream_put(
        stream, (uint16_t)type, body != NULL ? body->bytes : NULL, body != NULL ? body->used : 0, NULL, 0));
}

static void put_answer(const struct played *played, struct ph__control_stream *stream)
{
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__secret secret = {.size = PH_WATCH_SECRET_BYTES};
    struct ph__control_frame hello;
    struct ph__challenge challenge;
    struct ph__watch_answer answer;
    if (played->knows_secret)
        memcpy(secret.bytes, played->invitation.secret, PH_WATCH_SECRET_BYTES);
    take_frame(stream, &hello);
    assert_ok(ph__watch_challenge(&secret, hello.body, hello.size, 2, &challenge, &answer));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_answer(&writer, &answer);
    put(stream, PH_WATCH_CHALLENGE, &writer);
}

/* All that it has to say is said in one piece. */
static void *play(void *context)
{
    const struct played *played = context;
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_stream *stream;
    int connected = -1;
    while (connected < 0)
        assert_ok(ph__socket_accept(played->listening, &connected));
    assert_ok(ph__watch_stream_create(connected, &stream));
    put_answer(played, stream);
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_notice(&writer, &played->notice);
    put(stream, PH_WATCH_WELCOME, NULL);
    put(stream, PH_WATCH_BEGIN, NULL);
    put(stream, PH_WATCH_NOTICE, &writer);
    assert_ok(ph__control_stream_flush(stream));
    while (ph__control_stream_receive(stream) == PH_OK)
        usleep(PAUSE_US);
    ph__control_stream_destroy(stream);
    return NULL;
}

static void begin_play(struct played *played)
{
    assert_ok(ph__socket_listen("127.0.0.1:0", &played->listening));
    assert_ok(ph__socket_address(played->listening, played->invitation.addresses[0]));
    played->invitation.num_addresses = 1;
    assert_int_equal(pthread_create(&played->thread, NULL, play, played), 0);
}

static void end_play(struct played *played)
{
    assert_int_equal(pthread_join(played->thread, NULL), 0);
    close(played->listening);
}

static struct ph__comm_notice some_notice(uint32_t rank)
{
    return (struct ph__comm_notice){.rank = rank, .status = PH_ERROR_DISK, .text = "the disk is full"};
}

static void whoever_plays_rank_0_without_the_secret_is_passed_over(void **state)
{
    (void)state;
    struct world world = {.size = 2};
    struct ph__watch_listener *listener = listen_for(&world);
    struct played played = {.notice = some_notice(0)};
    begin_play(&played);
    put_first(&world.invitation, played.invitation.addresses[0]);
    begin(&world, listener);
    end_play(&played);
    end(&world);
}

/* With the word that all have come. */
static void what_is_said_at_once_is_heard(void **state)
{
    (void)state;
    struct played played = {.knows_secret = true, .notice = some_notice(0)};
    const struct ph__watch_options options = options_of(1, 2, LIMIT_MS);
    struct ph__comm_watch watch;
    struct ph__comm_notice notice;
    begin_play(&played);
    assert_ok(ph__watch_join(&options, &played.invitation, &watch));
    look_until_notice(&watch, &notice);
    assert_string_equal(notice.text, played.notice.text);
    watch.close(watch.context, false);
    end_play(&played);
}

/* ---- in vain ---- */

static void nobody_comes_where_nobody_listens(void **state)
{
    (void)state;
    struct world world = {.size = 2};
    ph__watch_listener_destroy(listen_for(&world));
    struct comer *comer = start(1, options_of(1, 2, SOON_MS), &world.invitation);
    wait_for(comer, 1);
    assert_int_equal(comer->status, PH_ERROR_PEER);
    assert_non_null(strstr(comer->text, "could not join the watch of rank 0 within 0.3 s: '"));
    assert_non_null(strstr(comer->text, "cannot be reached"));
    free(comer);
}

static void all_hear_of_a_rank_that_never_comes(void **state)
{
    (void)state;
    struct world world = {.size = 4};
    struct ph__watch_listener *listener;
    const struct ph__watch_options options = options_of(0, world.size, SOON_MS);
    assert_ok(ph__watch_listen(&options, &world.invitation, &listener));
    struct comer *comers = start(2, options_of(0, world.size, LIMIT_MS), &world.invitation);
    assert_fails(ph__watch_accept(listener, &world.watch), PH_ERROR_PEER, "rank 3 has not joined");
    wait_for(comers, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(comers[i].status, PH_ERROR_PEER);
        assert_string_equal(comers[i].text, "rank 3 has not joined the watch of rank 0 within 0.3 s");
    }
    free(comers);
}

static void rank_0_may_end_before_all_have_come(void **state)
{
    (void)state;
    struct world world = {.size = 3};
    struct ph__watch_listener *listener = listen_for(&world);
    struct ph__watch_star *star = ph__watch_listener_star(listener);
    struct comer *comer = start(1, options_of(0, world.size, LIMIT_MS), &world.invitation);
    while (star->peers[1].stream == NULL)
        ph__watch_star_turn(star, 1);
    ph__watch_listener_destroy(listener);
    wait_for(comer, 1);
    assert_int_equal(comer->status, PH_ERROR_PEER);
    assert_non_null(strstr(comer->text, "rank 0 (process "));
    assert_non_null(strstr(comer->text, "ended before all ranks had joined"));
    free(comer);
}

static void a_damaged_invitation_is_refused(void **state)
{
    (void)state;
    const struct ph__watch_options options = options_of(1, 2, SOON_MS);
    struct ph__watch_invitation damaged = {.num_addresses = 0};
    struct ph__comm_watch watch;
    assert_fails(ph__watch_join(&options, &damaged, &watch), PH_ERROR_PEER, "damaged");
    damaged.num_addresses = PH_WATCH_MAX_ADDRESSES + 1;
    assert_fails(ph__watch_join(&options, &damaged, &watch), PH_ERROR_PEER, "damaged");
    damaged.num_addresses = 1;
    memset(damaged.addresses[0], '1', sizeof damaged.addresses[0]);
    assert_fails(ph__watch_join(&options, &damaged, &watch), PH_ERROR_PEER, "damaged");
}

static struct rlimit limit_descriptors(rlim_t count)
{
    struct rlimit limit, former;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &former), 0);
    limit = former;
    limit.rlim_cur = count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return former;
}

static bool has_failed(ph_status status)
{
    return status == PH_ERROR_MEMORY &&
           strstr(ph_error_text(),
               "rank 0 needs 580 descriptors in a world of 500 ranks, but may open 500: raise "
               "`ulimit -n`") != NULL;
}

/* In a process of its own: who has lowered the hard limit cannot raise it again. */
static void fail_for_descriptors(void)
{
    const struct rlimit limit = {.rlim_cur = 500, .rlim_max = 500};
    const struct ph__watch_options options = options_of(0, 500, SOON_MS), other = options_of(7, 500, SOON_MS);
    struct ph__watch_invitation invitation;
    struct ph__watch_listener *listener;
    struct ph__comm_watch watch;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        !has_failed(ph__watch_listen(&options, &invitation, &listener)))
        _exit(1);
    _exit(has_failed(ph__watch_join(&other, &invitation, &watch)) ? 0 : 2);
}

static void a_world_needs_so_many_descriptors(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        fail_for_descriptors();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void rank_0_takes_the_descriptors_that_it_may_have(void **state)
{
    (void)state;
    struct rlimit raised;
    const struct rlimit former = limit_descriptors(50);
    const struct ph__watch_options options = options_of(0, 20, SOON_MS);
    struct ph__watch_invitation invitation;
    struct ph__watch_listener *listener;
    assert_ok(ph__watch_listen(&options, &invitation, &listener));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &raised), 0);
    assert_int_equal(raised.rlim_cur, 100);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &former), 0);
    ph__watch_listener_destroy(listener);
}

/* ---- then ---- */

static void the_last_error_stays_what_it_was(void **state)
{
    (void)state;
    struct world world = {.size = 3};
    struct ph__comm_notice notice;
    const struct ph__comm_notice own = some_notice(2);
    begin(&world, listen_for(&world));
    const struct ph__comm_watch one = world.comers[0].watch, two = world.comers[1].watch;
    (void)ph_fail(PH_ERROR_DATA, "line 3: no number");
    one.close(one.context, false);
    assert_string_equal(ph_error_text(), "line 3: no number");
    look_until_notice(&world.watch, &notice);
    assert_string_equal(ph_error_text(), "line 3: no number");
    two.tell(two.context, &own);
    assert_string_equal(ph_error_text(), "line 3: no number");
    two.close(two.context, false);
    world.watch.close(world.watch.context, false);
    assert_string_equal(ph_error_text(), "line 3: no number");
    free(world.comers);
}

/* Each of a large world's ranks has two descriptors here, and rank 0 one for each of them. */
static void a_large_world_hears_of_one(void **state)
{
    (void)state;
    const rlim_t wanted = 4 * LARGE_WORLD;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < wanted) {
        print_message("skipped: %d ranks need %llu descriptors\n", LARGE_WORLD, (unsigned long long)wanted);
        return;
    }
    const struct rlimit former = limit_descriptors(wanted);
    struct world world = {.size = LARGE_WORLD};
    struct ph__comm_notice notice;
    begin(&world, listen_for(&world));
    const struct ph__comm_watch one = world.comers[LARGE_WORLD / 2].watch;
    one.close(one.context, false);
    look_until_notice(&world.watch, &notice);
    assert_int_equal(notice.rank, LARGE_WORLD / 2 + 1);
    for (size_t i = 0; i + 1 < world.size; i++) {
        const struct ph__comm_watch *watch = &world.comers[i].watch;
        struct ph__comm_notice heard;
        if (i == LARGE_WORLD / 2)
            continue;
        look_until_notice(watch, &heard);
        assert_string_equal(heard.text, notice.text);
        watch->close(watch->context, false);
    }
    world.watch.close(world.watch.context, false);
    free(world.comers);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &former), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_come),
        cmocka_unit_test(rank_0_listens_where_no_other_host_comes),
        cmocka_unit_test(strangers_keep_nobody_away),
        cmocka_unit_test(an_address_where_nobody_listens_is_passed_over),
        cmocka_unit_test(an_address_where_somebody_is_silent_is_passed_over),
        cmocka_unit_test(the_watch_of_another_job_is_passed_over),
        cmocka_unit_test(whoever_has_another_secret_comes_in_vain),
        cmocka_unit_test(whoever_plays_rank_0_without_the_secret_is_passed_over),
        cmocka_unit_test(what_is_said_at_once_is_heard),
        cmocka_unit_test(nobody_comes_where_nobody_listens),
        cmocka_unit_test(all_hear_of_a_rank_that_never_comes),
        cmocka_unit_test(rank_0_may_end_before_all_have_come),
        cmocka_unit_test(a_damaged_invitation_is_refused),
        cmocka_unit_test(a_world_needs_so_many_descriptors),
        cmocka_unit_test(rank_0_takes_the_descriptors_that_it_may_have),
        cmocka_unit_test(the_last_error_stays_what_it_was),
        cmocka_unit_test(a_large_world_hears_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
