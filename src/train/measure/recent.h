/* The latest training samples' scores, for an AUC while training runs. */
#ifndef PH_TRAIN_RECENT_H
#define PH_TRAIN_RECENT_H

#include "phloem/train.h"

#define PH_RECENT_SAMPLES 32768

struct ph__recent { /* a ring; zero-initialised is empty */
    size_t count, next;
    ph_real *scores, *labels; /* (PH_RECENT_SAMPLES) */
};

ph_status ph__recent_init(struct ph__recent *recent);
void ph__recent_add(
    struct ph__recent *recent, const struct ph_batch *batch, const ph_real *logits); /* task 0 */
ph_status ph__recent_auc(const struct ph__recent *recent, double *auc_out);          /* NaN while undefined */
void ph__recent_fini(struct ph__recent *recent);

#endif
