/* Paths and files. Files are read whole or at chosen places, mapped, and replaced atomically. Errors name the
 * path. */
#ifndef PH_BASE_FILE_H
#define PH_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

bool ph__file_exists(const char *path); /* false: errno says why */
ph_status ph__file_size(const char *path, uint64_t *size_out);
bool ph__file_is_pipe(const char *path);     /* "-", standard input or output, or a named pipe */
const char *ph__pipe_name(const char *path); /* name in errors of a pipe that is read */

/* ---- paths ---- */

const char *ph__path_join(
    struct ph__arena *arena, const char *folder, const char *name); /* NULL: out of memory */
bool ph__path_ends_in(const char *path, const char *ending);
/* Replaces $NAME and ${NAME}; $$ gives one $. An unset variable is PH_ERROR_CONFIG naming the variable. Owned
 * by the arena. */
ph_status ph__path_expand(struct ph__arena *arena, const char *path, const char **path_out);
/* Doubles each $, so that ph__path_expand gives the path back; NULL gives "". Owned by the arena; returns
 * NULL when out of memory. */
const char *ph__path_protect(struct ph__arena *arena, const char *path);

/* ---- bytes ---- */

/* Reads the whole file into the arena, NUL-terminated; a file above max_bytes is an error. */
ph_status ph__file_read(
    struct ph__arena *arena, const char *path, uint64_t max_bytes, char **text_out, size_t *size_out);
/* Opens a file for reading at chosen places; the caller closes the descriptor. PH_ERROR_DATA. */
ph_status ph__file_open(const char *path, int *descriptor_out, uint64_t *num_bytes_out);
/* Reads exactly `size` bytes from offset `byte`; PH_ERROR_DATA naming the path when there are fewer. */
ph_status ph__file_read_at(int descriptor, const char *path, uint64_t byte, void *buffer, size_t size);
/* Writes all of the bytes, in as many calls of write(2) as it takes. PH_ERROR_DISK without the path, which
 * the caller knows. */
ph_status ph__write_all(int descriptor, const void *bytes, size_t size);

/* ---- mapped files ---- */

/* A whole file as read-only memory, paged in as it is touched. */
struct ph__mapped_file { /* zero-initialised: no file */
    const unsigned char *bytes;
    size_t size;
};

/* Maps the file. Errors name the path: `error_status` when it is missing, unreadable or not a regular file,
 * PH_ERROR_MEMORY when it cannot be mapped. An empty file has no bytes. The file must not be truncated while
 * it is mapped: touching a lost page ends the process. */
ph_status ph__mapped_file_open(const char *path, ph_status error_status, struct ph__mapped_file *file_out);
void ph__mapped_file_close(struct ph__mapped_file *file);

/* ---- atomic replacement (file_atomic.c) ---- */

/* Records an error from errno for a file that could not be written. PH_ERROR_USAGE when the path names a
 * folder or leads through a file; else PH_ERROR_DISK. */
ph_status ph__file_cannot_write(const char *path);

/* A file that is written as path + ".tmp". Commit is fsync, rename, fsync of the folder. */
struct ph__atomic_file {
    int descriptor; /* -1: not open */
    char *temporary_path;
    char *path;
};
ph_status ph__atomic_file_open(const char *path, struct ph__atomic_file *file_out);
ph_status ph__atomic_file_write(struct ph__atomic_file *file, const void *bytes, size_t size);
ph_status ph__atomic_file_commit(struct ph__atomic_file *file); /* releases the file, also on failure */
void ph__atomic_file_abandon(struct ph__atomic_file *file);     /* removes the temporary file */

/* Makes the name of a new file or folder durable in its folder. */
ph_status ph__file_sync_name(const char *path);

/* Makes `to` another name of the file `from`, or a copy on a file system without links. Replaces `to`
 * atomically and durably. Both names may belong to the same file already. */
ph_status ph__file_link(const char *from, const char *to);

#endif
