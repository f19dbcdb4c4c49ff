#include "base/file/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ph_status map(int descriptor, const char *path, size_t size, struct ph_mapped_file *file)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED)
        return ph_fail(PH_ERROR_MEMORY, "%s: cannot be mapped: %s", path, strerror(errno));
    *file = (struct ph_mapped_file){bytes, size};
    return PH_OK;
}

ph_status ph__mapped_file_open(const char *path, ph_status error_status, struct ph_mapped_file *file_out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(error_status, "%s: cannot open: %s", path, strerror(errno));
    struct stat status;
    struct ph_mapped_file file = {0};
    ph_status result = PH_OK;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        result = ph_fail(error_status, "%s: is no regular file", path);
    else if (status.st_size > 0)
        result = map(descriptor, path, (size_t)status.st_size, &file);
    close(descriptor);
    if (result == PH_OK)
        *file_out = file;
    return result;
}

void ph__mapped_file_close(struct ph_mapped_file *file)
{
    if (file->bytes != NULL)
        munmap((void *)file->bytes, file->size);
    *file = (struct ph_mapped_file){0};
}
