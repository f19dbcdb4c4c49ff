/* A fast 64-bit checksum, XXH3 over libxxhash: finds damage, not malice (that is base/digest.h's). The value is the
 * same on every machine and may be kept in files. */
#ifndef PH_BASE_CHECKSUM_H
#define PH_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t ph__checksum(const void *bytes, size_t size);

#endif
