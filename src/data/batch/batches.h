/* Batches that record how far their files were read, beside phloem/data.h. */
#ifndef PH_DATA_BATCHES_H
#define PH_DATA_BATCHES_H

#include "data/source/fingerprint.h"
#include "phloem/data.h"

/* Opens batches as ph_batches_open does, and carries on a fingerprint of the path's files (fingerprint.h);
 * NULL: none. The fingerprint is borrowed until close; while batches are prefetched it belongs to the
 * prefetch thread. */
ph_status ph__batches_open_fingerprinted(const struct ph_encoder *encoder, const char *path,
    struct ph__fingerprint *fingerprint, const struct ph_batches_options *options,
    struct ph_batches **batches_out);

/* Gives how far the files had been read for the batch returned last, or for the end. */
void ph__batches_read_place(const struct ph_batches *batches, struct ph__read_place *place_out);

#endif
