/* Doorbells wake a thread that sleeps in poll() or epoll_wait(): a pair of connected sockets, one end a process. Ringing never
 * blocks, whatever the other side does with its end; one that is closed tells that the other process has ended. */
#ifndef PH_NET_DOORBELL_H
#define PH_NET_DOORBELL_H

#include <stdbool.h>

#include "phloem/status.h"

/* Two ends; whoever holds one closes it. PH_ERROR_MEMORY when there are no more descriptors. */
ph_status ph__doorbell_create(int ends_out[2]);

void ph__doorbell_ring(int end);

/* Takes what has been rung, or some of it: whoever rings without end is not waited for, but wakes once more. false: nobody
 * holds the other end any more. */
bool ph__doorbell_answer(int end);

#endif
