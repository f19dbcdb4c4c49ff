#include "base/sum/hmac.h"

#include <assert.h>
#include <limits.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

ph_status ph__hmac_sha256(
    const void *key, size_t key_size, const void *bytes, size_t size, unsigned char sum_out[PH_HMAC_BYTES])
{
    assert(key_size <= INT_MAX);
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key, (int)key_size, bytes, size, sum_out, &length) == NULL ||
        length != PH_HMAC_BYTES)
        return ph_fail(PH_ERROR_MEMORY, "cannot make an HMAC-SHA-256");
    return PH_OK;
}

bool ph__secrets_are_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}
