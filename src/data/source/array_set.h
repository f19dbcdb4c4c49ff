/* The arrays that a path of format npy stands for, and the columns of their rows.
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
    struct ph__decompressor *decompressor; /* NULL: the bytes are not compressed */
    uint64_t first_byte;                   /* place of the header in the file */
    size_t header_bytes;
    uint64_t num_bytes;     /* bytes of header and rows */
    uint64_t byte;          /* bytes read so far, from the header on */
    const uint32_t *wanted; /* CRC of a member; NULL: none */
    uint32_t crc;           /* CRC of the bytes read so far, when has_crc */
    bool has_crc;
    struct ph__running_checksum *checksum; /* takes in the bytes read of a .npy file; NULL: none */
    unsigned char *buffer;                 /* rows read ahead */
    size_t buffer_bytes, start, end;
};

/* Lets `checksum`, which is borrowed, take in a .npy file's bytes from the first one on: the header's at
 * once, because it was read before. PH_ERROR_DATA. */
ph_status ph__array_file_sum(struct ph__array_file *array, struct ph__running_checksum *checksum);

/* Goes to row `row` <= npy.num_rows; call it before the first row is read. Reads a deflated array up to
 * there. */
ph_status ph__array_file_seek(struct ph__array_file *array, uint64_t row);

/* Gives the next row, npy.row_bytes bytes, borrowed until the next call. There must be a next row. */
ph_status ph__array_file_next(struct ph__array_file *array, const unsigned char **row_out);

/* ---- a set ---- */

/* A column of the data: column `index` of an array or, as a list, all columns of the array. */
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
    struct ph__array_column *columns; /* in the order of the data */
    size_t num_columns, columns_capacity;
    struct ph__name_index names; /* names of the columns, in their order */
    uint64_t num_rows;           /* rows of every array */
};

/* Opens all arrays and compares their numbers of rows. Without needs_no_labels P_labels.npy must be there.
 * Close the set also on failure. PH_ERROR_DATA naming the array, or both arrays that disagree. */
ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels);
void ph__array_set_close(struct ph__array_set *set);

#endif
