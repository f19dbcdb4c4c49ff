/* How a rank hears that another one has died or failed: a table of functions that the communicator looks at while it waits.
 *
 * Behind it stands a connection beside MPI's (watch_star.h), or what a test plays. The first notice that any rank gives is the
 * one that all ranks get, and it stays. All calls come from the communicator's thread; none but tell and close waits, and these for
 * about a second at most. The text of the last error is what it was before. */
#ifndef PH_COMM_WATCH_H
#define PH_COMM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_NOTICE_TEXT_BYTES 512

struct ph_comm_notice {
    uint32_t rank;    /* whom it is about */
    ph_status status; /* what all ranks end with */
    bool has_died;    /* without a word; else it has told so itself */
    char text[PH_NOTICE_TEXT_BYTES];
};

struct ph_comm_watch {
    void *context; /* given to each function */
    /* Whether there is a notice; once there is, always the same. About one system call. */
    bool (*look)(void *context, struct ph_comm_notice *notice_out);
    /* This rank ends: all others hear of it, also when the process exits right after. What look gives from then on may be what
     * another rank has told before. */
    void (*tell)(void *context, const struct ph_comm_notice *notice);
    /* is_clean: the job is over, and nobody takes this rank's end for a death. */
    void (*close)(void *context, bool is_clean);
};

#endif
