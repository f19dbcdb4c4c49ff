/* The event loop. A source that is removed during a round may still have events in that round: it is marked,
 * and freed when the round is over. */
#include "net/event_loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory/memory.h"

#define EVENTS_A_ROUND 64

struct ph__event_source {
    struct ph__event_loop *loop;
    ph__event_callback callback;
    void *context;
    int descriptor;
    bool is_removed;
    struct ph__event_source *next_removed;
};

struct ph__event_loop {
    int epoll;
    bool is_running;
    struct ph__event_source *removed;
};

ph_status ph__event_loop_create(struct ph__event_loop **loop_out)
{
    struct ph__event_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return ph__out_of_memory("an event loop");
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        free(loop);
        return ph_fail(PH_ERROR_MEMORY, "cannot create an event loop: %s", strerror(errno));
    }
    *loop_out = loop;
    return PH_OK;
}

static void free_removed(struct ph__event_loop *loop)
{
    while (loop->removed != NULL) {
        struct ph__event_source *source = loop->removed;
        loop->removed = source->next_removed;
        free(source);
    }
}

void ph__event_loop_destroy(struct ph__event_loop *loop)
{
    if (loop == NULL)
        return;
    free_removed(loop);
    close(loop->epoll);
    free(loop);
}

static ph_status control(struct ph__event_source *source, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(source->loop->epoll, operation, source->descriptor, &event) != 0)
        return ph_fail(
            PH_ERROR_MEMORY, "descriptor %d cannot be watched: %s", source->descriptor, strerror(errno));
    return PH_OK;
}

ph_status ph__event_loop_add(struct ph__event_loop *loop, int descriptor, uint32_t events,
    ph__event_callback callback, void *context, struct ph__event_source **source_out)
{
    struct ph__event_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return ph__out_of_memory("a descriptor that is watched");
    *source = (struct ph__event_source){
        .loop = loop, .callback = callback, .context = context, .descriptor = descriptor};
    const ph_status status = control(source, EPOLL_CTL_ADD, events);
    if (status != PH_OK) {
        free(source);
        return status;
    }
    *source_out = source;
    return PH_OK;
}

ph_status ph__event_source_change(struct ph__event_source *source, uint32_t events)
{
    return control(source, EPOLL_CTL_MOD, events);
}

void ph__event_source_remove(struct ph__event_source *source)
{
    if (source == NULL)
        return;
    epoll_ctl(source->loop->epoll, EPOLL_CTL_DEL, source->descriptor, NULL);
    source->is_removed = true;
    source->next_removed = source->loop->removed;
    source->loop->removed = source;
    if (!source->loop->is_running)
        free_removed(source->loop);
}

ph_status ph__event_loop_run(struct ph__event_loop *loop, int timeout_ms)
{
    struct epoll_event events[EVENTS_A_ROUND];
    const int count = epoll_wait(loop->epoll, events, EVENTS_A_ROUND, timeout_ms);
    if (count < 0 && errno != EINTR)
        return ph_fail(PH_ERROR_BUG, "cannot wait for events: %s", strerror(errno));
    loop->is_running = true;
    for (int i = 0; i < count; i++) {
        struct ph__event_source *source = events[i].data.ptr;
        if (!source->is_removed)
            source->callback(source->context, events[i].events);
    }
    loop->is_running = false;
    free_removed(loop);
    return PH_OK;
}
