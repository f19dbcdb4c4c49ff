/* A shuffled pass over prepared data in lanes, so that each of many ranks decodes only some of the blocks.
 *
 * The blocks, permuted by (seed, epoch), are dealt to the lanes in turn; each lane is shuffled within a window of its own
 * (window.h), of shuffle_bytes / lanes. A batch of n rows takes from lane l of L as many as there are in
 * [n l / L, n (l + 1) / L), and has them in the order of the lanes: where L is a multiple of the world's size, a rank's part
 * of the batch lies in lanes that are its own. When a lane cannot give its part, what is missing is dealt to the others in
 * the same way. All of that follows from the blocks' numbers of rows: whoever knows how many batches there were knows how
 * many rows each lane has left, and nobody reads a lane that it takes nothing from. Where negatives are left out the labels of
 * all blocks are read first, to count the rows that take part. One thread at a time. */
#ifndef PH_DATA_LANES_H
#define PH_DATA_LANES_H

#include "data/batch/window.h"

struct ph__lane {
    struct ph__window window;
    uint64_t num_rows, num_left;
    size_t share; /* of the batch that is being dealt */
};

struct ph__lanes {
    struct ph__prepared_source blocks; /* of all lanes, each lane's one after the other */
    struct ph__lane *lanes;
    size_t num_lanes;
    uint64_t num_left; /* of all lanes */
    const uint32_t **taken;
    size_t taken_capacity;
};

/* options->shuffle_lanes of them, but no more than there are blocks or rows in a batch. Behind num_given rows, of which all
 * batches but the last were full; PH_ERROR_DATA when there are fewer. Folder and options are borrowed during the call. To be
 * closed also on failure. */
ph_status ph__lanes_open(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options, uint64_t num_given);
void ph__lanes_close(struct ph__lanes *lanes);

/* Goes over a batch of num_rows rows, at most num_left, and gives rows first to end - 1 of it: borrowed until the next call. */
ph_status ph__lanes_take(
    struct ph__lanes *lanes, size_t num_rows, size_t first, size_t end, const uint32_t *const **rows_out);

#endif
