/* XXH3 over libxxhash. */
#include "base/checksum.h"

#include <xxhash.h>

uint64_t ph__checksum(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
