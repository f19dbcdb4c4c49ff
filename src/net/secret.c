#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define NOT_OWNER (S_IRWXG | S_IRWXO)

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
    if (status.st_size > PH_SECRET_MAX_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: a secret of more than %d bytes", path, PH_SECRET_MAX_BYTES);
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

static ph_status read_secret(int descriptor, const char *path, struct ph_secret *secret)
{
    PH_TRY(check_file(descriptor, path, &secret->size));
    if (ph__file_read_at(descriptor, path, 0, secret->bytes, secret->size) != PH_OK)
        return ph_fail(PH_ERROR_CONFIG, "%s", ph_error_text());
    secret->size = without_line_end(secret->bytes, secret->size);
    if (secret->size < PH_SECRET_MIN_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: a secret of %zu bytes: it needs %d or more", path, secret->size,
            PH_SECRET_MIN_BYTES);
    return PH_OK;
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
