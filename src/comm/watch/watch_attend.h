/* A thread that attends to a watch while its rank does something long that looks at nothing: rank 0 passes on what it hears. */
#ifndef PH_COMM_WATCH_ATTEND_H
#define PH_COMM_WATCH_ATTEND_H

#include "comm/watch/watch.h"

/* The watch becomes one that a thread looks at as well, ten times a second, until it is closed. PH_ERROR_MEMORY: there is no such
 * thread, and the watch is what it was. */
ph_status ph__watch_attend(struct ph_comm_watch *watch);

#endif
