/* GMAC by the cipher's interface with authenticated bytes only, not by EVP_MAC: the cipher's context takes a
 * new nonce directly, without a list of parameters for each message. */
#include "base/sum/digest.h"

#include <stdbool.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/sizes.h"

#define MAX_PIECE_BYTES ((size_t)1 << 30) /* libcrypto takes an int */

struct ph__gmac {
    EVP_CIPHER_CTX *context;
};

static bool set_key(struct ph__gmac *gmac, const unsigned char *key)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    const bool is_set = cipher != NULL && EVP_EncryptInit_ex2(gmac->context, cipher, key, NULL, NULL) == 1;
    EVP_CIPHER_free(cipher); /* the context has its own reference */
    return is_set;
}

ph_status ph__gmac_create(const unsigned char key[PH_GMAC_KEY_BYTES], struct ph__gmac **gmac_out)
{
    struct ph__gmac *gmac = calloc(1, sizeof *gmac);
    if (gmac != NULL)
        gmac->context = EVP_CIPHER_CTX_new();
    if (gmac == NULL || gmac->context == NULL || !set_key(gmac, key)) {
        ph__gmac_destroy(gmac);
        return ph_fail(PH_ERROR_MEMORY, "cannot set the key of a GMAC");
    }
    *gmac_out = gmac;
    return PH_OK;
}

void ph__gmac_destroy(struct ph__gmac *gmac)
{
    if (gmac == NULL)
        return;
    EVP_CIPHER_CTX_free(gmac->context); /* which wipes it */
    free(gmac);
}

ph_status ph__gmac_begin(struct ph__gmac *gmac, const unsigned char nonce[PH_GMAC_NONCE_BYTES])
{
    if (EVP_EncryptInit_ex2(gmac->context, NULL, NULL, nonce, NULL) != 1)
        return ph_fail(PH_ERROR_BUG, "cannot begin a GMAC");
    return PH_OK;
}

ph_status ph__gmac_add(struct ph__gmac *gmac, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const size_t piece = ph__min(size, MAX_PIECE_BYTES);
        int length = 0;
        if (EVP_EncryptUpdate(gmac->context, NULL, &length, at, (int)piece) != 1)
            return ph_fail(PH_ERROR_BUG, "cannot add bytes to a GMAC");
        at += piece;
        size -= piece;
    }
    return PH_OK;
}

ph_status ph__gmac_finish(struct ph__gmac *gmac, unsigned char tag_out[PH_GMAC_TAG_BYTES])
{
    unsigned char nothing[EVP_MAX_BLOCK_LENGTH];
    int length = 0;
    if (EVP_EncryptFinal_ex(gmac->context, nothing, &length) != 1 ||
        EVP_CIPHER_CTX_ctrl(gmac->context, EVP_CTRL_AEAD_GET_TAG, PH_GMAC_TAG_BYTES, tag_out) != 1)
        return ph_fail(PH_ERROR_BUG, "cannot finish a GMAC");
    return PH_OK;
}
