#include "base/sum/random_bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

ph_status ph__random_bytes(void *bytes_out, size_t size)
{
    unsigned char *at = bytes_out;
    while (size > 0) {
        const ssize_t count = getrandom(at, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_BUG, "cannot read random bytes of the system: %s", strerror(errno));
        at += count;
        size -= (size_t)count;
    }
    return PH_OK;
}
