/* Makes a communicator send and receive only in its own memory. A message in a caller's memory fails with
 * "a caller's memory travels": the caller might free it after a failure, while the message is still to
 * arrive. */
#ifndef PH_TEST_STAGED_MESSAGES_H
#define PH_TEST_STAGED_MESSAGES_H

#include "comm/collective/comm.h"

/* Demands this until the communicator is destroyed. Call with nothing in flight. */
ph_status staged_messages_demand(struct ph_comm *comm);

#endif
