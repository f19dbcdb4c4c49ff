/* The manifest of a split of a prepared data set: its parts and their totals. A sealed JSON file
 * (base/format/seal.h), written when all parts are there: a folder without a manifest is not finished. */
#ifndef PH_DATA_PREPARED_MANIFEST_H
#define PH_DATA_PREPARED_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/sum/digest.h"
#include "phloem/status.h"

#define PH_PART_NAME_BYTES 32

struct ph__manifest_part {
    char name[PH_PART_NAME_BYTES]; /* file's name in the manifest's folder */
    uint64_t num_rows, num_words, num_bytes;
    char checksum[17]; /* checksum of the footer, which stands for the whole part: 16 hexadecimal digits */
};

struct ph__manifest {
    char encoder[65];                                      /* seal of the encoder's file */
    uint64_t num_rows, num_words, num_bad_rows, num_bytes; /* num_bytes: size of all parts */
    struct ph__manifest_part *parts;
    size_t num_parts;
};

ph_status ph__manifest_write(const struct ph__manifest *manifest, const char *path);

/* Reads a manifest. PH_ERROR_DATA naming the path when the file is missing, damaged or of another version. */
ph_status ph__manifest_read(const char *path, struct ph__manifest *manifest_out);
void ph__manifest_fini(struct ph__manifest *manifest);

#endif
