/* HMAC-SHA-256 (RFC 2104, FIPS 180-4) over libcrypto, and the comparison that goes with it. Any thread. */
#ifndef PH_BASE_HMAC_H
#define PH_BASE_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

#define PH_HMAC_BYTES 32

/* PH_ERROR_MEMORY when libcrypto cannot. */
ph_status ph__hmac_sha256(
    const void *key, size_t key_size, const void *bytes, size_t size, unsigned char sum_out[PH_HMAC_BYTES]);

/* In a time that does not tell where they differ. */
bool ph__secrets_are_equal(const void *a, const void *b, size_t size);

#endif
