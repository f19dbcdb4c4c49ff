#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sizes.h"

#define NOT_OWNER (S_IRWXG | S_IRWXO)
#define MAX_FILE_BYTES ((size_t)PH_SECRET_MAX_BYTES + 3) /* with a line end, and one byte too many */

/* Asked of the open file, so that nobody can put another one in its place. */
static ph_status check_file(int descriptor, const char *path, size_t *size_out)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return ph_fail(PH_ERROR_CONFIG, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ph_fail(PH_ERROR_CONFIG, "%s: not a file", path);
    if ((status.st_mode & NOT_OWNER) != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: others than its owner may use this secret (mode %03o): chmod 600 it", path,
            (unsigned)status.st_mode & 0777);
    *size_out = (size_t)status.st_size;
    return PH_OK;
}

static size_t without_line_end(const unsigned char *bytes, size_t size)
{
    if (size > 0 && bytes[size - 1] == '\n')
        size--;
    if (size > 0 && bytes[size - 1] == '\r')
        size--;
    return size;
}

static ph_status read_bytes(
    int descriptor, const char *path, unsigned char bytes[MAX_FILE_BYTES], size_t *size_out)
{
    size_t size;
    PH_TRY(check_file(descriptor, path, &size));
    size = ph__min(size, MAX_FILE_BYTES); /* of one that is longer, enough to see that */
    if (ph__file_read_at(descriptor, path, 0, bytes, size) != PH_OK)
        return ph_fail(PH_ERROR_CONFIG, "%s", ph_error_text());
    size = without_line_end(bytes, size);
    if (size > PH_SECRET_MAX_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: a secret of more than %d bytes", path, PH_SECRET_MAX_BYTES);
    if (size < PH_SECRET_MIN_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: a secret of %zu bytes: it needs %d or more", path, size,
            PH_SECRET_MIN_BYTES);
    *size_out = size;
    return PH_OK;
}

static ph_status read_secret(int descriptor, const char *path, struct ph_secret *secret)
{
    unsigned char bytes[MAX_FILE_BYTES];
    const ph_status status = read_bytes(descriptor, path, bytes, &secret->size);
    if (status == PH_OK)
        memcpy(secret->bytes, bytes, secret->size);
    explicit_bzero(bytes, sizeof bytes);
    return status;
}

ph_status ph__secret_read(const char *path, struct ph_secret *secret_out)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
    if (descriptor < 0)
        return ph_fail(PH_ERROR_CONFIG, "%s: cannot open: %s", path, strerror(errno));
    struct ph_secret secret = {0};
    const ph_status status = read_secret(descriptor, path, &secret);
    close(descriptor);
    if (status == PH_OK)
        *secret_out = secret;
    ph__secret_fini(&secret);
    return status;
}

void ph__secret_fini(struct ph_secret *secret)
{
    explicit_bzero(secret, sizeof *secret);
}
