/* What optimizer slots tell of the rows that training has learnt from: a slot begins as zeros, and only a gradient changes
 * it. So it is where an optimizer with slots updates the rows that a batch touches, or decays none of the others; in the
 * same way in a training that was resumed, since slots are resumed with it. */
#ifndef PH_TRAIN_ROWS_LEARNT_H
#define PH_TRAIN_ROWS_LEARNT_H

#include "phloem/train.h"
#include "train/measure/id_coverage.h"

/* Marks the rows of the features whose rows are not known yet, where slots tell, of parts of tables those that they have.
 * Reads slots from end to end. PH_ERROR_MEMORY. */
ph_status ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage);

#endif
