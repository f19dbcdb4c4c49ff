/* The rows of one array, one after the other: of a .npy file, or of a member of an .npz.
 *
 * Memory holds a buffer, never the array. A member's CRC-32 is compared when its last row has been read, if reading began
 * at its first. One thread at a time. */
#ifndef PH_DATA_ARRAY_FILE_H
#define PH_DATA_ARRAY_FILE_H

#include "base/file/compress.h"
#include "data/source/npy.h"
#include "data/source/npz.h"

struct ph__array_file { /* zero-initialised may be closed */
    const char *name;   /* for errors: "P_dense.npy", "P.npz:3"; borrowed */
    struct ph__npy npy;
    int descriptor; /* open when is_open */
    bool is_open;
    struct ph__decompressor *decompressor; /* NULL: the bytes are as they are */
    uint64_t first_byte;                   /* of the header, in the file */
    size_t header_bytes;
    uint64_t num_bytes;     /* header and rows */
    uint64_t byte;          /* read so far, from the header's first */
    const uint32_t *wanted; /* a member's CRC; NULL: none */
    uint32_t crc;           /* of what has been read, when has_crc */
    bool has_crc;
    struct ph__running_checksum *checksum; /* takes in what is read of a .npy file; NULL: none */
    unsigned char *buffer;                 /* rows that have been read ahead */
    size_t buffer_bytes, start, end;
};

/* Opens and checks the header against the file's size. `name` and `member` are borrowed until close; to be closed also on
 * failure. PH_ERROR_DATA naming the array. */
ph_status ph__array_file_open(struct ph__array_file *array, const char *path);
ph_status ph__array_file_open_member(
    struct ph__array_file *array, const char *path, const char *name, const struct ph__npz_member *member);
void ph__array_file_close(struct ph__array_file *array);

/* Lets `checksum`, which is borrowed, take in a .npy file's bytes from its first one on: of the header, which has been read, at once.
 * PH_ERROR_DATA. */
ph_status ph__array_file_sum(struct ph__array_file *array, struct ph__running_checksum *checksum);

/* Goes to row `row` <= npy.num_rows, before the first row is read; what is deflated is read up to there. */
ph_status ph__array_file_seek(struct ph__array_file *array, uint64_t row);

/* The next row, of npy.row_bytes, which must be there; borrowed until the next call. */
ph_status ph__array_file_next(struct ph__array_file *array, const unsigned char **row_out);

#endif
