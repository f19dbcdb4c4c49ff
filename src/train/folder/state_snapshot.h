/* A copy of the state from before a step, so that a step that is skipped leaves nothing behind (batch norm writes its
 * running statistics on the way forward). */
#ifndef PH_TRAIN_STATE_SNAPSHOT_H
#define PH_TRAIN_STATE_SNAPSHOT_H

#include "phloem/store.h"

struct ph__state_snapshot { /* zero-initialised is empty */
    size_t size;
    unsigned char *bytes;
};

ph_status ph__state_snapshot_take(struct ph__state_snapshot *snapshot, const struct ph_state *state);
void ph__state_snapshot_restore(const struct ph__state_snapshot *snapshot, struct ph_state *state);
void ph__state_snapshot_fini(struct ph__state_snapshot *snapshot);

#endif
