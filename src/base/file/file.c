/* Paths, files that are read or written as a whole, and mapped ones. */
#include "base/file/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory/memory.h"

bool ph__file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

ph_status ph__file_size(const char *path, uint64_t *size_out)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ph_fail(PH_ERROR_DATA, "%s: not a file", path);
    *size_out = (uint64_t)status.st_size;
    return PH_OK;
}

bool ph__file_is_pipe(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
}

const char *ph__pipe_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : "a pipe";
}

const char *ph__path_join(struct ph__arena *arena, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    if (length == 0 || name[0] == '/')
        return ph__arena_strdup(arena, name);
    return ph__arena_printf(arena, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
}

bool ph__path_ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), ending_length = strlen(ending);
    return length >= ending_length && strcmp(path + length - ending_length, ending) == 0;
}

/* ---- environment variables in paths ---- */

static bool is_name_character(char c, bool is_first)
{
    return c == '_' || isalpha((unsigned char)c) || (!is_first && isdigit((unsigned char)c));
}

/* Parses the name after a '$', with or without braces; *end_out points behind it. Returns false when there is
 * no name. */
static bool parse_variable(
    const char *after_dollar, const char **name_out, size_t *length_out, const char **end_out)
{
    bool has_brace = after_dollar[0] == '{';
    const char *name = after_dollar + (has_brace ? 1 : 0);
    size_t length = 0;
    while (is_name_character(name[length], length == 0))
        length++;
    if (length == 0 || (has_brace && name[length] != '}'))
        return false;
    *name_out = name;
    *length_out = length;
    *end_out = name + length + (has_brace ? 1 : 0);
    return true;
}

/* Finds the text that replaces a '$' and its name: "$" for "$$", otherwise the variable's value. */
static ph_status value_at(struct ph__arena *arena, const char *path, const char *dollar,
    const char **value_out, const char **end_out)
{
    if (dollar[1] == '$') {
        *value_out = "$";
        *end_out = dollar + 2;
        return PH_OK;
    }
    const char *name = NULL;
    size_t length = 0;
    if (!parse_variable(dollar + 1, &name, &length, end_out))
        return ph_fail(PH_ERROR_CONFIG, "%s: '$' must be followed by the name of a variable", path);
    const char *variable = ph__arena_printf(arena, "%.*s", (int)length, name);
    if (variable == NULL)
        return PH_ERROR_MEMORY;
    *value_out = getenv(variable);
    if (*value_out == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: the environment variable %s is not set", path, variable);
    return PH_OK;
}

ph_status ph__path_expand(struct ph__arena *arena, const char *path, const char **path_out)
{
    const char *expanded = "";
    const char *at = path;
    for (const char *dollar = strchr(at, '$'); dollar != NULL; dollar = strchr(at, '$')) {
        const char *value = NULL, *end = NULL;
        PH_TRY(value_at(arena, path, dollar, &value, &end));
        expanded = ph__arena_printf(arena, "%s%.*s%s", expanded, (int)(dollar - at), at, value);
        if (expanded == NULL)
            return PH_ERROR_MEMORY;
        at = end;
    }
    expanded = ph__arena_printf(arena, "%s%s", expanded, at);
    if (expanded == NULL)
        return PH_ERROR_MEMORY;
    *path_out = expanded;
    return PH_OK;
}

const char *ph__path_protect(struct ph__arena *arena, const char *path)
{
    const size_t length = path != NULL ? strlen(path) : 0;
    char *text = ph__arena_alloc_array(arena, length + 1, 2); /* zeroed */
    char *end = text;
    for (size_t i = 0; text != NULL && i < length; i++) {
        *end++ = path[i];
        if (path[i] == '$')
            *end++ = '$';
    }
    return text;
}

/* ---- bytes ---- */

/* Reads until the end, whatever size stat gives: a pipe has none. */
static ph_status read_descriptor(
    int descriptor, const char *path, uint64_t max_bytes, char **bytes, size_t *capacity, size_t *size_out)
{
    size_t size = 0;
    for (;;) {
        void *grown = *bytes;
        ph_status status = ph__array_reserve(&grown, capacity, size + 4096, 1);
        *bytes = grown;
        PH_TRY(status);
        ssize_t count = read(descriptor, *bytes + size, *capacity - size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_DATA, "%s: cannot read: %s", path, strerror(errno));
        size += (size_t)count;
        if (size > max_bytes)
            return ph_fail(PH_ERROR_DATA, "%s: larger than %llu bytes", path, (unsigned long long)max_bytes);
        if (count == 0)
            break;
    }
    *size_out = size;
    return PH_OK;
}

static ph_status fail_to_open(const char *path)
{
    const ph_status status = errno == ENOMEM ? PH_ERROR_MEMORY : PH_ERROR_DATA;
    return ph_fail(status, "%s: cannot open: %s", path, strerror(errno));
}

ph_status ph__file_read(
    struct ph__arena *arena, const char *path, uint64_t max_bytes, char **text_out, size_t *size_out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail_to_open(path);
    char *bytes = NULL;
    size_t capacity = 0, size = 0;
    ph_status status = read_descriptor(descriptor, path, max_bytes, &bytes, &capacity, &size);
    close(descriptor);
    char *text = status == PH_OK ? ph__arena_alloc(arena, size + 1) : NULL;
    if (text != NULL) {
        memcpy(text, bytes, size);
        *text_out = text;
        *size_out = size;
    } else if (status == PH_OK) {
        status = PH_ERROR_MEMORY;
    }
    free(bytes);
    return status;
}

ph_status ph__file_open(const char *path, int *descriptor_out, uint64_t *num_bytes_out)
{
    PH_TRY(ph__file_size(path, num_bytes_out));
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail_to_open(path);
    *descriptor_out = descriptor;
    return PH_OK;
}

ph_status ph__file_read_at(int descriptor, const char *path, uint64_t byte, void *buffer, size_t size)
{
    char *at = buffer;
    while (size > 0) {
        ssize_t count = pread(descriptor, at, size, (off_t)byte);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_DATA, "%s: cannot read: %s", path, strerror(errno));
        if (count == 0)
            return ph_fail(PH_ERROR_DATA, "%s: the file is cut off", path);
        at += count;
        byte += (uint64_t)count;
        size -= (size_t)count;
    }
    return PH_OK;
}

ph_status ph__write_all(int descriptor, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        ssize_t count = write(descriptor, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_DISK, "cannot write: %s", strerror(errno));
        at += count;
        size -= (size_t)count;
    }
    return PH_OK;
}

/* ---- mapped files ---- */

static ph_status map(int descriptor, const char *path, size_t size, struct ph__mapped_file *file)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED)
        return ph_fail(PH_ERROR_MEMORY, "%s: cannot map the file: %s", path, strerror(errno));
    *file = (struct ph__mapped_file){bytes, size};
    return PH_OK;
}

ph_status ph__mapped_file_open(const char *path, ph_status error_status, struct ph__mapped_file *file_out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(error_status, "%s: cannot open: %s", path, strerror(errno));
    struct stat status;
    struct ph__mapped_file file = {0};
    ph_status result = PH_OK;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        result = ph_fail(error_status, "%s: not a regular file", path);
    else if (status.st_size > 0)
        result = map(descriptor, path, (size_t)status.st_size, &file);
    close(descriptor);
    if (result == PH_OK)
        *file_out = file;
    return result;
}

void ph__mapped_file_close(struct ph__mapped_file *file)
{
    if (file->bytes != NULL)
        munmap((void *)file->bytes, file->size);
    *file = (struct ph__mapped_file){0};
}
