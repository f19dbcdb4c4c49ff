/* Opens a checkpoint's folder. Compares all that the index says with the files before using it. A single file
 * is a folder whose tensors are all whole. */
#include "store/checkpoint_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/seal.h"
#include "base/memory/memory.h"
#include "store/checkpoint_folder.h"

#define MAX_INDEX_BYTES ((uint64_t)1 << 30)

/* ---- files ---- */

static int compare_files(const void *a, const void *b)
{
    const struct ph__folder_file *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Checks that the file is the one that the index was made for. */
static ph_status check_file(const struct ph__folder_file *file, const struct ph__json *said)
{
    const char *seal = ph__json_as_text(ph__json_get(said, PH_SEAL_KEY), "");
    const int64_t bytes = ph__json_as_integer(ph__json_get(said, "bytes"), -1);
    if (!ph__safetensors_is_sealed(file->tensors) ||
        strcmp(ph__safetensors_metadata(file->tensors, PH_SEAL_KEY), seal) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the file does not have the seal that the folder's index names: it was replaced or damaged",
            file->path);
    if ((int64_t)ph__safetensors_bytes(file->tensors) != bytes)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the file has %llu bytes, but the folder's index says %lld",
            file->path, (unsigned long long)ph__safetensors_bytes(file->tensors), (long long)bytes);
    return PH_OK;
}

static ph_status open_file(struct ph__folder *folder, const char *name, const struct ph__json *said)
{
    struct ph__folder_file *file = &folder->files[folder->num_files];
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' must be the name of a file in the folder",
            folder->index_path, name);
    *file = (struct ph__folder_file){.name = name, .path = ph__path_join(&folder->arena, folder->path, name)};
    if (file->path == NULL)
        return ph__out_of_memory("cannot open %s", folder->path);
    PH_TRY(ph__safetensors_open(file->path, &file->tensors));
    folder->num_files++;
    return check_file(file, said);
}

static ph_status open_files(struct ph__folder *folder)
{
    const struct ph__json *files = ph__json_get(folder->index, "files");
    struct ph__json_member member = {0};
    folder->files = calloc(ph__json_size(files) + 1, sizeof *folder->files);
    if (folder->files == NULL)
        return ph__out_of_memory("cannot open %s", folder->path);
    while (ph__json_is_object(files) && ph__json_next_member(files, &member))
        PH_TRY(open_file(folder, member.key, member.value));
    qsort(folder->files, folder->num_files, sizeof *folder->files, compare_files);
    return PH_OK;
}

/* ---- tensors of the files ---- */

/* Returns a file's tensor as a whole one; the index may make it a part later. */
static struct ph__layout_piece whole_piece(const struct ph__folder *folder, size_t file, size_t index)
{
    const struct ph_tensor tensor = ph__safetensors_tensor(folder->files[file].tensors, index);
    return (struct ph__layout_piece){.name = tensor.name,
        .stored = tensor.name,
        .dtype = tensor.dtype,
        .shape = tensor.shape,
        .area = ph__shape_area(&tensor.shape),
        .file = file,
        .index = index};
}

static ph_status add_stored(struct ph__folder *folder, const char *stored, const char *file_name)
{
    const struct ph__folder_file key = {.name = file_name != NULL ? file_name : ""};
    const struct ph__folder_file *file =
        bsearch(&key, folder->files, folder->num_files, sizeof *folder->files, compare_files);
    if (file == NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is in a file that the index does not list",
            folder->index_path, stored);
    const size_t index = ph__safetensors_find(file->tensors, stored);
    if (index == ph__safetensors_num_tensors(file->tensors))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is missing", file->path, stored);
    const struct ph__layout_piece piece = whole_piece(folder, (size_t)(file - folder->files), index);
    return ph__layout_add(&folder->layout, &piece);
}

static int compare_stored(const void *a, const void *b)
{
    const struct ph__layout_piece *left = a, *right = b;
    return strcmp(left->stored, right->stored);
}

static ph_status read_weight_map(struct ph__folder *folder)
{
    const struct ph__json *map = ph__json_get(folder->index, "weight_map");
    struct ph__json_member member = {0};
    size_t num_in_files = 0;
    while (ph__json_is_object(map) && ph__json_next_member(map, &member))
        PH_TRY(add_stored(folder, member.key, ph__json_as_text(member.value, NULL)));
    for (size_t i = 0; i < folder->num_files; i++)
        num_in_files += ph__safetensors_num_tensors(folder->files[i].tensors);
    if (num_in_files != folder->layout.num_pieces)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the index names %zu tensors, but the files have %zu",
            folder->index_path, folder->layout.num_pieces, num_in_files);
    if (folder->layout.num_pieces > 0)
        qsort(
            folder->layout.pieces, folder->layout.num_pieces, sizeof *folder->layout.pieces, compare_stored);
    return PH_OK;
}

