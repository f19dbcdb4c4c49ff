/* Atomic replacement: a reader sees the former file or the whole new one, also after a crash. A link is made
 * the same way: a temporary name first, then the rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"

ph_status ph__file_cannot_write(const char *path)
{
    if (errno == EISDIR)
        return ph_fail(PH_ERROR_USAGE, "%s: must be a file, not a folder: choose another name", path);
    if (errno == ENOTDIR)
        return ph_fail(
            PH_ERROR_USAGE, "%s: a part of the path is a file, not a folder: choose another name", path);
    return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", path, strerror(errno));
}

static void fini(struct ph__atomic_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->temporary_path);
    free(file->path);
    *file = (struct ph__atomic_file){.descriptor = -1};
}

ph_status ph__atomic_file_open(const char *path, struct ph__atomic_file *file_out)
{
    struct ph__atomic_file file = {.descriptor = -1, .path = strdup(path)};
    if (file.path == NULL || asprintf(&file.temporary_path, "%s.tmp", path) < 0) {
        file.temporary_path = NULL;
        fini(&file);
        return ph__out_of_memory("the path %s", path);
    }
    if (ph__directory_exists(path))
        errno = EISDIR;
    else
        file.descriptor = open(file.temporary_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file.descriptor < 0) {
        ph_status status = ph__file_cannot_write(path);
        fini(&file);
        return status;
    }
    *file_out = file;
    return PH_OK;
}

ph_status ph__atomic_file_write(struct ph__atomic_file *file, const void *bytes, size_t size)
{
    ph_status status = ph__write_all(file->descriptor, bytes, size);
    return status == PH_OK ? PH_OK : ph_fail(status, "%s: %s", file->path, ph_error_text());
}

/* Calls fsync; a file system without fsync counts as synced. */
static bool is_synced(int descriptor)
{
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* Syncs the folder of the path, which holds the new name: otherwise a crash may lose the name. */
static bool is_folder_synced(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL)
        return false;
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (descriptor < 0)
        return false;
    bool is_done = is_synced(descriptor);
    close(descriptor);
    return is_done;
}

ph_status ph__atomic_file_commit(struct ph__atomic_file *file)
{
    bool is_written = is_synced(file->descriptor);
    if (is_written) {
        int descriptor = file->descriptor;
        file->descriptor = -1;
        is_written = close(descriptor) == 0 && rename(file->temporary_path, file->path) == 0;
    }
    if (!is_written) {
        ph_status status = ph__file_cannot_write(file->path);
        ph__atomic_file_abandon(file);
        return status;
    }
    ph_status status = ph__file_sync_name(file->path);
    fini(file);
    return status;
}

void ph__atomic_file_abandon(struct ph__atomic_file *file)
{
    if (file->temporary_path != NULL)
        unlink(file->temporary_path);
    fini(file);
}

ph_status ph__file_sync_name(const char *path)
{
    return is_folder_synced(path) ? PH_OK : ph__file_cannot_write(path);
}

/* ---- links ---- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static ph_status copy_bytes(int descriptor, const char *from, struct ph__atomic_file *to)
{
    char block[1 << 16];
    for (;;) {
        ssize_t count = read(descriptor, block, sizeof block);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_DISK, "%s: cannot read: %s", from, strerror(errno));
        if (count == 0)
            return PH_OK;
        PH_TRY(ph__atomic_file_write(to, block, (size_t)count));
    }
}

static ph_status copy_file(const char *from, const char *to)
{
    int descriptor = open(from, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot open: %s", from, strerror(errno));
    struct ph__atomic_file file;
    ph_status status = ph__atomic_file_open(to, &file);
    if (status == PH_OK) {
        status = copy_bytes(descriptor, from, &file);
        if (status == PH_OK)
            status = ph__atomic_file_commit(&file);
        else
            ph__atomic_file_abandon(&file);
    }
    close(descriptor);
    return status;
}

ph_status ph__file_link(const char *from, const char *to)
{
    if (is_same_file(from, to))
        return PH_OK;
    char *temporary;
    if (asprintf(&temporary, "%s.tmp", to) < 0)
        return ph__out_of_memory("the path %s", to);
    unlink(temporary); /* left by a process that was killed */
    ph_status status = PH_OK;
    if (link(from, temporary) != 0)
        status = copy_file(from, to); /* reports why when copying fails, too */
    else if (rename(temporary, to) != 0 || !is_folder_synced(to))
        status = ph__file_cannot_write(to);
    unlink(temporary);
    free(temporary);
    return status;
}
