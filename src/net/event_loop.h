/* Watches descriptors and calls back when they have events: epoll, for the one thread that drives a server's
 * control side. A callback may add and remove any descriptor, its own included. */
#ifndef PH_NET_EVENT_LOOP_H
#define PH_NET_EVENT_LOOP_H

#include <stdint.h>

#include "phloem/status.h"

struct ph__event_loop;
struct ph__event_source; /* a watched descriptor */

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP ... of epoll_ctl(2). */
typedef void (*ph__event_callback)(void *context, uint32_t events);

ph_status ph__event_loop_create(struct ph__event_loop **loop_out);
void ph__event_loop_destroy(
    struct ph__event_loop *loop); /* after all descriptors were removed; NULL is fine */

/* Watches a descriptor, which is borrowed until it is removed. PH_ERROR_MEMORY. */
ph_status ph__event_loop_add(struct ph__event_loop *loop, int descriptor, uint32_t events,
    ph__event_callback callback, void *context, struct ph__event_source **source_out);
ph_status ph__event_source_change(struct ph__event_source *source, uint32_t events);
void ph__event_source_remove(struct ph__event_source *source); /* NULL is fine */

/* Waits for up to timeout_ms (-1: without end) and calls the callbacks of descriptors with events. A signal
 * ends the wait. */
ph_status ph__event_loop_run(struct ph__event_loop *loop, int timeout_ms);

#endif
