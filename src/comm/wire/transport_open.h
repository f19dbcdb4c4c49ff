/* Opens the transport of this process, by what is wanted and what the launcher says: see transport_choice.h. */
#ifndef PH_COMM_TRANSPORT_OPEN_H
#define PH_COMM_TRANSPORT_OPEN_H

#include "comm/wire/transport.h"
#include "phloem/status.h"

/* The caller closes it. A plugin stays loaded until the process ends, since MPI cannot be unloaded. PH_ERROR_USAGE: nothing
 * fits, or is not installed; the transport joins another number of ranks than were started. PH_ERROR_PEER: the job could not
 * be joined. */
ph_status ph__transport_open(const char *wanted, struct ph_transport *transport_out);

#endif
