/* The first pass over the training data, part by part: bounded in memory, parallel, and taken up again after
 * a crash.
 *
 * A part is a stretch of lines of one file. Each leaves files PREFIX-000.fit, -001 …, the last of them
 * marked, in the order of its rows; the files of all parts in order make the encoder (fit_file.h). Parts may
 * be learnt by any number of threads at once, each call by one. */
#ifndef PH_DATA_LEARN_H
#define PH_DATA_LEARN_H

#include "data/learn/fit_file.h"
#include "data/source/source.h"

/* Makes an encoder whose columns are known and that has learnt nothing yet: not for encoding
 * (encoder_create.c). Errors as ph_encoder_create. */
ph_status ph__encoder_outline(const struct ph_data_settings *settings, struct ph_encoder **encoder_out);

struct ph__learn_part {
    const char *path;                        /* the files, as ph__source_open takes them */
    const struct ph__source_position *start; /* file and byte; NULL: the beginning */
    uint64_t end_byte;                       /* 0: to the file's end */
    const char *prefix;                      /* of the files that it leaves */
    uint64_t max_bytes;                      /* of memory for ids; a file is written when it is reached */
    uint64_t max_bad_rows;
    /* NULL, or told now and then what was read since; false ends the learning with PH_ERROR_INTERRUPTED */
    bool (*advance)(void *argument, uint64_t num_rows, uint64_t num_bytes);
    void *advance_argument;
};

/* Learns one part, unless whole files say that it has been. summary_out: rows and bad rows of the part. */
ph_status ph__learn_part(
    const struct ph_encoder *encoder, const struct ph__learn_part *part, struct ph__fit_summary *summary_out);

/* Makes the encoder's vocabularies, statistics and boundaries of what the parts, in order, have left. The
 * path names the data in errors; that it has no rows is PH_ERROR_DATA. */
ph_status ph__learn_finish(const char *path, const char *const *prefixes, size_t num_parts,
    uint64_t max_bytes, struct ph_encoder *encoder);

#endif
