/* A rank that tries what the transport promises: messages of all sizes, their order, many at once, lengths
 * that do not fit.
 *
 *     rank_messages [lengths]
 *
 * `lengths` sends messages of other lengths than are asked for instead; it ends as ranks do that have failed,
 * with 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/wire/transport_open.h"
#include "rank_support.h"

enum { SIZES_TAG = 1, LARGE_TAG, ORDER_TAG, OTHER_TAG, LENGTH_TAG, FIRST_OF_MANY };
enum { NUM_IN_ORDER = 300, NUM_MANY = 500, LARGE_BYTES = 64 << 20 };

/* From each rank to each, itself too. Sizes lie around those at which MPI goes other ways. */
static void try_sizes(void)
{
    static const size_t sizes[] = {0, 1, 7, 4095, 4096, 4097, 65536, 300001};
    enum { NUM_SIZES = sizeof sizes / sizeof *sizes };
    for (size_t other = 0; other < rank_transport.world_size; other++) {
        const size_t from =
            (rank_transport.rank + rank_transport.world_size - other) % rank_transport.world_size;
        const size_t to = (rank_transport.rank + other) % rank_transport.world_size;
        struct rank_message received[NUM_SIZES], sent[NUM_SIZES];
        for (size_t i = 0; i < NUM_SIZES; i++) {
            received[i] =
                (struct rank_message){.other = from, .tag = SIZES_TAG, .number = i, .bytes = sizes[i]};
            sent[i] = (struct rank_message){.other = to, .tag = SIZES_TAG, .number = i, .bytes = sizes[i]};
            rank_receive(&received[i]);
            rank_send(&sent[i]);
        }
        for (size_t i = 0; i < NUM_SIZES; i++) {
            rank_wait_received(&received[i]);
            rank_wait_sent(&sent[i]);
        }
    }
}

/* One of 64 MiB, from the first rank to the last, which may be the first. */
static void try_large(void)
{
    const size_t last = rank_transport.world_size - 1;
    struct rank_message received = {.other = 0, .tag = LARGE_TAG, .bytes = LARGE_BYTES};
    struct rank_message sent = {.other = last, .tag = LARGE_TAG, .bytes = LARGE_BYTES};
    if (rank_transport.rank == last)
        rank_receive(&received);
    if (rank_transport.rank == 0)
        rank_send(&sent);
    if (rank_transport.rank == last)
        rank_wait_received(&received);
    if (rank_transport.rank == 0)
        rank_wait_sent(&sent);
}

/* Half of the messages come before there is a receive for them, large ones among small ones, and one of
 * another tag that was sent first is taken last. */
static void try_order(void)
{
    static struct rank_message received[NUM_IN_ORDER], sent[NUM_IN_ORDER];
    const size_t next = (rank_transport.rank + 1) % rank_transport.world_size;
    const size_t previous = (rank_transport.rank + rank_transport.world_size - 1) % rank_transport.world_size;
    struct rank_message first = {.other = next, .tag = OTHER_TAG, .bytes = 100}, last = first;
    rank_send(&first);
    for (size_t i = 0; i < NUM_IN_ORDER; i++) {
        const size_t bytes = i % 50 == 7 ? 200000 : i % 10;
        sent[i] = (struct rank_message){.other = next, .tag = ORDER_TAG, .number = i, .bytes = bytes};
        received[i] = sent[i];
        received[i].other = previous;
        rank_send(&sent[i]);
        if (i == NUM_IN_ORDER / 2)
            for (size_t j = 0; j < i; j++)
                rank_receive(&received[j]);
    }
    for (size_t i = NUM_IN_ORDER / 2; i < NUM_IN_ORDER; i++)
        rank_receive(&received[i]);
    for (size_t i = 0; i < NUM_IN_ORDER; i++) {
        rank_wait_received(&received[i]);
        rank_wait_sent(&sent[i]);
    }
    last.other = previous;
    rank_receive(&last);
    rank_wait_received(&last);
    rank_wait_sent(&first);
}

/* To every rank, each with its own tag, all in flight before the first is waited for, and waited for from the
 * last on. */
static void try_many(void)
{
    const size_t count = NUM_MANY * rank_transport.world_size;
    struct rank_message *received = calloc(count, sizeof *received), *sent = calloc(count, sizeof *sent);
    if (received == NULL || sent == NULL)
        rank_fail("no memory");
    for (size_t i = 0; i < count; i++) {
        received[i] = (struct rank_message){.other = i % rank_transport.world_size,
            .tag = FIRST_OF_MANY + (int)(i / rank_transport.world_size),
            .bytes = i};
        sent[i] = received[i];
        sent[i].bytes = i - sent[i].other + rank_transport.rank;
        rank_send(&sent[i]);
    }
    for (size_t i = count; i-- > 0;)
        rank_receive(&received[i]);
    for (size_t i = count; i-- > 0;) {
        rank_wait_received(&received[i]);
        rank_wait_sent(&sent[i]);
    }
    free(received);
    free(sent);
}

/* The next rank asks for another length than it is sent. It has room for both: Open MPI 4 writes the whole of
 * a message that is too long, and tells then. */
static void try_length(size_t sent_bytes, size_t wanted_bytes, const char *part)
{
    const size_t next = (rank_transport.rank + 1) % rank_transport.world_size;
    const size_t previous = (rank_transport.rank + rank_transport.world_size - 1) % rank_transport.world_size;
    struct rank_message sent = {.other = next, .tag = LENGTH_TAG, .bytes = sent_bytes};
    struct rank_message received = {
        .other = previous, .tag = LENGTH_TAG, .bytes = wanted_bytes, .room = sent_bytes};
    rank_receive(&received);
    rank_send(&sent);
    rank_expect_error(&received, part);
    rank_wait_sent(&sent);
}

/* Open MPI tells nobody that a message to oneself is too long; a communicator sends none. */
static void try_lengths(void)
{
    try_length(10, 11, "a message has 10 bytes instead of the expected 11");
    try_length(0, 1, "a message has 0 bytes instead of the expected 1");
    try_length(200000, 300000, "a message has 200000 bytes instead of the expected 300000");
    if (rank_transport.world_size == 1)
        return;
    try_length(11, 10, "a message has more than the expected 10 bytes");
    try_length(1, 0, "a message has more than the expected 0 bytes");
    try_length(300000, 200000, "a message has more than the expected 200000 bytes");
}

int main(int argc, char **argv)
{
    const bool is_of_lengths = argc > 1 && strcmp(argv[1], "lengths") == 0;
    if (ph__transport_open(NULL, &rank_transport) != PH_OK) {
        fprintf(stderr, "rank_messages: %s\n", ph_error_text());
        return 2;
    }
    rank_meet();
    if (is_of_lengths) {
        try_lengths();
    } else {
        try_sizes();
        try_large();
        try_order();
        try_many();
    }
    rank_meet();
    if (rank_transport.rank == 0)
        printf("%zu ranks of %s: fine\n", rank_transport.world_size, rank_transport.name);
    fflush(stdout);
    rank_meet(); /* the launcher ends all when the first one has ended with 3: not before that is out */
    rank_transport.close(rank_transport.context, !is_of_lengths);
    return is_of_lengths ? 3 : 0;
}
