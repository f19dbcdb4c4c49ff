/* A log of the features of pairs as they were served: a line for each row of each request, which students
 * learn from when they are joined with the rows' labels.
 *
 *     request <TAB> place <TAB> fm_1 ...
 *
 * It is only appended to. One thread at a time. */
#ifndef PH_SERVE_FEATURE_LOG_H
#define PH_SERVE_FEATURE_LOG_H

#include "base/memory/buffer.h"
#include "serve/speculation/speculation.h"

struct ph__feature_log { /* descriptor -1: no log */
    int descriptor;
    const char *path; /* borrowed */
    size_t width;
    struct ph__buffer lines; /* that are not written yet */
};

/* Opens a file, or none for "". PH_ERROR_CONFIG: a file is there that is no log of the speculation's columns;
 * PH_ERROR_DISK. Close it also after a failure. */
ph_status ph__feature_log_open(
    struct ph__feature_log *log, const char *path, const struct ph__speculation *speculation);
void ph__feature_log_close(struct ph__feature_log *log);

/* Adds the rows of a request: features (count, width). A failure comes to light when they are flushed. */
void ph__feature_log_add(
    struct ph__feature_log *log, struct ph__bytes request, size_t count, const float *features);
/* Writes what was added. PH_ERROR_DISK, PH_ERROR_MEMORY: lines are lost. */
ph_status ph__feature_log_flush(struct ph__feature_log *log);

#endif
