#include "base/sum/crc32c.h"

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
