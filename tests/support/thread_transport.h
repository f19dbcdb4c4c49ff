/* A transport between threads of a test: queues under one mutex. Messages of one sender, receiver and tag
 * arrive in order. A seed determines when a request is found done, so that other messages arrive in any
 * order. Only the thread that lends memory touches it: a message is copied when it is sent, and copied again
 * when its receiver asks for it.
 *
 * count_allocations.h does not count its memory. */
#ifndef PH_TEST_THREAD_TRANSPORT_H
#define PH_TEST_THREAD_TRANSPORT_H

#include "comm/wire/transport.h"

struct thread_fault {
    enum {
        THREAD_IS_SLOW,        /* each of its messages arrives `count` tests later */
        THREAD_DIES,           /* sends and receives nothing any more ... */
        THREAD_CANNOT_SEND,    /* "the cable is cut" ... */
        THREAD_CANNOT_RECEIVE, /* "the mailbox is full" ... */
    } kind;
    size_t rank;
    size_t count;  /* ... from its message of this number on, sent or received, from 0 */
    bool is_early; /* counted from the beginning; false: from thread_world_begin on */
};

struct thread_world;
struct thread_world *thread_world_create(
    size_t world_size, uint64_t seed, const struct thread_fault *faults, size_t num_faults);
/* Returns the number of messages and receives that remain at ranks that closed cleanly, which must be 0. */
size_t thread_world_destroy(struct thread_world *world);

struct ph__transport thread_world_transport(struct thread_world *world, size_t rank);
void thread_world_begin(struct thread_world *world, size_t rank);
/* Returns a rank that has died; SIZE_MAX when none has. */
size_t thread_world_dead(struct thread_world *world);

#endif
