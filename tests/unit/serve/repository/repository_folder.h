/* Repositories of run folders: versions that are put there whole, in part, or damaged. */
#ifndef PH_TEST_REPOSITORY_FOLDER_H
#define PH_TEST_REPOSITORY_FOLDER_H

#include "unit/serve/run_folder.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const run_files[] = {"config.yaml", "encoder.json", "model.safetensors"};
enum { NUM_RUN_FILES = 3 };

/* Copies the first bytes of a file, or all of fewer. */
static inline void copy_bytes(const char *from_folder, const char *to_folder, const char *name, size_t size)
{
    char path[700];
    struct ph__arena arena = {0};
    char *bytes;
    size_t file_size;
    snprintf(path, sizeof path, "%s/%s", from_folder, name);
    assert_ok(ph__file_read(&arena, path, 64 << 20, &bytes, &file_size));
    snprintf(path, sizeof path, "%s/%s", to_folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size = size < file_size ? size : file_size;
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    ph__arena_fini(&arena);
}

static inline void copy_file(const char *from_folder, const char *to_folder, const char *name)
{
    copy_bytes(from_folder, to_folder, name, SIZE_MAX);
}

/* Makes the empty folder REPOSITORY/MODEL/VERSION; the path is static until the next one. */
static inline const char *make_version_folder(const char *repository, const char *model, unsigned version)
{
    static char folder[600];
    snprintf(folder, sizeof folder, "%s/%s", repository, model);
    assert_ok(ph__directory_create(folder));
    snprintf(folder, sizeof folder, "%s/%s/%u", repository, model, version);
    assert_ok(ph__directory_create(folder));
    return folder;
}

/* Puts a copy of a run folder there, at once. */
static inline void put_version(const char *run, const char *repository, const char *model, unsigned version)
{
    char folder[600], staging[600];
    snprintf(folder, sizeof folder, "%s", make_version_folder(repository, model, version));
    snprintf(staging, sizeof staging, "%s/staging", test_folder());
    assert_ok(ph__directory_create(staging));
    for (size_t i = 0; i < NUM_RUN_FILES; i++)
        copy_file(run, staging, run_files[i]);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rename(staging, folder), 0);
}

static inline void remove_version(const char *repository, const char *model, unsigned version)
{
    char folder[600], gone[600];
    static unsigned num_gone;
    snprintf(folder, sizeof folder, "%s/%s/%u", repository, model, version);
    snprintf(gone, sizeof gone, "%s/gone%u", test_folder(), num_gone++);
    assert_int_equal(rename(folder, gone), 0);
}

/* Replaces a file of a version at once, by the first bytes of the run folder's. */
static inline void replace_file(const char *run, const char *repository, const char *model, unsigned version,
    const char *name, size_t size)
{
    char path[700], staged[600];
    copy_bytes(run, test_folder(), name, size);
    snprintf(staged, sizeof staged, "%s/%s", test_folder(), name);
    snprintf(path, sizeof path, "%s/%s/%u/%s", repository, model, version, name);
    assert_int_equal(rename(staged, path), 0);
}

static inline void write_settings(const char *repository, const char *model, const char *text)
{
    char path[600], staged[600];
    snprintf(path, sizeof path, "%s/%s", repository, model);
    assert_ok(ph__directory_create(path));
    snprintf(staged, sizeof staged, "%s", test_write_file("serve.yaml", text));
    snprintf(path, sizeof path, "%s/%s/serve.yaml", repository, model);
    assert_int_equal(rename(staged, path), 0);
}

/* Inverts a byte in place. Size, time and inode stay. */
static inline void invert_byte(const char *path, long at)
{
    struct stat facts;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &facts), 0);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = getc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_not_equal(putc(~byte & 255, file), EOF);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(futimens(fileno(file), (const struct timespec[]){facts.st_atim, facts.st_mtim}), 0);
    assert_int_equal(fclose(file), 0);
}

#endif
