/* What strangers, and ranks that have proved themselves, say to rank 0's watch. The first byte of an input
 * chooses whether the first visitor is rank 1 already (1). The rest is a list of records (fuzz_frames.h),
 * each a frame of the type that it begins with; one AS_RANKS_DO has the body that a rank would send, and the
 * input's bytes are edits of it (fuzz_edit); a RAW one is no frame but bytes; TURN_TO goes on with another
 * visitor, and what stands in a record besides is also read as each kind of body.
 *
 * Nobody becomes a peer who has not said the right proof, and what rank 0 takes for a notice is one. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/utf8.h"
#include "support/fuzz_frames.h"
#include "support/watch_visitor.h"

enum { AS_RANKS_DO = 128, RAW = 64, TURN_TO = 32, TYPE_BITS = 15, IS_RANK_1 = 1 };
enum { WORLD_SIZE = 4, NUM_VISITORS = 2, MAX_RECORDS = 24 };

static struct conversation {
    struct ph__watch_listener *listener;
    struct ph__watch_invitation invitation;
    struct watch_visitor visitors[NUM_VISITORS];
    unsigned char proofs[NUM_VISITORS][PH_PROOF_BYTES]; /* that would be right */
    bool has_proof[NUM_VISITORS];
    size_t num_right; /* proofs that were said */
} now;

/* ---- what is read holds together ---- */

static void check_notice(const struct ph__comm_notice *notice)
{
    const size_t length = strnlen(notice->text, sizeof notice->text);
    fuzz_require(notice->rank < WORLD_SIZE && notice->status < PH_OK);
    fuzz_require(length < sizeof notice->text && ph__utf8_is_plain(notice->text, length));
}

