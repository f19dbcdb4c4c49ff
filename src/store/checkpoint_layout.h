/* Which pieces the tensors of a checkpoint's folder are made of: what an index says, whether it is being
 * written or read. */
#ifndef PH_STORE_CHECKPOINT_LAYOUT_H
#define PH_STORE_CHECKPOINT_LAYOUT_H

#include "base/format/json.h"
#include "base/thread/stop.h"
#include "store/safetensors.h"
#include "store/tensor_shard.h"

#define PH_FOLDER_INDEX "model.safetensors.index.json"
#define PH_FOLDER_FILE_FORMAT "part-%05zu-of-%05zu.safetensors" /* writers counted from 1 */

/* A tensor of a file, which is a logical one or an area of it. Names are borrowed. */
struct ph__layout_piece {
    const char *name;   /* of the logical tensor */
    const char *stored; /* in the file */
    enum ph_dtype dtype;
    struct ph_shape shape;
    struct ph__area area; /* of the logical tensor, which it is within */
    bool is_cut;          /* stored as a shard */
    size_t file, index;   /* index: of the tensor in the file */
};

/* Pieces that one after the other are those of one tensor. */
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

/* After all have been added: sorts the pieces and finds the tensors. `error_status`, naming `where`, tensor
 * and range, unless the pieces of each agree on it and are all of it, once. */
ph_status ph__layout_finish(struct ph__layout *layout, const char *where, ph_status error_status);
/* Index of a name, or the number of tensors when there is none. */
size_t ph__layout_find(const struct ph__layout *layout, const char *name);

/* An area as members first_row, num_rows, first_column, num_columns, and a shape as an array. Reading: false
 * for what is none. */
void ph__layout_set_area(struct ph__json *object, const struct ph__area *area);
bool ph__layout_get_area(const struct ph__json *object, struct ph__area *area_out);
struct ph__json *ph__layout_shape_json(const struct ph_shape *shape);
bool ph__layout_get_shape(const struct ph__json *array, struct ph_shape *shape_out);

/* ---- an open folder ---- */

/* A checkpoint's folder that is open: for what reads its tensors. */

struct ph__folder_file {
    const char *name, *path;
    struct ph__safetensors *tensors;
};

struct ph__folder {
    struct ph__arena arena; /* paths */
    const char *path, *index_path;
    struct ph__json *index;        /* owns the names; NULL: of a single file */
    struct ph__folder_file *files; /* (num_files), by name */
    size_t num_files;
    struct ph__layout layout;
    struct ph__meanwhile meanwhile;
};

/* Rows and columns of a logical tensor, without gaps, as its dtype has them. */
ph_status ph__folder_read_area(
    const struct ph__folder *folder, size_t index, const struct ph__area *area, void *bytes);

#endif
