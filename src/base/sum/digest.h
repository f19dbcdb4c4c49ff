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
/* One of the two, once. */
ph_status ph__digest_finish(struct ph__digest *digest, char hex_out[65]);
ph_status ph__digest_finish_bytes(struct ph__digest *digest, unsigned char sum_out[PH_DIGEST_BYTES]);
ph_status ph__digest_file(const char *path, char hex_out[65]); /* PH_ERROR_DATA naming the path */
void ph__digest_destroy(struct ph__digest *digest);

/* ---- HMAC ---- */

/* HMAC-SHA-256 (RFC 2104, FIPS 180-4), and the comparison that goes with it. Any thread. */

#define PH_HMAC_BYTES 32

/* PH_ERROR_MEMORY when libcrypto cannot. */
ph_status ph__hmac_sha256(
    const void *key, size_t key_size, const void *bytes, size_t size, unsigned char sum_out[PH_HMAC_BYTES]);

/* In a time that does not tell where they differ. */
bool ph__secrets_are_equal(const void *a, const void *b, size_t size);

/* ---- GMAC (gmac.c) ---- */

/* GMAC over AES-256 (NIST SP 800-38D, section 3: GCM that encrypts nothing): 16 bytes that only who has the
 * key can make of some bytes and a nonce.
 *
 * Two messages under one key and nonce give the key away: whoever chooses nonces must never repeat one.
 * Nothing is allocated but by create. One thread at a time. */

#define PH_GMAC_KEY_BYTES 32
#define PH_GMAC_NONCE_BYTES 12
#define PH_GMAC_TAG_BYTES 16

struct ph__gmac;

/* The key is copied, and wiped by destroy. */
ph_status ph__gmac_create(const unsigned char key[PH_GMAC_KEY_BYTES], struct ph__gmac **gmac_out);
void ph__gmac_destroy(struct ph__gmac *gmac); /* NULL is fine */

/* Begins a message, whatever was begun before; then its bytes in pieces of any size; then its tag.
 * PH_ERROR_BUG when libcrypto cannot. */
ph_status ph__gmac_begin(struct ph__gmac *gmac, const unsigned char nonce[PH_GMAC_NONCE_BYTES]);
ph_status ph__gmac_add(struct ph__gmac *gmac, const void *bytes, size_t size);
ph_status ph__gmac_finish(struct ph__gmac *gmac, unsigned char tag_out[PH_GMAC_TAG_BYTES]);

#endif
