/* Batches whose reading is recorded, beside what phloem/data.h says of them. */
#ifndef PH_DATA_BATCHES_H
#define PH_DATA_BATCHES_H

#include "data/source/fingerprint.h"
#include "phloem/data.h"

/* ph_batches_open with a fingerprint of the path's files (fingerprint.h), which the batches' reading carries
 * on; NULL: none. It is borrowed until close, and another thread's meanwhile where batches are prefetched. */
ph_status ph__batches_open_fingerprinted(const struct ph_encoder *encoder, const char *path,
    struct ph__fingerprint *fingerprint, const struct ph_batches_options *options,
    struct ph_batches **batches_out);

/* How far files had been read for the batch that was returned last, or for the end. */
void ph__batches_read_place(const struct ph_batches *batches, struct ph__read_place *place_out);

#endif