/* ---- tensors that are cut ---- */

static ph_status fail_part(const struct ph__folder *folder, const char *name, const char *stored)
{
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' is not a part of '%s'", folder->index_path, stored, name);
}

/* Reads the entry of a cut tensor's piece: the area of the tensor that a file has. */
static ph_status read_piece(
    struct ph__folder *folder, const char *name, const struct ph_shape *shape, const struct ph__json *said)
{
    struct ph__layout *layout = &folder->layout;
    const struct ph__layout_piece key = {.stored = ph__json_as_text(ph__json_get(said, "name"), "")};
    const char *file = ph__json_as_text(ph__json_get(said, "file"), "");
    struct ph__layout_piece *piece =
        layout->num_pieces > 0
            ? bsearch(&key, layout->pieces, layout->num_pieces, sizeof *layout->pieces, compare_stored)
            : NULL;
    const struct ph__area whole = ph__shape_area(shape);
    struct ph__area area;
    if (piece == NULL || piece->is_cut || strcmp(folder->files[piece->file].name, file) != 0 ||
        !ph__layout_get_area(said, &area) || !ph__area_is_within(&area, &whole))
        return fail_part(folder, name, key.stored);
    const struct ph__area stored = ph__shape_area(&piece->shape);
    if (piece->shape.num_dims != shape->num_dims || stored.num_rows != area.num_rows ||
        stored.num_columns != area.num_columns)
        return fail_part(folder, name, key.stored);
    piece->name = name;
    piece->shape = *shape;
    piece->area = area;
    piece->is_cut = true;
    return PH_OK;
}

/* Reads the entry of a cut tensor. Only vectors and matrices are cut. */
static ph_status read_cut(struct ph__folder *folder, const char *name, const struct ph__json *said)
{
    const struct ph__json *pieces = ph__json_get(said, "pieces");
    struct ph_shape shape;
    if (!ph__layout_get_shape(ph__json_get(said, "shape"), &shape) || shape.num_dims == 0 ||
        shape.num_dims > 2 || ph__json_size(pieces) == 0)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: tensor '%s' is not {dtype, shape, pieces}", folder->index_path, name);
    for (size_t i = 0; i < ph__json_size(pieces); i++)
        PH_TRY(read_piece(folder, name, &shape, ph__json_at(pieces, i)));
    return PH_OK;
}

static ph_status check_dtype(const struct ph__folder *folder, const char *name, const struct ph__json *said)
{
    const struct ph__layout_tensor *tensor = &folder->layout.tensors[ph__layout_find(&folder->layout, name)];
    const char *dtype = ph__json_as_text(ph__json_get(said, "dtype"), "");
    if (strcmp(dtype, ph_dtype_name(tensor->pieces[0].dtype)) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' has dtype '%.32s', but the files have %s",
        folder->index_path, name, dtype, ph_dtype_name(tensor->pieces[0].dtype));
}

static ph_status read_parts(struct ph__folder *folder)
{
    const struct ph__json *parts = ph__json_get(folder->index, "parts");
    struct ph__json_member member = {0};
    while (ph__json_is_object(parts) && ph__json_next_member(parts, &member))
        PH_TRY(read_cut(folder, member.key, member.value));
    PH_TRY(ph__layout_finish(&folder->layout, folder->index_path, PH_ERROR_CHECKPOINT));
    member = (struct ph__json_member){0};
    while (ph__json_is_object(parts) && ph__json_next_member(parts, &member))
        PH_TRY(check_dtype(folder, member.key, member.value));
    return PH_OK;
}

/* ---- opening ---- */

static ph_status read_index(struct ph__folder *folder)
{
    folder->index_path = ph__path_join(&folder->arena, folder->path, PH_FOLDER_INDEX);
    if (folder->index_path == NULL)
        return ph__out_of_memory("cannot open %s", folder->path);
    if (!ph__file_exists(folder->index_path))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: not a checkpoint: " PH_FOLDER_INDEX " is missing", folder->path);
    return ph__sealed_json_read(folder->index_path, PH_ERROR_CHECKPOINT, MAX_INDEX_BYTES, &folder->index);
}

static ph_status open_index(struct ph__folder *folder)
{
    PH_TRY(read_index(folder));
    PH_TRY(open_files(folder));
    PH_TRY(read_weight_map(folder));
    return read_parts(folder);
}

/* Opens a single file with one of the two functions that open a safetensors file. */
static ph_status open_only_file(
    struct ph__folder *folder, ph_status (*open)(const char *path, struct ph__safetensors **file_out))
{
    folder->files = calloc(1, sizeof *folder->files);
    if (folder->files == NULL)
        return ph__out_of_memory("cannot open %s", folder->path);
    folder->files[0] = (struct ph__folder_file){.name = folder->path, .path = folder->path};
    PH_TRY(open(folder->path, &folder->files[0].tensors));
    folder->num_files = 1;
    return PH_OK;
}

