/* Checksums: a fast one of 64 bits, XXH3 over libxxhash, and CRC-32C. They find damage, not malice
 * (base/sum/digest.h does). The values are the same on every machine and may be kept in files. */
#ifndef PH_BASE_CHECKSUM_H
#define PH_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_CHECKSUM_DIGITS 16

uint64_t ph__checksum(const void *bytes, size_t size);
/* Writes the checksum as hexadecimal digits. */
void ph__checksum_text(uint64_t checksum, char text_out[PH_CHECKSUM_DIGITS + 1]);

/* Checksum of a file's first bytes, which grows while the bytes are read in pieces. Equals ph__checksum of
 * all of them at once. One thread at a time. */
struct ph__running_checksum { /* zero-initialised: ignores all bytes; may be fini'ed */
    uint64_t num_bytes;       /* length of the file's start that the checksum covers */
    void *state;              /* libxxhash's; NULL: ignores all bytes */
};

ph_status ph__running_checksum_init(struct ph__running_checksum *checksum); /* of no bytes; PH_ERROR_MEMORY */
void ph__running_checksum_fini(struct ph__running_checksum *checksum);

/* Adds the file's bytes from offset `byte` on, as far as they lie behind num_bytes. Ignores bytes that would
 * leave a gap. */
void ph__running_checksum_add(
    struct ph__running_checksum *checksum, uint64_t byte, const void *bytes, size_t size);
uint64_t ph__running_checksum_value(const struct ph__running_checksum *checksum); /* needs a state */

/* ---- CRC-32C ---- */

/* Returns the CRC-32C (Castagnoli, RFC 3720). Computes a bit at a time: for small records, not for data. */

uint32_t ph__crc32c(const void *bytes, size_t size);

#endif
