/* The first pass over the training data, part by part: bounded in memory, parallel, and resumed after a
 * crash.
 *
 * A part is a stretch of lines of one file. Each part leaves files PREFIX-000.fit, -001 …, in the order of
 * its rows, the last one marked; the files of all parts in order make the encoder (fit_file.h). Any number of
 * threads may learn parts at once, each part by one thread. */
#ifndef PH_DATA_LEARN_H
#define PH_DATA_LEARN_H

#include "data/learn/fit_file.h"
#include "data/source/source.h"

/* Makes an encoder with known columns that has learnt nothing yet, and cannot encode (encoder_create.c).
 * Errors are ph_encoder_create's. */
ph_status ph__encoder_outline(const struct ph_data_settings *settings, struct ph_encoder **encoder_out);

struct ph__learn_part {
    const char *path;                        /* files, as ph__source_open takes them */
    const struct ph__source_position *start; /* file and byte; NULL: the beginning */
    uint64_t end_byte;                       /* end of the part; 0: the file's end */
    const char *prefix;                      /* prefix of the files that the part leaves */
    uint64_t max_bytes;                      /* memory for ids; a file is written when it is reached */
    uint64_t max_bad_rows;
    /* NULL, or called now and then with the rows and bytes read since the last call; false ends the learning
     * with PH_ERROR_INTERRUPTED */
    bool (*advance)(void *argument, uint64_t num_rows, uint64_t num_bytes);
    void *advance_argument;
};

/* Learns one part, unless whole files of the part are there. summary_out: rows and bad rows of the part. */
ph_status ph__learn_part(
    const struct ph_encoder *encoder, const struct ph__learn_part *part, struct ph__fit_summary *summary_out);

/* Makes the encoder's vocabularies, statistics and boundaries from the files of the parts, in order. `path`
 * names the data in errors; PH_ERROR_DATA when the data has no rows. */
ph_status ph__learn_finish(const char *path, const char *const *prefixes, size_t num_parts,
    uint64_t max_bytes, struct ph_encoder *encoder);

#endif