static ph_status open_single(struct ph__folder *folder)
{
    PH_TRY(open_only_file(folder, ph__safetensors_open));
    for (size_t i = 0; i < ph__safetensors_num_tensors(folder->files[0].tensors); i++) {
        const struct ph__layout_piece piece = whole_piece(folder, 0, i);
        PH_TRY(ph__layout_add(&folder->layout, &piece));
    }
    return ph__layout_finish(&folder->layout, folder->path, PH_ERROR_CHECKPOINT);
}

static ph_status open_whole(struct ph__folder *folder)
{
    return ph__directory_exists(folder->path) ? open_index(folder) : open_single(folder);
}

static ph_status open_metadata(struct ph__folder *folder)
{
    return ph__directory_exists(folder->path) ? read_index(folder)
                                              : open_only_file(folder, ph__safetensors_open_metadata);
}

static ph_status open_path(
    const char *path, ph_status (*open)(struct ph__folder *folder), struct ph__folder **folder_out)
{
    struct ph__folder *folder = calloc(1, sizeof *folder);
    if (folder == NULL)
        return ph__out_of_memory("cannot open %s", path);
    folder->path = ph__arena_strdup(&folder->arena, path);
    const ph_status status = folder->path != NULL ? open(folder) : (ph_status)PH_ERROR_MEMORY;
    if (status != PH_OK) {
        ph__folder_close(folder);
        return status;
    }
    *folder_out = folder;
    return PH_OK;
}

ph_status ph__folder_open(const char *path, struct ph__folder **folder_out)
{
    return open_path(path, open_whole, folder_out);
}

ph_status ph__folder_open_metadata(const char *path, struct ph__folder **folder_out)
{
    return open_path(path, open_metadata, folder_out);
}

void ph__folder_close(struct ph__folder *folder)
{
    if (folder == NULL)
        return;
    for (size_t i = 0; i < folder->num_files; i++)
        ph__safetensors_close(folder->files[i].tensors);
    free(folder->files);
    ph__layout_fini(&folder->layout);
    if (folder->index != NULL)
        ph__json_destroy(folder->index);
    ph__arena_fini(&folder->arena);
    free(folder);
}

void ph__folder_set_meanwhile(struct ph__folder *folder, const struct ph__meanwhile *meanwhile)
{
    folder->meanwhile = meanwhile != NULL ? *meanwhile : (struct ph__meanwhile){0};
}

/* ---- contents ---- */

size_t ph__folder_num_files(const struct ph__folder *folder)
{
    return folder->num_files;
}

ph_status ph__folder_check_seals(const struct ph__folder *folder, size_t first, size_t step)
{
    for (size_t i = first; i < folder->num_files; i += step)
        PH_TRY(ph__safetensors_check_seal(folder->files[i].tensors, &folder->meanwhile));
    return PH_OK;
}

size_t ph__folder_num_tensors(const struct ph__folder *folder)
{
    return folder->layout.num_tensors;
}

struct ph_tensor ph__folder_tensor(const struct ph__folder *folder, size_t index)
{
    const struct ph__layout_piece *piece = &folder->layout.tensors[index].pieces[0];
    return (struct ph_tensor){.name = piece->name, .dtype = piece->dtype, .shape = piece->shape};
}

bool ph__folder_checksum(const struct ph__folder *folder, size_t index, uint64_t *checksum_out)
{
    const struct ph__layout_tensor *tensor = &folder->layout.tensors[index];
    const struct ph__layout_piece *piece = &tensor->pieces[0];
    return tensor->num_pieces == 1 &&
           ph__safetensors_checksum(folder->files[piece->file].tensors, piece->index, checksum_out);
}

size_t ph__folder_find(const struct ph__folder *folder, const char *name)
{
    return ph__layout_find(&folder->layout, name);
}

static const struct ph__json *metadata_of(const struct ph__folder *folder)
{
    return ph__json_get(folder->index, "metadata");
}

const char *ph__folder_metadata(const struct ph__folder *folder, const char *key)
{
    if (folder->index == NULL)
        return ph__safetensors_metadata(folder->files[0].tensors, key);
    return ph__json_as_text(ph__json_get(metadata_of(folder), key), NULL);
}

bool ph__folder_next_metadata(const struct ph__folder *folder, struct ph__json_member *member)
{
    if (folder->index == NULL)
        return ph__safetensors_next_metadata(folder->files[0].tensors, member);
    return ph__json_next_member(metadata_of(folder), member);
}

uint64_t ph__folder_tensor_bytes(const struct ph__folder *folder)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < folder->layout.num_tensors; i++) {
        const struct ph_tensor tensor = ph__folder_tensor(folder, i);
        bytes += ph_shape_elements(&tensor.shape) * ph_dtype_size(tensor.dtype);
    }
    return bytes;
}
