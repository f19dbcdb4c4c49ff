#include "data/input_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sum/checksum.h"

#define END_BYTES ((size_t)64 << 10)

/* Both ends of the file, which for a small one is all of it, into a buffer of 2 END_BYTES. */
static ph_status read_ends(
    int descriptor, const char *path, uint64_t num_bytes, unsigned char *buffer, size_t *size_out)
{
    if (num_bytes <= 2 * END_BYTES) {
        *size_out = (size_t)num_bytes;
        return ph__file_read_at(descriptor, path, 0, buffer, *size_out);
    }
    *size_out = 2 * END_BYTES;
    PH_TRY(ph__file_read_at(descriptor, path, 0, buffer, END_BYTES));
    return ph__file_read_at(descriptor, path, num_bytes - END_BYTES, buffer + END_BYTES, END_BYTES);
}

ph_status ph__input_file_look(const char *path, struct ph__input_file *file_out)
{
    int descriptor;
    size_t size = 0;
    struct ph__input_file file = {.path = path};
    unsigned char *buffer = malloc(2 * END_BYTES);
    if (buffer == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to look at it", path);
    ph_status status = ph__file_open(path, &descriptor, &file.num_bytes);
    if (status == PH_OK) {
        status = read_ends(descriptor, path, file.num_bytes, buffer, &size);
        close(descriptor);
    }
    if (status == PH_OK) {
        ph__checksum_text(ph__checksum(buffer, size), file.checksum);
        *file_out = file;
    }
    free(buffer);
    return status;
}

ph_status ph__input_file_compare(
    const struct ph__input_file *now, const struct ph__input_file *before, const char *since)
{
    if (before->num_bytes != now->num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: had %" PRIu64 " bytes when %s and has %" PRIu64, now->path,
            before->num_bytes, since, now->num_bytes);
    if (strcmp(before->checksum, now->checksum) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: its bytes are others than when %s", now->path, since);
    return PH_OK;
}
