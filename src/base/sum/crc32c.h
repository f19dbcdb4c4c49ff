/* CRC-32C (Castagnoli), as RFC 3720 defines it, a bit at a time: for small records, not for data. */
#ifndef PH_BASE_CRC32C_H
#define PH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t ph__crc32c(const void *bytes, size_t size);

#endif
