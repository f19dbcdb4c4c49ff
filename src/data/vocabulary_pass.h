/* The one pass over the training file that builds the vocabularies. */
#ifndef PH_DATA_VOCABULARY_PASS_H
#define PH_DATA_VOCABULARY_PASS_H

#include "base/stream.h"
#include "data/encoder.h"

/* Reads the rest of the file behind its header, counts the ids of every vocabulary column and the rows, and
 * drops the rare ids. The encoder's columns are the file's, in order. Errors: PH_ERROR_DATA with file:line.
 */
ph_status ph__vocabulary_pass(struct ph_encoder *encoder, struct ph_reader *reader);

/* The errors that every pass over rows shares. */
ph_status ph__fail_num_columns(const struct ph_reader *reader, size_t found, size_t wanted);
ph_status ph__fail_quote(const struct ph_reader *reader, const char *name);

#endif
