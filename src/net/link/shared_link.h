/* Links over shared memory: two rings of messages, one a direction, each written by one side and read by the
 * other.
 *
 * The other side is not trusted: its positions are checked, and its messages are copied out before they are
 * read. When it does not empty its ring, ph__link_send() fails instead of waiting. */
#ifndef PH_NET_SHARED_LINK_H
#define PH_NET_SHARED_LINK_H

#include "net/link/link.h"

/* Returns the bytes of two rings of `capacity` messages (a power of two); a multiple of 64. */
size_t ph__shared_link_bytes(size_t capacity);

struct ph__shared_link_options {
    void *memory;    /* shared, zeros at first, 64-byte aligned; borrowed until destroy */
    size_t capacity; /* of either ring, a power of two */
    bool is_hub;     /* true: this side is the hub's */
    int doorbell;    /* this side's end; owned by the link */
    struct ph__link_owner owner;
};

/* Creates a link. PH_ERROR_MEMORY; the caller then keeps the doorbell. */
ph_status ph__shared_link_create(const struct ph__shared_link_options *options, struct ph__link **link_out);

#endif
