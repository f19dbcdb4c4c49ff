/* Checksums: a fast one of 64 bits, XXH3 over libxxhash, and CRC-32C. They find damage, not malice
 * (base/sum/digest.h does). The values are the same on every machine and may be kept in files. */
#ifndef PH_BASE_CHECKSUM_H
#define PH_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

uint64_t ph__checksum(const void *bytes, size_t size);
/* Writes it as 16 hexadecimal digits. */
void ph__checksum_text(uint64_t checksum, char text_out[17]);

/* The checksum of a file's first bytes, which grows while they are read in pieces: ph__checksum of them all
 * at once. One thread at a time. */
struct ph__running_checksum { /* zero-initialised takes nothing in, and may be fini'ed */
    uint64_t num_bytes;       /* the first bytes of the file that are in it */
    void *state;              /* of libxxhash; NULL: nothing more is taken in */
};

ph_status ph__running_checksum_init(struct ph__running_checksum *checksum); /* of no bytes; PH_ERROR_MEMORY */
void ph__running_checksum_fini(struct ph__running_checksum *checksum);

/* Takes in what is new among the file's bytes from `byte` on: those behind num_bytes. Bytes that leave a gap
 * to them are not taken. */
void ph__running_checksum_add(
    struct ph__running_checksum *checksum, uint64_t byte, const void *bytes, size_t size);
uint64_t ph__running_checksum_value(
    const struct ph__running_checksum *checksum); /* of one that has a state */

/* ---- CRC-32C ---- */

/* CRC-32C (Castagnoli), as RFC 3720 defines it, a bit at a time: for small records, not for data. */

uint32_t ph__crc32c(const void *bytes, size_t size);

#endif
