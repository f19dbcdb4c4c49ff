#include "net/frame_key.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sum/digest.h"
#include "net/wire.h"

static_assert(PH_GMAC_KEY_BYTES == PH_CONNECTION_KEY_BYTES, "a connection's key is a GMAC's");

struct ph__frame_key {
    struct ph__gmac *gmac;
    uint64_t num_frames; /* begun so far; never 2^64 in the life of a connection */
    bool is_spent;       /* a tag was wrong */
};

ph_status ph__frame_key_create(
    const unsigned char bytes[PH_CONNECTION_KEY_BYTES], struct ph__frame_key **key_out)
{
    struct ph__frame_key *key = calloc(1, sizeof *key);
    if (key == NULL)
        return ph__out_of_memory("the key of a connection");
    const ph_status status = ph__gmac_create(bytes, &key->gmac);
    if (status != PH_OK) {
        free(key);
        return status;
    }
    *key_out = key;
    return PH_OK;
}

void ph__frame_key_destroy(struct ph__frame_key *key)
{
    if (key == NULL)
        return;
    ph__gmac_destroy(key->gmac);
    free(key);
}

ph_status ph__frame_begin(struct ph__frame_key *key, const void *header, size_t size)
{
    assert(size <= UINT32_MAX);
    unsigned char nonce[PH_GMAC_NONCE_BYTES];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, nonce, sizeof nonce);
    ph__wire_put_u64(&writer, key->num_frames++);
    ph__wire_put_u32(&writer, (uint32_t)size);
    PH_TRY(ph__gmac_begin(key->gmac, nonce));
    return ph__gmac_add(key->gmac, header, size);
}

ph_status ph__frame_add(struct ph__frame_key *key, const void *payload, size_t size)
{
    return ph__gmac_add(key->gmac, payload, size);
}

static ph_status finish(struct ph__frame_key *key, unsigned char tag_out[PH_FRAME_TAG_BYTES])
{
    unsigned char tag[PH_GMAC_TAG_BYTES];
    PH_TRY(ph__gmac_finish(key->gmac, tag));
    memcpy(tag_out, tag, PH_FRAME_TAG_BYTES);
    return PH_OK;
}

ph_status ph__frame_check(
    struct ph__frame_key *key, const unsigned char tag[PH_FRAME_TAG_BYTES], const char *peer)
{
    unsigned char wanted[PH_FRAME_TAG_BYTES];
    PH_TRY(finish(key, wanted));
    if (key->is_spent || !ph__secrets_are_equal(wanted, tag, sizeof wanted)) {
        key->is_spent = true;
        return ph_fail(PH_ERROR_PEER,
            "%s: frame %" PRIu64 " was changed on its way, or is not of this connection", peer,
            key->num_frames);
    }
    return PH_OK;
}

ph_status ph__frame_mac(struct ph__frame_key *key, const void *header, size_t header_size,
    const void *payload, size_t payload_size, unsigned char tag_out[PH_FRAME_TAG_BYTES])
{
    PH_TRY(ph__frame_begin(key, header, header_size));
    PH_TRY(ph__frame_add(key, payload, payload_size));
    return finish(key, tag_out);
}
