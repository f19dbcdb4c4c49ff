/* The arrays that a path of format npy stands for, and the columns that they are.
 *
 * P_labels.npy (or P alone) stands for MLPerf's layout of Criteo: P_labels.npy (N), P_dense.npy (N,13) as
 * columns I1, I2 ..., and P_sparse_multi_hot.npz, whose members 0, 1 ... (N, hotness) are columns C1, C2 ...,
 * or P_sparse.npy (N,26), one id a column. A path that ends in .npz is one file whose members are columns by
 * their names: of one dimension a value a row; of two, whole numbers are a list and floats one column for
 * each of theirs, NAME_1, NAME_2 ...
 *
 * Memory holds a buffer of each array, never the array. A member's CRC-32 is compared when its last row has
 * been read, if reading began at its first. One thread at a time. */
#ifndef PH_DATA_ARRAY_SET_H
#define PH_DATA_ARRAY_SET_H

#include "base/file/compress.h"
#include "base/text/name_index.h"
#include "data/source/input_file.h"
#include "data/source/npy.h"
#include "data/source/npz.h"

/* ---- one array: of a .npy file, or of a member of an .npz ---- */

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

/* Lets `checksum`, which is borrowed, take in a .npy file's bytes from its first one on: of the header, which
 * has been read, at once. PH_ERROR_DATA. */
ph_status ph__array_file_sum(struct ph__array_file *array, struct ph__running_checksum *checksum);

/* Goes to row `row` <= npy.num_rows, before the first row is read; what is deflated is read up to there. */
ph_status ph__array_file_seek(struct ph__array_file *array, uint64_t row);

/* The next row, of npy.row_bytes, which must be there; borrowed until the next call. */
ph_status ph__array_file_next(struct ph__array_file *array, const unsigned char **row_out);

/* ---- a set ---- */

/* A column of the data: column `index` of an array, or all of them as a list. */
struct ph__array_column {
    char *name;
    size_t array, index;
    bool is_list;
};

struct ph__array_set { /* zero-initialised may be closed */
    struct ph__arena arena;
    struct ph__npz npz;
    struct ph__array_file *arrays;
    size_t num_arrays, arrays_capacity;
    struct ph__array_column *columns; /* in the data's order */
    size_t num_columns, columns_capacity;
    struct ph__name_index names; /* of the columns, in their order */
    uint64_t num_rows;           /* of every array */
};

/* Opens all arrays and compares their numbers of rows. Without needs_no_labels P_labels.npy must be there. To
 * be closed also on failure. PH_ERROR_DATA naming the array, or both that disagree. */
ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels);
void ph__array_set_close(struct ph__array_set *set);

#endif
