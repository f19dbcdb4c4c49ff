/* The pieces of the tensors in a checkpoint's folder: the content of an index, whether it is written or
 * read. */
#ifndef PH_STORE_CHECKPOINT_LAYOUT_H
#define PH_STORE_CHECKPOINT_LAYOUT_H

#include "base/format/json.h"
#include "base/thread/stop.h"
#include "store/safetensors.h"
#include "store/tensor_shard.h"

#define PH_FOLDER_INDEX "model.safetensors.index.json"
#define PH_FOLDER_FILE_FORMAT "part-%05zu-of-%05zu.safetensors" /* writers counted from 1 */

/* A tensor of a file: a logical tensor or an area of one. Names are borrowed. */
struct ph__layout_piece {
    const char *name;   /* of the logical tensor */
    const char *stored; /* in the file */
    enum ph_dtype dtype;
    struct ph_shape shape;
    struct ph__area area; /* of the logical tensor */
    bool is_cut;          /* stored as a shard */
    size_t file, index;   /* index: of the tensor in the file */
};

/* The consecutive pieces of one tensor. */
struct ph__layout_tensor {
    const struct ph__layout_piece *pieces;
    size_t num_pieces;
};

struct ph__layout {
    struct ph__layout_piece *pieces; /* (num_pieces), by name */
    size_t num_pieces, capacity;
    struct ph__layout_tensor *tensors; /* (num_tensors), by name */
    size_t num_tensors;
};

ph_status ph__layout_add(struct ph__layout *layout, const struct ph__layout_piece *piece);
void ph__layout_fini(struct ph__layout *layout);

/* Sorts the pieces and finds the tensors, after all pieces have been added. `error_status`, naming `where`,
 * tensor and range, unless the pieces of each tensor agree on dtype and shape and cover it exactly once. */
ph_status ph__layout_finish(struct ph__layout *layout, const char *where, ph_status error_status);
/* Returns the index of a name, or the number of tensors when there is none. */
size_t ph__layout_find(const struct ph__layout *layout, const char *name);

/* Writes and reads an area as members first_row, num_rows, first_column, num_columns, and a shape as an
 * array. Reading returns false for anything else. */
void ph__layout_set_area(struct ph__json *object, const struct ph__area *area);
bool ph__layout_get_area(const struct ph__json *object, struct ph__area *area_out);
struct ph__json *ph__layout_shape_json(const struct ph_shape *shape);
bool ph__layout_get_shape(const struct ph__json *array, struct ph_shape *shape_out);

/* ---- an open folder ---- */

/* A checkpoint's folder that is open, for functions that read its tensors. */

struct ph__folder_file {
    const char *name, *path;
    struct ph__safetensors *tensors;
};

struct ph__folder {
    struct ph__arena arena; /* paths */
    const char *path, *index_path;
    struct ph__json *index;        /* owns the names; NULL: a single file */
    struct ph__folder_file *files; /* (num_files), by name */
    size_t num_files;
    struct ph__layout layout;
    struct ph__meanwhile meanwhile;
};

/* Reads rows and columns of a logical tensor, without gaps, in the checkpoint's dtype. */
ph_status ph__folder_read_area(
    const struct ph__folder *folder, size_t index, const struct ph__area *area, void *bytes);

#endif
