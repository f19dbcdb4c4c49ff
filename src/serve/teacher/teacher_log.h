/* A log of what teachers said of examples: a text file that is only appended to, so that a killed writer
 * leaves the beginning of what it would have written.
 *
 *     phloem teacher log 1 <TAB> KEY,KEY <TAB> TASK,TASK     columns of the key; none: the whole line
 *     snapshot <TAB> SEAL                                    of the weights that score the rows below
 *     KEY <TAB> PROBABILITY ...                              16 hexadecimal digits; one number a task
 *
 * Each example is there once. One process writes at a time, and any number may read. */
#ifndef PH_SERVE_TEACHER_LOG_H
#define PH_SERVE_TEACHER_LOG_H

#include "base/memory/arena.h"
#include "base/memory/buffer.h"
#include "base/memory/key_map.h"

struct ph__teacher_log { /* zero-initialised is closed */
    struct ph__arena arena;
    const char *path;         /* borrowed */
    const char *keys, *tasks; /* as in the head: separated by commas */
    size_t num_tasks;
    struct ph__key_map rows; /* key -> row */
    float *probabilities;    /* (num_rows, num_tasks) */
    size_t num_rows, capacity;
    size_t num_snapshots;
    char seal[65];  /* of the latest snapshot; "": none */
    int descriptor; /* -1: the log is only read */
    struct ph__buffer pending;
};

/* Reads a log. PH_ERROR_DATA with file and line: it is none, or damaged; a last line without its end is left
 * out. Close it also after a failure. */
ph_status ph__teacher_log_read(struct ph__teacher_log *log, const char *path);

/* Opens a log for a snapshot of these keys and tasks, to append to. Creates it if it is missing; otherwise it
 * must have the same keys and tasks: PH_ERROR_USAGE. PH_ERROR_USAGE too while another process appends. Close
 * it also after a failure. */
ph_status ph__teacher_log_open(
    struct ph__teacher_log *log, const char *path, const char *keys, const char *tasks, const char *seal);
void ph__teacher_log_close(struct ph__teacher_log *log);

/* Appends an example that the log does not have: probabilities (num_tasks), of which 0 and 1 become the
 * floats next to them, as no teacher can be that sure. PH_ERROR_DATA: one is not a number; PH_ERROR_MEMORY.
 */
ph_status ph__teacher_log_add(struct ph__teacher_log *log, uint64_t key, const float *probabilities);
/* Writes what was appended. PH_ERROR_DISK. */
ph_status ph__teacher_log_flush(struct ph__teacher_log *log);

/* Returns an example's probabilities (num_tasks), borrowed until the log grows; NULL: it has none. */
const float *ph__teacher_log_find(const struct ph__teacher_log *log, uint64_t key);

#endif
