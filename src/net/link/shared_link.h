/* Links over shared memory: two rings of messages, one a direction, each written by one side and read by the
 * other.
 *
 * Nothing that the other side can write is trusted: its positions are checked, its messages are copied out
 * before they are looked at, and a ring that it does not empty makes ph__link_send() fail instead of wait. */
#ifndef PH_NET_SHARED_LINK_H
#define PH_NET_SHARED_LINK_H

#include "net/link/link.h"

/* Bytes that two rings of `capacity` messages (a power of two) take; a multiple of 64. */
size_t ph__shared_link_bytes(size_t capacity);

struct ph__shared_link_options {
    void *memory;    /* shared, zeros at first, 64-byte aligned; borrowed until destroy */
    size_t capacity; /* of either ring, a power of two */
    bool is_hub;     /* which side this is: the other is not */
    int doorbell;    /* this side's end, owned by the link from now on */
    struct ph__link_owner owner;
};

/* PH_ERROR_MEMORY; the doorbell is then the caller's. */
ph_status ph__shared_link_create(const struct ph__shared_link_options *options, struct ph__link **link_out);

#endif
