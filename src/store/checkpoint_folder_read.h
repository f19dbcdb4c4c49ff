/* A checkpoint's folder that is open: for what reads its tensors. */
#ifndef PH_STORE_CHECKPOINT_FOLDER_READ_H
#define PH_STORE_CHECKPOINT_FOLDER_READ_H

#include "base/thread/stop.h"
#include "store/checkpoint_layout.h"
#include "store/safetensors.h"

struct ph_folder_file {
    const char *name, *path;
    struct ph_safetensors *tensors;
};

struct ph_folder {
    struct ph_arena arena; /* paths */
    const char *path, *index_path;
    struct ph_json *index;        /* owns the names; NULL: of a single file */
    struct ph_folder_file *files; /* (num_files), by name */
    size_t num_files;
    struct ph_layout layout;
    struct ph_meanwhile meanwhile;
};

/* Rows and columns of a logical tensor, without gaps, as its dtype has them. */
ph_status ph__folder_read_area(
    const struct ph_folder *folder, size_t index, const struct ph_area *area, void *bytes);

#endif
