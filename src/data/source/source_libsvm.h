/* Rows of libsvm and libffm: a label, then id:value pairs (libsvm) or field:id:value triples (libffm),
 * separated by blanks. A '#' begins a comment.
 *
 * All ids of a libsvm row are one weighted list, the encoder's column "features". A libffm field is a
 * weighted list of its own, named by its number. Labels -1 and +1 are 0 and 1. A source over a file, or a
 * serving program, matches once and then encodes line by line. */
#ifndef PH_DATA_SOURCE_LIBSVM_H
#define PH_DATA_SOURCE_LIBSVM_H

#include "data/encode/row_encoder.h"

/* Columns that the words of a line go to. */
struct ph__libsvm { /* zero-initialised is empty */
    const struct ph_encoder *encoder;
    const struct ph__column *label, *features; /* NULL: ignored */
    const struct ph__column **fields;          /* (num_fields) libffm, by number */
    size_t num_fields;
};

/* Matches the encoder's columns. PH_ERROR_DATA naming a field for which the encoder expects something other
 * than such rows have. Free the match also on failure. */
ph_status ph__libsvm_match(struct ph__libsvm *libsvm, const struct ph_encoder *encoder);
void ph__libsvm_fini(struct ph__libsvm *libsvm);

/* Returns true when a line holds nothing but a comment: such a line is not a row. */
bool ph__libsvm_is_comment(const char *line, size_t length);

/* Gives the words of a NUL-terminated line to a row that has begun; the line must stay until the row's
 * commit. PH_ERROR_DATA naming the problem without a place, also when the label is missing and needed. */
ph_status ph__libsvm_encode(
    const struct ph__libsvm *libsvm, struct ph__row_encoder *row, const char *line, bool needs_no_labels);

#endif
