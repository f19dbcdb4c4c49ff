/* GMAC over AES-256 (NIST SP 800-38D, section 3: GCM that encrypts nothing) over libcrypto: 16 bytes that only who has the
 * key can make of some bytes and a nonce.
 *
 * Two messages under one key and nonce give the key away: whoever chooses nonces must never repeat one. Nothing is
 * allocated but by create. One thread at a time. */
#ifndef PH_BASE_GMAC_H
#define PH_BASE_GMAC_H

#include <stddef.h>

#include "phloem/status.h"

#define PH_GMAC_KEY_BYTES 32
#define PH_GMAC_NONCE_BYTES 12
#define PH_GMAC_TAG_BYTES 16

struct ph_gmac;

/* The key is copied, and wiped by destroy. */
ph_status ph__gmac_create(const unsigned char key[PH_GMAC_KEY_BYTES], struct ph_gmac **gmac_out);
void ph__gmac_destroy(struct ph_gmac *gmac); /* NULL is fine */

/* Begins a message, whatever was begun before; then its bytes in pieces of any size; then its tag. PH_ERROR_BUG when
 * libcrypto cannot. */
ph_status ph__gmac_begin(struct ph_gmac *gmac, const unsigned char nonce[PH_GMAC_NONCE_BYTES]);
ph_status ph__gmac_add(struct ph_gmac *gmac, const void *bytes, size_t size);
ph_status ph__gmac_finish(struct ph_gmac *gmac, unsigned char tag_out[PH_GMAC_TAG_BYTES]);

#endif
