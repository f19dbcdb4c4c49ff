#include "base/sum/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/memory/memory.h"

uint64_t ph__checksum(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

void ph__checksum_text(uint64_t checksum, char text_out[PH_CHECKSUM_DIGITS + 1])
{
    snprintf(text_out, PH_CHECKSUM_DIGITS + 1, "%016" PRIx64, checksum);
}

ph_status ph__running_checksum_init(struct ph__running_checksum *checksum)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return ph__out_of_memory("a checksum");
    XXH3_64bits_reset(state);
    *checksum = (struct ph__running_checksum){.state = state};
    return PH_OK;
}

void ph__running_checksum_fini(struct ph__running_checksum *checksum)
{
    XXH3_freeState(checksum->state);
    *checksum = (struct ph__running_checksum){0};
}

void ph__running_checksum_add(
    struct ph__running_checksum *checksum, uint64_t byte, const void *bytes, size_t size)
{
    const uint64_t known = checksum->num_bytes;
    if (checksum->state == NULL || byte > known || size <= known - byte)
        return;
    const size_t skipped = (size_t)(known - byte);
    XXH3_64bits_update(checksum->state, (const unsigned char *)bytes + skipped, size - skipped);
    checksum->num_bytes = byte + size;
}

uint64_t ph__running_checksum_value(const struct ph__running_checksum *checksum)
{
    return XXH3_64bits_digest(checksum->state);
}

/* ---- CRC-32C ---- */

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, its lowest bit first */

uint32_t ph__crc32c(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
    }
    return ~crc;
}
