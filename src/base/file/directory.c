#include "base/file/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory/memory.h"

bool ph__directory_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static ph_status is_no_folder(const char *path, const char *file)
{
    return strcmp(path, file) == 0
               ? ph_fail(PH_ERROR_USAGE, "%s: must be a folder, not a file: choose another name", path)
               : ph_fail(PH_ERROR_USAGE, "%s: '%s' must be a folder, not a file: choose another name", path,
                     file);
}

static ph_status make_directory(const char *part, const char *path)
{
    if (part[0] == '\0' || mkdir(part, 0777) == 0)
        return PH_OK;
    int error = errno;
    if (ph__directory_exists(part))
        return PH_OK;
    if (error == EEXIST)
        return is_no_folder(path, part);
    return ph_fail(PH_ERROR_DISK, "%s: cannot create the folder: %s", path, strerror(error));
}

ph_status ph__directory_create(const char *path)
{
    char *part = strdup(path);
    if (part == NULL)
        return ph__out_of_memory("the path %s", path);
    ph_status status = PH_OK;
    char *slash = part;
    while (slash != NULL && status == PH_OK) {
        slash = slash[0] != '\0' ? strchr(slash + 1, '/') : NULL;
        if (slash != NULL)
            *slash = '\0';
        status = make_directory(part, path);
        if (slash != NULL)
            *slash = '/';
    }
    free(part);
    return status;
}

ph_status ph__directory_lock(const char *path, int *lock_out)
{
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *lock_out = -1;
    if (descriptor < 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot open the folder: %s", path, strerror(errno));
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        *lock_out = descriptor;
        return PH_OK;
    }
    const bool is_taken = errno == EWOULDBLOCK;
    close(descriptor);
    return is_taken ? ph_fail(PH_ERROR_USAGE,
                          "%s: another process uses this folder: wait for it, or choose another folder", path)
                    : PH_OK;
}

void ph__directory_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

/* Fails with the name of the file that `path` is, or lies below. */
static ph_status meets_a_file(const char *path)
{
    char *file = strdup(path);
    if (file == NULL)
        return ph__out_of_memory("the path %s", path);
    char *slash;
    while ((slash = strrchr(file, '/')) != NULL && slash > file && access(file, F_OK) != 0)
        *slash = '\0';
    const ph_status status = is_no_folder(path, file);
    free(file);
    return status;
}

static ph_status cannot_list(const char *path)
{
    if (errno == ENOTDIR)
        return meets_a_file(path);
    return ph_fail(PH_ERROR_DISK, "%s: cannot list the folder: %s", path, strerror(errno));
}

/* Returns the next entry; NULL with errno 0 at the end. */
static const struct dirent *read_entry(DIR *directory)
{
    errno = 0;
    return readdir(directory);
}

ph_status ph__directory_visit(
    const char *path, ph_status (*visit)(void *argument, const char *name), void *argument)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return errno == ENOENT ? PH_OK : cannot_list(path);
    ph_status status = PH_OK;
    const struct dirent *entry;
    while (status == PH_OK && (entry = read_entry(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(argument, entry->d_name);
    if (status == PH_OK && errno != 0)
        status = cannot_list(path);
    closedir(directory);
    return status;
}

static ph_status note_entry(void *argument, const char *name)
{
    (void)name;
    *(bool *)argument = false;
    return PH_OK;
}

ph_status ph__directory_create_empty(const char *path)
{
    bool is_empty = true;
    PH_TRY(ph__directory_visit(path, note_entry, &is_empty));
    if (!is_empty)
        return ph_fail(PH_ERROR_USAGE, "%s: the folder is not empty: give a new or empty one", path);
    return ph__directory_create(path);
}
