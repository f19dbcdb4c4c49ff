#include "support/fuzz_support.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/seal.h"
#include "base/sum/digest.h"
#include "store/safetensors.h"

_Noreturn void fuzz__broken(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s (last error: %s)\n", file, line, condition, ph_error_text());
    abort();
}

/* ---- files ---- */

struct memory_file {
    int descriptor;
    char path[40]; /* "": not made yet */
};

const char *fuzz_file(size_t slot, const void *bytes, size_t size)
{
    static struct memory_file files[FUZZ_NUM_SLOTS];
    struct memory_file *file = &files[slot];
    if (file->path[0] == '\0') {
        file->descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        fuzz_require(file->descriptor >= 0);
        snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
    }
    fuzz_require(ftruncate(file->descriptor, 0) == 0);
    fuzz_require(pwrite(file->descriptor, bytes, size, 0) == (ssize_t)size);
    return file->path;
}

static char folder[24]; /* "": not made yet */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void fuzz_folder_path(const char *name, char path_out[64])
{
    if (folder[0] == '\0') {
        strcpy(folder, "/dev/shm/fuzz.XXXXXX");
        fuzz_require(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    snprintf(path_out, 64, "%s/%s", folder, name);
}

void fuzz_put(const char *path, const void *bytes, size_t size)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    fuzz_require(descriptor >= 0 && pwrite(descriptor, bytes, size, 0) == (ssize_t)size);
    fuzz_require(ftruncate(descriptor, (off_t)size) == 0);
    close(descriptor);
}

char *fuzz_read(const char *path, size_t *size_out)
{
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    fuzz_require(descriptor >= 0 && fstat(descriptor, &status) == 0);
    const size_t size = (size_t)status.st_size;
    char *bytes = malloc(size + 1);
    fuzz_require(bytes != NULL && pread(descriptor, bytes, size, 0) == status.st_size);
    close(descriptor);
    bytes[size] = '\0';
    *size_out = size;
    return bytes;
}

/* ---- edits ---- */

#define EDIT_BYTES 4

uint8_t *fuzz_edit(const char *file, size_t file_size, const uint8_t *data, size_t size, size_t mark,
    size_t *mark_out, size_t *size_out)
{
    uint8_t *bytes = malloc(file_size + size + 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, file, file_size);
    while (size >= EDIT_BYTES) {
        const size_t at = (data[0] + (size_t)data[1] * 256) % (file_size + 1), left = file_size - at;
        const size_t erased = data[2] < left ? data[2] : left;
        const size_t count = data[3] < size - EDIT_BYTES ? data[3] : size - EDIT_BYTES;
        memmove(bytes + at + count, bytes + at + erased, left - erased);
        memcpy(bytes + at, data + EDIT_BYTES, count);
        if (at < mark)
            mark = mark + count > at + erased + count ? mark + count - erased : at + count;
        file_size = file_size + count - erased;
        data += EDIT_BYTES + count;
        size -= EDIT_BYTES + count;
    }
    *mark_out = mark;
    *size_out = file_size;
    return bytes;
}

/* ---- checksums ---- */

void fuzz_reseal(uint8_t *bytes, size_t size, size_t offset)
{
    if (size < offset + PH_SEAL_DIGITS)
        return;
    struct ph__digest *digest;
    char digits[PH_SEAL_DIGITS + 1];
    memcpy(bytes + offset, PH_SEAL_BLANK, PH_SEAL_DIGITS);
    fuzz_require(ph__digest_create(&digest) == PH_OK);
    fuzz_require(ph__digest_update(digest, bytes, size) == PH_OK);
    fuzz_require(ph__digest_finish(digest, digits) == PH_OK);
    ph__digest_destroy(digest);
    memcpy(bytes + offset, digits, PH_SEAL_DIGITS);
}

static void reseal_behind(uint8_t *bytes, size_t size, size_t start, const char *prefix)
{
    const size_t end = start + strlen(prefix);
    if (size > end && memcmp(bytes + start, prefix, end - start) == 0)
        fuzz_reseal(bytes, size, end);
}

void fuzz_reseal_json(uint8_t *bytes, size_t size)
{
    reseal_behind(bytes, size, 0, "{\n  \"" PH_SEAL_KEY "\": \"");
}

static const char *sealed_file(
    size_t slot, const void *bytes, size_t size, void (*reseal)(uint8_t *bytes, size_t size))
{
    uint8_t *copy = malloc(size + 1);
    fuzz_require(copy != NULL);
    memcpy(copy, bytes, size);
    reseal(copy, size);
    const char *path = fuzz_file(slot, copy, size);
    free(copy);
    return path;
}

const char *fuzz_sealed_json(size_t slot, const void *bytes, size_t size)
{
    return sealed_file(slot, bytes, size, fuzz_reseal_json);
}

static void reseal_tensors(uint8_t *bytes, size_t size)
{
    reseal_behind(bytes, size, sizeof(uint64_t), PH_SAFETENSORS_SEAL_START);
}

const char *fuzz_sealed_tensors(size_t slot, const void *bytes, size_t size)
{
    return sealed_file(slot, bytes, size, reseal_tensors);
}
