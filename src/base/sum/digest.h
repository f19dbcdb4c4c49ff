/* SHA-256, HMAC-SHA-256 and GMAC, over libcrypto. */
#ifndef PH_BASE_DIGEST_H
#define PH_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

#define PH_DIGEST_BYTES 32

struct ph__digest;

ph_status ph__digest_create(struct ph__digest **digest_out);
ph_status ph__digest_update(struct ph__digest *digest, const void *bytes, size_t size);
/* Finishes the sum, as digits or bytes; only once. */
ph_status ph__digest_finish(struct ph__digest *digest, char hex_out[65]);
ph_status ph__digest_finish_bytes(struct ph__digest *digest, unsigned char sum_out[PH_DIGEST_BYTES]);
ph_status ph__digest_file(const char *path, char hex_out[65]); /* PH_ERROR_DATA naming the path */
void ph__digest_destroy(struct ph__digest *digest);

/* ---- HMAC ---- */

/* HMAC-SHA-256 (RFC 2104, FIPS 180-4), and the comparison of such sums. Any thread. */

#define PH_HMAC_BYTES 32

/* Computes an HMAC-SHA-256. PH_ERROR_MEMORY when libcrypto fails. */
ph_status ph__hmac_sha256(
    const void *key, size_t key_size, const void *bytes, size_t size, unsigned char sum_out[PH_HMAC_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool ph__secrets_are_equal(const void *a, const void *b, size_t size);

/* ---- GMAC (gmac.c) ---- */

/* GMAC over AES-256 (NIST SP 800-38D, section 3: GCM without encryption): 16 bytes from a message and a nonce
 * that only an owner of the key can compute.
 *
 * Two messages under one key and nonce reveal the key: never repeat a nonce. Only create allocates. One
 * thread at a time. */

#define PH_GMAC_KEY_BYTES 32
#define PH_GMAC_NONCE_BYTES 12
#define PH_GMAC_TAG_BYTES 16

struct ph__gmac;

/* Copies the key; destroy wipes it. */
ph_status ph__gmac_create(const unsigned char key[PH_GMAC_KEY_BYTES], struct ph__gmac **gmac_out);
void ph__gmac_destroy(struct ph__gmac *gmac); /* NULL is fine */

/* Begins a message, discarding an unfinished one; add takes its bytes in pieces of any size; finish gives its
 * tag. PH_ERROR_BUG when libcrypto fails. */
ph_status ph__gmac_begin(struct ph__gmac *gmac, const unsigned char nonce[PH_GMAC_NONCE_BYTES]);
ph_status ph__gmac_add(struct ph__gmac *gmac, const void *bytes, size_t size);
ph_status ph__gmac_finish(struct ph__gmac *gmac, unsigned char tag_out[PH_GMAC_TAG_BYTES]);

#endif
