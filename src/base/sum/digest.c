/* SHA-256 and HMAC-SHA-256 over libcrypto's EVP interface. */
#include "base/sum/digest.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ph__digest {
    EVP_MD_CTX *context;
};

ph_status ph__digest_create(struct ph__digest **digest_out)
{
    struct ph__digest *digest = calloc(1, sizeof *digest);
    if (digest != NULL)
        digest->context = EVP_MD_CTX_new();
    if (digest == NULL || digest->context == NULL ||
        EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) != 1) {
        ph__digest_destroy(digest);
        return ph_fail(PH_ERROR_MEMORY, "cannot begin a SHA-256 sum");
    }
    *digest_out = digest;
    return PH_OK;
}

ph_status ph__digest_update(struct ph__digest *digest, const void *bytes, size_t size)
{
    if (EVP_DigestUpdate(digest->context, bytes, size) != 1)
        return ph_fail(PH_ERROR_BUG, "cannot add bytes to a SHA-256 sum");
    return PH_OK;
}

ph_status ph__digest_finish_bytes(struct ph__digest *digest, unsigned char sum_out[PH_DIGEST_BYTES])
{
    unsigned length = 0;
    if (EVP_DigestFinal_ex(digest->context, sum_out, &length) != 1 || length != PH_DIGEST_BYTES)
        return ph_fail(PH_ERROR_BUG, "cannot finish a SHA-256 sum");
    return PH_OK;
}

ph_status ph__digest_finish(struct ph__digest *digest, char hex_out[65])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[PH_DIGEST_BYTES];
    PH_TRY(ph__digest_finish_bytes(digest, bytes));
    for (size_t i = 0; i < PH_DIGEST_BYTES; i++) {
        hex_out[2 * i] = hex[bytes[i] >> 4];
        hex_out[2 * i + 1] = hex[bytes[i] & 15];
    }
    hex_out[2 * PH_DIGEST_BYTES] = '\0';
    return PH_OK;
}

static ph_status update_from(struct ph__digest *digest, FILE *file, const char *path)
{
    char block[1 << 14];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)) > 0)
        PH_TRY(ph__digest_update(digest, block, size));
    return ferror(file) ? ph_fail(PH_ERROR_DATA, "%s: cannot read: %s", path, strerror(errno)) : PH_OK;
}

ph_status ph__digest_file(const char *path, char hex_out[65])
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: cannot open: %s", path, strerror(errno));
    struct ph__digest *digest = NULL;
    ph_status status = ph__digest_create(&digest);
    if (status == PH_OK)
        status = update_from(digest, file, path);
    if (status == PH_OK)
        status = ph__digest_finish(digest, hex_out);
    ph__digest_destroy(digest);
    fclose(file);
    return status;
}

void ph__digest_destroy(struct ph__digest *digest)
{
    if (digest == NULL)
        return;
    EVP_MD_CTX_free(digest->context);
    free(digest);
}

/* ---- HMAC ---- */

ph_status ph__hmac_sha256(
    const void *key, size_t key_size, const void *bytes, size_t size, unsigned char sum_out[PH_HMAC_BYTES])
{
    assert(key_size <= INT_MAX);
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key, (int)key_size, bytes, size, sum_out, &length) == NULL ||
        length != PH_HMAC_BYTES)
        return ph_fail(PH_ERROR_MEMORY, "cannot compute an HMAC-SHA-256");
    return PH_OK;
}

bool ph__secrets_are_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}
