/* The directory of an .npz file: a ZIP archive (PKWARE's APPNOTE), Zip64 included, whose members are .npy
 * arrays, stored or deflated. One thread at a time. */
#ifndef PH_DATA_NPZ_H
#define PH_DATA_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

struct ph__npz_member {
    const char *name;   /* without .npy; owned by the arena given to read */
    uint64_t data_byte; /* where its bytes begin in the file */
    uint64_t num_packed_bytes, num_bytes;
    uint32_t crc;
    bool is_deflated;
};

struct ph__npz {
    struct ph__npz_member *members; /* (num_members) in the directory's order; of the arena */
    size_t num_members;
};

/* Reads and checks the directory, every member's place and size included. PH_ERROR_DATA naming the path when
 * it is no archive, damaged, or has members that are encrypted or compressed otherwise. */
ph_status ph__npz_read(struct ph__arena *arena, const char *path, struct ph__npz *npz_out);

/* NULL when there is none of that name. */
const struct ph__npz_member *ph__npz_find(const struct ph__npz *npz, const char *name);

#endif
