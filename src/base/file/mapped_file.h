/* A whole file as read-only memory, paged in as it is touched. */
#ifndef PH_BASE_MAPPED_FILE_H
#define PH_BASE_MAPPED_FILE_H

#include <stddef.h>

#include "phloem/status.h"

struct ph_mapped_file { /* zero-initialised is none */
    const unsigned char *bytes;
    size_t size;
};

/* Errors name the path: `error_status` when it is missing, unreadable or no regular file, PH_ERROR_MEMORY when there is no
 * room for it. An empty file has no bytes. The file
 * must not be cut while it is mapped: touching what is gone ends the process. */
ph_status ph__mapped_file_open(const char *path, ph_status error_status, struct ph_mapped_file *file_out);
void ph__mapped_file_close(struct ph_mapped_file *file);

#endif
