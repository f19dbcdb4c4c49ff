/* The parts of a job's checkpoints, one of each hub where several share its keys: which of them there are,
 * and which of all fit together. Hubs do not know each other: a worker hears from all what they have, and
 * tells all what to do (client_hubs.c and server_parts.c).
 *
 * Of each hub one part is kept (NAME.safetensors), and those that were written since are open
 * (NAME~at-ITERATION.safetensors): nobody has said yet that all hubs have one of the same iteration. When a
 * worker has found that they do, the hubs keep that part in place of the former one; whatever is open goes
 * only when a newer one is kept everywhere, or when some hub will never have the like. So a job whose hubs
 * are killed at any moment goes on from the newest iteration of which all of them had a part.
 *
 * Functions without state; any thread. */
#ifndef PH_HUB_PART_LIST_H
#define PH_HUB_PART_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/wire.h"

#define PH_HUB_MAX_OPEN_PARTS 64 /* of a job, on one hub */
#define PH_NO_ITERATION UINT64_MAX

/* What a hub has on its disk. */
struct ph__parts {
    uint64_t kept; /* PH_NO_ITERATION: the file has settings alone */
    size_t num_open;
    uint64_t open[PH_HUB_MAX_OPEN_PARTS]; /* (num_open) iterations, rising */
};

bool ph__parts_has(const struct ph__parts *parts, uint64_t iteration);
/* An open one, where there is room. */
void ph__parts_add(struct ph__parts *parts, uint64_t iteration);
/* The open part becomes the kept one (PH_NO_ITERATION, or one that is not open: none does); of the others
 * those below settled_end go. */
void ph__parts_keep(struct ph__parts *parts, uint64_t iteration, uint64_t settled_end);
/* "none", or "of iteration 5, 8": all; where they do not fit, the first ones and "...". */
#define PH_PARTS_TEXT_BYTES 200
void ph__parts_describe(const struct ph__parts *parts, char text_out[PH_PARTS_TEXT_BYTES]);

/* What a hub says when something has changed (SAVED). */
struct ph__saved {
    struct ph__parts parts;
    /* The newest iteration that a chunk has come to, half of PH_HUB_MAX_ITERATION at most, so that the next
     * one can be told; 0 where updates are not counted by iterations. */
    uint64_t most;
    /* The hub makes no part of an iteration below this any more: where it has none, there will be none.
     * PH_NO_ITERATION: it has no chunks, and makes a part of whatever iteration it is asked for. */
    uint64_t settled_end;
    uint64_t every; /* iterations from one part to the next; 0: only on demand, or as each hub likes */
    bool is_late;   /* it was told the next one when it had passed that */
};

/* What all hubs hear (KEEP). */
struct ph__keep {
    uint64_t iteration; /* of the parts to keep; PH_NO_ITERATION: none yet */
    /* Open parts below this go: some hub will never have the like, or a newer one is kept; or a hub has as
     * many as it may, of which hubs without chunks do not make the like. */
    uint64_t settled_end;
    uint64_t next; /* to make parts of; PH_NO_ITERATION: none */
};

/* The newest iteration of which all hubs have a part. saved: (num_hubs). */
uint64_t ph__parts_newest_common(const struct ph__saved *saved, size_t num_hubs);

/* The answer to what all hubs have said. slack: iterations that the next parts lie ahead of the fastest hub
 * at least; it is 1 at first, doubles here when a hub was late, and else shrinks a little. */
struct ph__keep ph__parts_decide(const struct ph__saved *saved, size_t num_hubs, uint64_t *slack);

/* ---- in frames: the readers give PH_ERROR_PEER for what cannot be ---- */

void ph__put_iteration(struct ph__wire_writer *writer, uint64_t iteration);
void ph__put_parts(struct ph__wire_writer *writer, const struct ph__parts *parts);
void ph__put_saved(struct ph__wire_writer *writer, const struct ph__saved *saved);
void ph__put_keep(struct ph__wire_writer *writer, const struct ph__keep *keep);

ph_status ph__get_iteration(const void *body, size_t size, uint64_t *iteration_out);
ph_status ph__get_parts(const void *body, size_t size, struct ph__parts *parts_out);
ph_status ph__get_saved(const void *body, size_t size, struct ph__saved *saved_out);
ph_status ph__get_keep(const void *body, size_t size, struct ph__keep *keep_out);

#endif
