/* What links carry: 16 bytes that say what happened to a chunk, and on links without shared memory the chunk's bytes behind
 * them. */
#ifndef PH_NET_MESSAGE_H
#define PH_NET_MESSAGE_H

#include <assert.h>
#include <stdint.h>

struct ph_message {
    uint8_t kind; /* its meaning is its owners' */
    uint8_t flags;
    uint16_t count;
    uint32_t chunk;
    uint64_t iteration;
};
static_assert(sizeof(struct ph_message) == 16, "four to a cache line");

#endif
