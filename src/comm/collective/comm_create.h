/* A communicator over a given transport: what ph_comm_create makes of the one that it has chosen, and tests of threads. */
#ifndef PH_COMM_COMM_CREATE_H
#define PH_COMM_COMM_CREATE_H

#include "comm/watch/watch.h"
#include "comm/wire/transport.h"
#include "phloem/comm.h"

/* As ph_comm_create, on all ranks of the transport, which is copied, taken over and closed with the communicator. Until a
 * watch is attached, a rank that has ended is missed only when the time to wait for it is over. */
ph_status ph__comm_create_on(
    const struct ph_transport *transport, const struct ph_comm_options *options, struct ph_comm **comm_out);

/* Takes the watch over, which is closed with the communicator. Once, on all ranks or on none. */
void ph__comm_attach_watch(struct ph_comm *comm, const struct ph_comm_watch *watch);

/* How many threads each rank keeps busy (before: one), which says whether a rank that waits takes a core from another. */
void ph__comm_set_threads(struct ph_comm *comm, size_t num_threads);

/* Messages are cut at so many bytes, on all ranks alike (before: PH_TRANSPORT_MAX_BYTES); with nothing in flight. */
void ph__comm_set_cut(struct ph_comm *comm, size_t bytes);

#endif
