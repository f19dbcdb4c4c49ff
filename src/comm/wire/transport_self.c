/* A world of one process: messages of a rank to itself, and of other ranks that all say what this one says.
 * Sends and receives that wait for their other end are in one list, oldest first. Those of one peer and tag
 * are all sends or all receives, since a send meets the oldest waiting receive, and the other way round. */
#include "base/memory/memory.h"
#include "comm/wire/transport_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct end {
    struct end *next; /* in the list of waiting ends */
    bool is_send, is_done;
    size_t peer;
    int tag;
    const void *source; /* send: the data */
    void *target;       /* receive: where the data go */
    size_t bytes, came_bytes;
};

struct self {
    struct end *first; /* waiting ends */
};

/* Returns the link to the oldest waiting end that matches; the list's last link when there is none. */
static struct end **find_other(struct self *self, const struct end *end)
{
    struct end **place = &self->first;
    while (*place != NULL &&
           ((*place)->peer != end->peer || (*place)->tag != end->tag || (*place)->is_send == end->is_send))
        place = &(*place)->next;
    return place;
}

static void pass(struct end *send, struct end *receive)
{
    if (send->bytes == receive->bytes && send->bytes > 0)
        memcpy(receive->target, send->source, send->bytes);
    receive->came_bytes = send->bytes;
    send->is_done = receive->is_done = true;
}

static bool start(struct self *self, const struct end *model, struct ph__transport_request *request_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct end *end = malloc(sizeof *end);
    if (end == NULL) {
        snprintf(error, PH_TRANSPORT_ERROR_BYTES, "out of memory: a message");
        return false;
    }
    *end = *model;
    struct end **place = find_other(self, end), *other = *place;
    if (other != NULL) {
        *place = other->next;
        pass(end->is_send ? end : other, end->is_send ? other : end);
    } else {
        *place = end;
    }
    *request_out = (struct ph__transport_request){.word = end};
    return true;
}

static bool send_to_self(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct end model = {
        .is_send = true, .peer = to, .tag = tag, .source = data, .bytes = bytes, .came_bytes = bytes};
    return start(context, &model, request_out, error);
}

static bool receive_from_self(void *context, size_t from, int tag, void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct end model = {.peer = from, .tag = tag, .target = data, .bytes = bytes};
    return start(context, &model, request_out, error);
}

static bool test_end(void *context, struct ph__transport_request *request, bool *is_done_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    (void)context;
    struct end *end = request->word;
    *is_done_out = end->is_done;
    if (!end->is_done)
        return true;
    const size_t bytes = end->bytes, came_bytes = end->came_bytes;
    free(end);
    if (came_bytes == bytes)
        return true;
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "a message has %zu bytes instead of the expected %zu",
        came_bytes, bytes);
    return false;
}

static void close_self(void *context, bool is_clean)
{
    (void)is_clean;
    struct self *self = context;
    while (self->first != NULL) {
        struct end *end = self->first;
        self->first = end->next;
        free(end);
    }
    free(self);
}

ph_status ph__transport_self_open(size_t world_size, struct ph__transport *transport_out)
{
    struct self *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ph__out_of_memory("a world of one process");
    *transport_out = (struct ph__transport){
        .context = self,
        .world_size = world_size,
        .name = "self",
        .send = send_to_self,
        .receive = receive_from_self,
        .test = test_end,
        .close = close_self,
    };
    return PH_OK;
}
