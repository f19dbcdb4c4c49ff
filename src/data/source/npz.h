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
    const char *name;   /* without .npy; owned by the arena of ph__npz_read */
    uint64_t data_byte; /* start of its bytes in the file */
    uint64_t num_packed_bytes, num_bytes;
    uint32_t crc;
    bool is_deflated;
};

struct ph__npz {
    struct ph__npz_member *members; /* (num_members) in the directory's order; owned by the arena */
    size_t num_members;
};

/* Reads and checks the directory, with every member's place and size. PH_ERROR_DATA naming the path when the
 * file is not an archive, is damaged, or has members that are encrypted or compressed by another method. */
ph_status ph__npz_read(struct ph__arena *arena, const char *path, struct ph__npz *npz_out);

/* Returns NULL when no member has the name. */
const struct ph__npz_member *ph__npz_find(const struct ph__npz *npz, const char *name);

#endif
