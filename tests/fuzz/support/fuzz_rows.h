/* Targets that read rows: a file of any bytes, by one of a few schemas, through an encoder into batches. */
#ifndef PH_FUZZ_ROWS_H
#define PH_FUZZ_ROWS_H

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "phloem/data.h"
#include "support/fuzz_support.h"

/* The "data" section of a config in YAML, read when it is first used, and what the encoder learns from. */
struct fuzz_schema {
    const char *yaml;
    const char
        *train; /* a text of which one encoder is made for all inputs; NULL: one of each input, by itself */
    struct ph_encoder *encoder; /* of `train`; NULL: not made yet */
    struct ph_data_settings settings;
    struct ph__arena arena; /* of the settings; empty: not read yet */
};

/* Reads a file into batches. `choice` is the schema (its lowest three bits) and how it is read (the others:
 * batch size, order, labels needed or not, bad rows left out or not). */
void fuzz_rows_of(struct fuzz_schema *schemas, size_t num_schemas, unsigned choice, const char *path);

/* The same for an input whose first byte is the choice and whose rest is the file. */
void fuzz_rows(struct fuzz_schema *schemas, size_t num_schemas, const uint8_t *data, size_t size);

/* The schema's settings with `path` as their training file; borrowed until the next call. */
const struct ph_data_settings *fuzz_settings(struct fuzz_schema *schema, const char *path);

/* All batches until an error or the end: what is refused is fine, what is given must be in range. */
void fuzz_check_batches(
    const struct ph_encoder *encoder, struct ph_batches *batches, const struct ph_batches_options *options);

/* That the ids of one batch lie as its lengths say, within their tables. */
void fuzz_check_ids(const struct ph_encoder *encoder, const struct ph_batch *batch);

/* The same for all batches that the encoder makes of a file. */
void fuzz_read_batches(
    const struct ph_encoder *encoder, const char *path, const struct ph_batches_options *options);

#endif
