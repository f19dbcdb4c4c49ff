/* Bytes into a file descriptor, compressed when the file's name ends in .gz or .zst. One thread at a time. */
#ifndef PH_BASE_COMPRESS_H
#define PH_BASE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

struct ph_compressor;

/* The descriptor is borrowed until destroy. Errors are PH_ERROR_DISK (PH_ERROR_MEMORY) and say only what is wrong,
 * not where: the caller knows the path. */
ph_status ph__compressor_create(int descriptor, const char *path, struct ph_compressor **compressor_out);
void ph__compressor_destroy(struct ph_compressor *compressor); /* writes nothing more */

/* is_last ends the member or frame and writes all that is left; nothing may be written afterwards. */
ph_status ph__compressor_write(
    struct ph_compressor *compressor, const void *bytes, size_t size, bool is_last);

/* All of the bytes, in as many calls of write(2) as it takes. */
ph_status ph__write_all(int descriptor, const void *bytes, size_t size);

#endif
