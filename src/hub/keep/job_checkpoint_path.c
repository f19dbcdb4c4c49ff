/* Where a service's checkpoint lies: see job_checkpoint.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sum/checksum.h"
#include "hub/keep/job_checkpoint.h"

#define MAX_NAME_BYTES 200 /* before the ending: file systems have 255 in all */
#define CUT_BYTES 160

static bool is_plain(const char *name, size_t i)
{
    const unsigned char byte = (unsigned char)name[i];
    return byte > ' ' && byte != 0x7f && byte != '/' && byte != '%' && byte != '~' && (byte != '.' || i > 0);
}

static void escape(const char *name, char escaped_out[3 * PH_HUB_MAX_NAME + 1])
{
    char *next = escaped_out;
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (is_plain(name, i))
            *next++ = name[i];
        else
            next += sprintf(next, "%%%02x", (unsigned char)name[i]);
    }
    *next = '\0';
}

ph_status ph__job_checkpoint_path(const char *folder, const char *service, char **path_out)
{
    char escaped[3 * PH_HUB_MAX_NAME + 1], sum[18] = "";
    escape(service, escaped);
    if (strlen(escaped) > MAX_NAME_BYTES) {
        snprintf(sum, sizeof sum, "~%016llx", (unsigned long long)ph__checksum(service, strlen(service)));
        escaped[CUT_BYTES] = '\0';
    }
    if (asprintf(path_out, "%s/%s%s" PH_CHECKPOINT_ENDING, folder, escaped, sum) < 0)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: the path of a checkpoint");
    return PH_OK;
}

ph_status ph__job_checkpoint_remove(const char *path)
{
    if (unlink(path) == 0)
        return ph__file_sync_name(path);
    return errno == ENOENT ? PH_OK : ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
}
