/* Seals: a file that carries the SHA-256 of its own bytes, so that a flipped, missing or surplus byte
 * anywhere in it is found before any of its content is used.
 *
 * The seal is 64 hexadecimal digits: the sum of all bytes of the file with those digits as zeros. Each format
 * keeps the digits at one place near its start, as the value of a JSON key "sha256", so that any reader of
 * the format still reads the file. In a sealed JSON document the key is the first member. To make a seal by
 * hand, write zeros over the digits and run sha256sum. A seal guards against accidents, not against forgers:
 * it has no key. */
#ifndef PH_BASE_SEAL_H
#define PH_BASE_SEAL_H

#include <stdint.h>

#include "base/format/json.h"
#include "base/thread/stop.h"
#include "phloem/status.h"

#define PH_SEAL_KEY "sha256"
#define PH_SEAL_DIGITS 64
/* Digits before the sum is known, and while it is taken. */
#define PH_SEAL_BLANK "0000000000000000000000000000000000000000000000000000000000000000"

/* Checks the seal of an open regular file whose digits lie at `offset` (below 64 KiB). Reads the file in
 * blocks from start to end and calls `meanwhile` after each. PH_OK: the seal fits. Otherwise `error_status`,
 * naming `path`. Leaves the file's position as it is. */
ph_status ph__seal_check_file(int descriptor, uint64_t offset, const char *path, ph_status error_status,
    const struct ph__meanwhile *meanwhile);

/* Creates an object whose first member is the blank seal, for ph__sealed_json_write. */
struct ph__json *ph__sealed_json_object(void);

/* Gives the seal that ph__sealed_json_write gives the object: 64 digits and a NUL. */
ph_status ph__sealed_json_digest(const struct ph__json *json, char digits_out[PH_SEAL_DIGITS + 1]);

/* Writes an object from ph__sealed_json_object as indented text with its seal, atomically. The object keeps
 * its blank. */
ph_status ph__sealed_json_write(const struct ph__json *json, const char *path);

/* Reads a file that ph__sealed_json_write has written. PH_OK only if every byte is as it was. A file that
 * is missing, larger than max_bytes, damaged, cut short or without a seal gives `error_status`, naming
 * `path`. */
ph_status ph__sealed_json_read(
    const char *path, ph_status error_status, uint64_t max_bytes, struct ph__json **json_out);

#endif
