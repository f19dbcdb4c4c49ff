/* Labels that cost nets learn from: many drawn sets of tables, measured.
 *
 * What disturbs a machine stays for seconds, so that more runs of a set in a row help little. All sets are
 * measured twice, long apart, and a third time where the two differ much; labels are medians. Of ten sets in
 * a row eight are of the tables to train on, one to validate by, one to test by, so that all parts meet the
 * same disturbances. */
#ifndef PH_TRAIN_COST_LABELS_H
#define PH_TRAIN_COST_LABELS_H

#include "base/memory/arena.h"
#include "train/cost/cost_measure.h"

enum { PH_COST_MOST_TABLES = 15 }; /* of a set that is drawn */

struct ph__cost_labels { /* zero-initialised is empty */
    struct ph__arena arena;
    struct ph__cost_label *labels; /* (num_labels): to train on, to validate by, to test by, in this order */
    size_t num_labels;
    struct ph__cost_split counts;  /* of labels */
    size_t num_again, num_dropped; /* sets that were measured a third time; sets without a label */
    double repeat_error;           /* mean relative difference of a label from another one of the same set */
};

typedef void (*ph__cost_progress)(void *context, size_t done, size_t count);

/* Measures num_sets sets of 1 to PH_COST_MOST_TABLES tables, at any dim. Progress may be NULL. Call fini also
 * after a failure. */
ph_status ph__cost_labels_measure(struct ph__cost_measure *measure, const struct ph__cost_table *tables,
    const struct ph__cost_split *split, size_t num_sets, uint64_t seed, ph__cost_progress progress,
    void *context, struct ph__cost_labels *labels_out);
void ph__cost_labels_fini(struct ph__cost_labels *labels);

#endif
