/* A world of one: what a program has that no launcher started. Messages to itself are copied when both ends are there. */
#ifndef PH_COMM_TRANSPORT_SELF_H
#define PH_COMM_TRANSPORT_SELF_H

#include "comm/wire/transport.h"
#include "phloem/status.h"

ph_status ph__transport_self_open(struct ph_transport *transport_out);

#endif