/* Whatever is accepted is written as it was read. */
static void read_as_each(const uint8_t *body, size_t size)
{
    unsigned char bytes[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__watch_hello hello;
    struct ph__watch_answer answer;
    struct ph__comm_notice notice;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    if (ph__watch_get_hello(body, size, WORLD_SIZE, &hello) == PH_OK)
        ph__watch_put_hello(&writer, &hello);
    else if (ph__watch_get_answer(body, size, &answer) == PH_OK)
        ph__watch_put_answer(&writer, &answer);
    else if (ph__watch_get_notice(body, size, WORLD_SIZE, &notice) == PH_OK)
        ph__watch_put_notice(&writer, &notice);
    else
        return;
    fuzz_require(writer.fault == NULL && writer.used == size && memcmp(bytes, body, size) == 0);
}

static size_t num_peers(void)
{
    const struct ph__watch_star *star = ph__watch_listener_star(now.listener);
    size_t count = 0;
    for (size_t i = 0; i < star->num_peers; i++)
        count += star->peers[i].stream != NULL;
    return count;
}

/* ---- saying ---- */

static void hear(size_t index)
{
    struct watch_visitor *visitor = &now.visitors[index];
    struct ph__control_frame frame;
    struct ph__watch_answer answer;
    struct ph__comm_notice notice;
    while (watch_visitor_hear(visitor, &frame)) {
        if (frame.type == PH_WATCH_CHALLENGE) {
            fuzz_require(ph__watch_get_answer(frame.body, frame.size, &answer) == PH_OK);
            now.has_proof[index] = ph__watch_prove(&visitor->secret, visitor->hello, visitor->hello_size,
                                       &answer, "rank 0", now.proofs[index]) == PH_OK;
        } else if (frame.type == PH_WATCH_NOTICE) {
            fuzz_require(ph__watch_get_notice(frame.body, frame.size, WORLD_SIZE, &notice) == PH_OK);
        } else {
            fuzz_require(frame.type == PH_WATCH_WELCOME && frame.size == 0);
        }
    }
}

static void put_body(struct ph__wire_writer *writer, uint16_t type, size_t index)
{
    const struct ph__watch_hello hello = {.who = {.rank = (uint32_t)index + 1, .process = 7, .host = "far"}};
    const struct ph__comm_notice notice = {
        .rank = (uint32_t)index + 1, .status = PH_ERROR_DATA, .text = "line 3: no number"};
    if (type == PH_WATCH_HELLO)
        ph__watch_put_hello(writer, &hello);
    else if (type == PH_WATCH_PROOF)
        ph__wire_put_bytes(writer, now.proofs[index], PH_PROOF_BYTES);
    else if (type == PH_WATCH_NOTICE)
        ph__watch_put_notice(writer, &notice);
}

static void say(size_t index, uint16_t type, const uint8_t *body, size_t size)
{
    struct watch_visitor *visitor = &now.visitors[index];
    if (type == PH_WATCH_HELLO && size <= sizeof visitor->hello && !now.has_proof[index]) {
        memcpy(visitor->hello, body, size);
        visitor->hello_size = size;
    }
    now.num_right += type == PH_WATCH_PROOF && now.has_proof[index] && size == PH_PROOF_BYTES &&
                     memcmp(body, now.proofs[index], size) == 0;
    watch_visitor_say(visitor, type, body, size);
}

static void say_as_ranks_do(size_t index, const struct fuzz_record *record)
{
    unsigned char bytes[PH_WATCH_MAX_BODY];
    struct ph__wire_writer writer;
    size_t unused, size;
    const uint16_t type = record->head & TYPE_BITS;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    put_body(&writer, type, index);
    uint8_t *edited =
        fuzz_edit((const char *)bytes, writer.used, record->body, record->size, 0, &unused, &size);
    say(index, type, edited, size);
    free(edited);
}

static void say_record(size_t index, const struct fuzz_record *record)
{
    struct watch_visitor *visitor = &now.visitors[index];
    if (visitor->stream == NULL)
        fuzz_require(watch_visitor_come(visitor, now.listener, now.invitation.secret));
    if ((record->head & RAW) != 0) {
        (void)!send(ph__control_stream_socket(visitor->stream), record->body, record->size,
            MSG_NOSIGNAL | MSG_DONTWAIT);
        now.num_right += now.has_proof[index]; /* it may hold the proof: nobody knows */
        ph__watch_star_turn(ph__watch_listener_star(now.listener), 0);
    } else if ((record->head & AS_RANKS_DO) != 0) {
        say_as_ranks_do(index, record);
    } else {
        say(index, record->head & TYPE_BITS, record->body, record->size);
    }
    hear(index);
    fuzz_require(num_peers() <= now.num_right);
}

static void go(size_t index)
{
    watch_visitor_go(&now.visitors[index]);
    now.has_proof[index] = false;
    ph__watch_star_turn(ph__watch_listener_star(now.listener), 0);
}

static void say_all(const uint8_t *data, size_t size)
{
    struct fuzz_record record;
    size_t index = 0;
    for (int i = 0; i < MAX_RECORDS && fuzz_next_record(&data, &size, &record); i++) {
        read_as_each(record.body, record.size);
        if ((record.head & TURN_TO) == 0) {
            say_record(index, &record);
            continue;
        }
        if ((record.head & AS_RANKS_DO) != 0)
            go(index);
        index = (index + 1) % NUM_VISITORS;
    }
}

static void begin(bool is_rank_1)
{
    const struct ph__watch_options options = {.world_size = WORLD_SIZE, .is_one_host = true, .timeout_ms = 1};
    now = (struct conversation){0};
    fuzz_require(ph__watch_listen(&options, &now.invitation, &now.listener) == PH_OK);
    if (!is_rank_1)
        return;
    fuzz_require(watch_visitor_come(&now.visitors[0], now.listener, now.invitation.secret));
    watch_visitor_greet(&now.visitors[0], 1);
    fuzz_require(watch_visitor_prove(&now.visitors[0]));
    now.num_right = 1;
}

static void end(void)
{
    const struct ph__watch_star *star = ph__watch_listener_star(now.listener);
    for (size_t i = 0; i < NUM_VISITORS; i++)
        go(i);
    fuzz_require(num_peers() == 0);
    if (star->has_notice)
        check_notice(&star->notice);
    ph__watch_listener_destroy(now.listener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t num_descriptors = fuzz_count_descriptors();
    if (size < 1)
        return 0;
    begin((data[0] & IS_RANK_1) != 0);
    say_all(data + 1, size - 1);
    end();
    fuzz_require(fuzz_count_descriptors() == num_descriptors);
    return 0;
}
