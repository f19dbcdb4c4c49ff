/* How a rank hears that another has died or failed: one table of functions, behind which something other than the
 * transport watches over the ranks. The first notice of a job is the one that all ranks get, also the one that told it. */
#ifndef PH_COMM_WATCH_H
#define PH_COMM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_COMM_NOTICE_TEXT 512 /* bytes */

struct ph_comm_notice {
    uint32_t rank; /* that has died or failed */
    ph_status status;
    bool has_died; /* so it cannot tell people itself */
    char text[PH_COMM_NOTICE_TEXT];
};

/* All calls come from the rank's one thread. */
struct ph_comm_watch {
    void *context;
    /* Whether there is the notice; never waits, and costs about one system call. */
    bool (*look)(void *context, struct ph_comm_notice *notice_out);
    /* That this rank fails, or that it waits in vain for another, which then counts as dead. */
    void (*tell)(void *context, const struct ph_comm_notice *notice);
    /* is_clean: this rank is done, which nobody is to take for a death. */
    void (*close)(void *context, bool is_clean);
};

#endif
