/* A rank that sends messages whose bytes can be told beforehand, and writes what must be counted of them, in
 * the words of pmpi_traffic.c:
 *
 *     rank_traffic FOLDER     FOLDER/wanted.<rank>
 *
 * To rank `to` go, of tag t = 1, 2, 3, `to + t` messages of 1000 t^4 + 10 rank + to bytes each, the largest
 * of which MPI does not send at once; of tag 0 those of the two meetings around them. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/wire/transport_open.h"
#include "rank_support.h"

enum { NUM_TAGS = 3, NUM_MEETINGS = 2 };

static size_t messages_of(size_t to, size_t tag)
{
    return to + tag;
}

static size_t bytes_of(size_t from, size_t to, size_t tag)
{
    return 1000 * tag * tag * tag * tag + 10 * from + to;
}

static void pass_message(size_t other, size_t tag, size_t number)
{
    const size_t own = rank_transport.rank;
    struct rank_message sent = {
        .other = other, .tag = (int)tag, .number = number, .bytes = bytes_of(own, other, tag)};
    struct rank_message received = {
        .other = other, .tag = (int)tag, .number = number, .bytes = bytes_of(other, own, tag)};
    const bool is_sending = number < messages_of(other, tag), is_receiving = number < messages_of(own, tag);
    if (is_receiving)
        rank_receive(&received);
    if (is_sending)
        rank_send(&sent);
    if (is_receiving)
        rank_wait_received(&received);
    if (is_sending)
        rank_wait_sent(&sent);
}

static void pass_messages(void)
{
    const size_t most = messages_of(rank_transport.world_size, NUM_TAGS);
    for (size_t number = 0; number < most; number++)
        for (size_t tag = 1; tag <= NUM_TAGS; tag++)
            for (size_t other = 0; other < rank_transport.world_size; other++)
                pass_message(other, tag, number);
}

static void write_flow(FILE *file, size_t to, size_t tag, size_t messages, size_t bytes)
{
    fprintf(file, "%s\n{\"to\": %zu, \"tag\": %zu, \"messages\": %zu, \"bytes\": %zu}",
        to + tag > 0 ? "," : "", to, tag, messages, bytes);
}

static void write_wanted(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/wanted.%zu", folder, rank_transport.rank);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        rank_fail("cannot write %s", path);
    fprintf(file, "{\"rank\": %zu, \"sent\": [", rank_transport.rank);
    for (size_t to = 0; to < rank_transport.world_size; to++) {
        write_flow(file, to, 0, NUM_MEETINGS, 0);
        for (size_t tag = 1; tag <= NUM_TAGS; tag++)
            write_flow(file, to, tag, messages_of(to, tag),
                messages_of(to, tag) * bytes_of(rank_transport.rank, to, tag));
    }
    fprintf(file, "\n]}\n");
    if (fclose(file) != 0)
        rank_fail("cannot write %s", path);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (ph__transport_open(NULL, &rank_transport) != PH_OK) {
        fprintf(stderr, "rank_traffic: %s\n", ph_error_text());
        return 2;
    }
    rank_meet();
    pass_messages();
    rank_meet();
    write_wanted(argv[1]);
    rank_transport.close(rank_transport.context, true);
    return 0;
}
