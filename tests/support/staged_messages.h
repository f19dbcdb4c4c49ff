/* Lets a communicator send and receive in no memory but its own: what lies in a caller's, who might free it
 * after a failure while a message is still to arrive, fails with "a caller's memory travels". */
#ifndef PH_TEST_STAGED_MESSAGES_H
#define PH_TEST_STAGED_MESSAGES_H

#include "comm/collective/comm.h"

/* From now on until the communicator is destroyed. With nothing in flight. */
ph_status staged_messages_demand(struct ph_comm *comm);

#endif
