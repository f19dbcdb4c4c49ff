/* Batches by where their rows come from, beside phloem/data.h. */
#ifndef PH_DATA_BATCHES_H
#define PH_DATA_BATCHES_H

#include "data/source/fingerprint.h"
#include "phloem/data.h"

struct ph__shared_batches;

/* Origin of rows. path and dataset NULL: there are none. */
struct ph__rows_origin {
    const char *path;
    const struct ph_dataset *dataset;    /* takes precedence over the path */
    struct ph__fingerprint *fingerprint; /* of the path's files, updated while they are read; NULL: none */
    /* NULL, or what several ranks of this process take the path's rows from (shared_batches.h) */
    struct ph__shared_batches *shared;
};

/* Opens batches as ph_batches_open does. What the origin has is borrowed until close; while batches are
 * prefetched the fingerprint belongs to the prefetch thread. Shared batches are not prefetched, and leave the
 * fingerprint as it is. A dataset without a path is named by its own name. */
ph_status ph__batches_open(const struct ph_encoder *encoder, const struct ph__rows_origin *origin,
    const struct ph_batches_options *options, struct ph_batches **batches_out);

/* Gives how far the files had been read for the batch returned last, or for the end. */
void ph__batches_read_place(const struct ph_batches *batches, struct ph__read_place *place_out);

#endif
