#include "base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

ph_status ph__mapped_file_open(const char *path, ph_status error_status, struct ph_mapped_file *file_out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(error_status, "%s: cannot open: %s", path, strerror(errno));
    struct stat status;
    struct ph_mapped_file file = {0};
    bool is_fine = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (is_fine && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
        is_fine = bytes != MAP_FAILED;
        if (is_fine)
            file = (struct ph_mapped_file){bytes, (size_t)status.st_size};
    }
    close(descriptor);
    if (!is_fine)
        return ph_fail(error_status, "%s: cannot be mapped: it is no regular file, or memory is short", path);
    *file_out = file;
    return PH_OK;
}

void ph__mapped_file_close(struct ph_mapped_file *file)
{
    if (file->bytes != NULL)
        munmap((void *)file->bytes, file->size);
    *file = (struct ph_mapped_file){0};
}
