/* See rank_support.h. */
#include "rank_support.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ph__transport rank_transport;

void rank_fail(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "rank %zu of %zu: %s\n", rank_transport.rank, rank_transport.world_size, text);
    exit(1);
}

/* The byte at `place` of a message; neighbours, ranks, tags and numbers all differ somewhere. */
static uint8_t byte_at(size_t from, size_t to, int tag, size_t number, size_t place)
{
    const uint64_t seed = from * 31 + to * 17 + (uint64_t)tag * 7 + number * 3;
    return (uint8_t)((seed + place) * 0x9e3779b97f4a7c15u >> 56);
}

static uint8_t *make_data(size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);
    if (data == NULL)
        rank_fail("no memory for %zu bytes", bytes);
    return data;
}

void rank_send(struct rank_message *message)
{
    char error[PH_TRANSPORT_ERROR_BYTES];
    message->data = make_data(message->bytes);
    for (size_t i = 0; i < message->bytes; i++)
        message->data[i] = byte_at(rank_transport.rank, message->other, message->tag, message->number, i);
    if (!rank_transport.send(rank_transport.context, message->other, message->tag, message->data,
            message->bytes, &message->request, error))
        rank_fail("send: %s", error);
}

void rank_receive(struct rank_message *message)
{
    char error[PH_TRANSPORT_ERROR_BYTES];
    message->data = make_data(message->room > message->bytes ? message->room : message->bytes);
    memset(message->data, 0xee, message->bytes + 1);
    if (!rank_transport.receive(rank_transport.context, message->other, message->tag, message->data,
            message->bytes, &message->request, error))
        rank_fail("receive: %s", error);
}

static bool wait(struct rank_message *message, char error[PH_TRANSPORT_ERROR_BYTES])
{
    for (bool is_done = false; !is_done; sched_yield())
        if (!rank_transport.test(rank_transport.context, &message->request, &is_done, error))
            return false;
    return true;
}

static void drop_data(struct rank_message *message)
{
    free(message->data);
    message->data = NULL;
}

void rank_wait_sent(struct rank_message *message)
{
    char error[PH_TRANSPORT_ERROR_BYTES];
    if (!wait(message, error))
        rank_fail("sending %zu bytes to %zu: %s", message->bytes, message->other, error);
    drop_data(message);
}

void rank_wait_received(struct rank_message *message)
{
    char error[PH_TRANSPORT_ERROR_BYTES];
    if (!wait(message, error))
        rank_fail("receiving %zu bytes from %zu: %s", message->bytes, message->other, error);
    for (size_t i = 0; i < message->bytes; i++)
        if (message->data[i] !=
            byte_at(message->other, rank_transport.rank, message->tag, message->number, i))
            rank_fail("message %zu of tag %d from %zu is wrong at byte %zu of %zu", message->number,
                message->tag, message->other, i, message->bytes);
    if (message->data[message->bytes] != 0xee)
        rank_fail("a message of %zu bytes was written beyond its end", message->bytes);
    drop_data(message);
}

void rank_expect_error(struct rank_message *message, const char *part)
{
    char error[PH_TRANSPORT_ERROR_BYTES];
    if (wait(message, error))
        rank_fail("%zu bytes from %zu came without '%s'", message->bytes, message->other, part);
    if (strstr(error, part) == NULL || strchr(error, '\n') != NULL)
        rank_fail("the error is '%s'; wanted '%s'", error, part);
    drop_data(message);
}

void rank_meet(void)
{
    const size_t world = rank_transport.world_size;
    struct rank_message *messages = calloc(2 * world, sizeof *messages);
    if (messages == NULL)
        rank_fail("no memory");
    for (size_t i = 0; i < 2 * world; i++) {
        messages[i] = (struct rank_message){.other = i / 2};
        (i % 2 == 0 ? rank_receive : rank_send)(&messages[i]);
    }
    for (size_t i = 0; i < 2 * world; i++)
        (i % 2 == 0 ? rank_wait_received : rank_wait_sent)(&messages[i]);
    free(messages);
}

void rank_leave_process(const char *folder, size_t rank)
{
    char path[4096], temporary[4096];
    snprintf(path, sizeof path, "%s/%zu", folder, rank);
    snprintf(temporary, sizeof temporary, "%s/%zu.new", folder, rank);
    FILE *file = fopen(temporary, "w");
    if (file == NULL || fprintf(file, "%ld\n", (long)getpid()) < 0 || fclose(file) != 0 ||
        rename(temporary, path) != 0)
        rank_fail("cannot write %s", path);
}
