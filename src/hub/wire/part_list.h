/* Parts of a job's checkpoints, one of each hub where several share the job's keys: lists a hub's parts, and
 * finds those that fit together. Hubs do not know each other: all tell a worker what they have, and the
 * worker tells all what to do (client_hubs.c and server_parts.c).
 *
 * Each hub keeps one part (NAME.safetensors). Parts written since are open (NAME~at-ITERATION.safetensors):
 * it is not yet known that all hubs have one of the same iteration. When a worker has found that they do, the
 * hubs keep that part in place of the former one. An open part is removed only when a newer one is kept
 * everywhere, or when some hub will never have its iteration. So a job whose hubs are killed at any moment
 * resumes from the newest iteration of which all of them had a part.
 *
 * Functions without state; any thread. */
#ifndef PH_HUB_PART_LIST_H
#define PH_HUB_PART_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/wire.h"

#define PH_HUB_MAX_OPEN_PARTS 64 /* limit for a job on one hub */
#define PH_NO_ITERATION UINT64_MAX

/* Parts on a hub's disk. */
struct ph__parts {
    uint64_t kept; /* PH_NO_ITERATION: the file has only settings */
    size_t num_open;
    uint64_t open[PH_HUB_MAX_OPEN_PARTS]; /* (num_open) iterations, ascending */
};

bool ph__parts_has(const struct ph__parts *parts, uint64_t iteration);
/* Adds an open part, if there is room. */
void ph__parts_add(struct ph__parts *parts, uint64_t iteration);
/* Makes the open part of this iteration the kept one, unless PH_NO_ITERATION or not open; then removes open
 * parts below settled_end. */
void ph__parts_keep(struct ph__parts *parts, uint64_t iteration, uint64_t settled_end);
/* Writes "none", or "of iteration 5, 8": all parts; if they do not fit, the first ones and "...". */
#define PH_PARTS_TEXT_BYTES 200
void ph__parts_describe(const struct ph__parts *parts, char text_out[PH_PARTS_TEXT_BYTES]);

/* Report of a hub when its parts have changed (SAVED). */
struct ph__saved {
    struct ph__parts parts;
    /* Newest iteration that a chunk has reached, at most half of PH_HUB_MAX_ITERATION, so that the next can
     * be sent; 0 where updates are not counted by iterations. */
    uint64_t most;
    /* The hub makes no more parts of iterations below this: those that it lacks it will never have.
     * PH_NO_ITERATION: it has no chunks, and makes a part of any iteration on demand. */
    uint64_t settled_end;
    uint64_t every; /* iterations between parts; 0: on demand only, or each hub chooses */
    bool is_late;   /* true: it had passed the last requested iteration */
};

/* Order to all hubs (KEEP). */
struct ph__keep {
    uint64_t iteration; /* iteration of the parts to keep; PH_NO_ITERATION: none yet */
    /* Open parts below this are removed: some hub will never have their iteration, or a newer one is kept; or
     * a hub has PH_HUB_MAX_OPEN_PARTS, and hubs without chunks have yet to make the oldest. */
    uint64_t settled_end;
    uint64_t next; /* iteration of the next parts to make; PH_NO_ITERATION: none */
};

/* Returns the newest iteration of which all hubs have a part, or PH_NO_ITERATION. saved: (num_hubs). */
uint64_t ph__parts_newest_common(const struct ph__saved *saved, size_t num_hubs);

/* Returns the order that answers the reports of all hubs. slack: least iterations between the fastest hub and
 * the next parts; 1 at first, doubled here when a hub was late, and else reduced a little. */
struct ph__keep ph__parts_decide(const struct ph__saved *saved, size_t num_hubs, uint64_t *slack);

/* ---- frames: readers give PH_ERROR_PEER for invalid values ---- */

void ph__put_iteration(struct ph__wire_writer *writer, uint64_t iteration);
void ph__put_parts(struct ph__wire_writer *writer, const struct ph__parts *parts);
void ph__put_saved(struct ph__wire_writer *writer, const struct ph__saved *saved);
void ph__put_keep(struct ph__wire_writer *writer, const struct ph__keep *keep);

ph_status ph__get_iteration(const void *body, size_t size, uint64_t *iteration_out);
ph_status ph__get_parts(const void *body, size_t size, struct ph__parts *parts_out);
ph_status ph__get_saved(const void *body, size_t size, struct ph__saved *saved_out);
ph_status ph__get_keep(const void *body, size_t size, struct ph__keep *keep_out);

#endif
