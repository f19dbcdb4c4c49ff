/* Writes a checkpoint's folder: the writers' files, and their index.
 *
 * A description tells the index about a file. It is the JSON text {"file", "bytes", "sha256", "tensors":
 * [{"name", "stored", "dtype", "shape", and the area of a shard}]}. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/seal.h"
#include "base/memory/memory.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"
#include "store/safetensors.h"

static ph_status fail_path(const char *path)
{
    return ph__out_of_memory("a path in %s", path);
}

/* ---- the folder's former checkpoint ---- */

static ph_status remove_file(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return PH_OK;
    return ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static ph_status remove_part(void *argument, const char *name)
{
    const char *folder = argument;
    const bool is_part = begins_with(name, "part-") && strstr(name, ".safetensors") != NULL;
    if (!is_part && !begins_with(name, PH_FOLDER_INDEX)) /* also an index that was not written to its end */
        return PH_OK;
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, folder, name);
    const ph_status status = path != NULL ? remove_file(path) : fail_path(folder);
    ph__arena_fini(&arena);
    return status;
}

/* Removes the index durably, before the first of its files is removed. */
static ph_status remove_index(const char *folder)
{
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, folder, PH_FOLDER_INDEX);
    ph_status status = path != NULL ? remove_file(path) : fail_path(folder);
    if (status == PH_OK)
        status = ph__file_sync_name(path);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__folder_begin(const char *path)
{
    PH_TRY(ph__directory_create(path));
    PH_TRY(remove_index(path));
    PH_TRY(ph__directory_visit(path, remove_part, (void *)(uintptr_t)path));
    return ph__file_sync_name(path);
}

/* ---- a writer's file ---- */

/* Tells whether this writer writes the tensor. Others write the numbers of rows that they hold as well, and
 * shards without elements are not written. */
static bool is_written(const struct ph_tensor *tensor)
{
    if (!ph__tensor_is_shard(tensor))
        return true;
    return ph_shape_elements(&tensor->shape) > 0 && (tensor->shape.num_dims > 1 || tensor->first_column == 0);
}

/* Adds the index's entry for the tensor, and gives *tensor its name in the file. */
static ph_status describe_tensor(struct ph__arena *arena, struct ph_tensor *tensor, struct ph__json *tensors)
{
    const struct ph_shape shape = ph__tensor_whole(tensor);
    const struct ph__area area = ph__tensor_area(tensor), whole = ph__shape_area(&shape);
    struct ph__json *object = ph__json_object();
    ph__json_set_text(object, "name", tensor->name);
    if (memcmp(&area, &whole, sizeof area) != 0) {
        tensor->name = ph__area_name(arena, tensor->name, &shape, &area);
        ph__layout_set_area(object, &area);
    }
    ph__json_set_text(object, "stored", tensor->name);
    ph__json_set_text(object, "dtype", ph_dtype_name(tensor->dtype));
    ph__json_set(object, "shape", ph__layout_shape_json(&shape));
    ph__json_append(tensors, object);
    return tensor->name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

struct part_file {
    struct ph__arena arena;
    const char *name, *path;
    struct ph_tensor *tensors; /* with their names in the file */
    size_t num_tensors;
    struct ph__json *listed;
};

static ph_status list_tensors(
    struct part_file *file, const char *folder, size_t num_tensors, const struct ph_tensor *tensors)
{
    file->path = ph__path_join(&file->arena, folder, file->name);
    file->tensors = ph__arena_alloc_array(&file->arena, num_tensors + 1, sizeof *file->tensors);
    if (file->path == NULL || file->tensors == NULL)
        return fail_path(folder);
    for (size_t i = 0; i < num_tensors; i++) {
        struct ph_tensor *tensor = &file->tensors[file->num_tensors];
        *tensor = tensors[i];
        if (!is_written(tensor))
            continue;
        PH_TRY(describe_tensor(&file->arena, tensor, file->listed));
        file->num_tensors++;
    }
    return PH_OK;
}

/* Adds the bytes and the seal of the written file. */
static ph_status describe_bytes(const struct part_file *file, struct ph__json *description)
{
    struct ph__safetensors *written;
    PH_TRY(ph__safetensors_open(file->path, &written));
    ph__json_set_integer(description, "bytes", (int64_t)ph__safetensors_bytes(written));
    ph__json_set_text(description, PH_SEAL_KEY, ph__safetensors_metadata(written, PH_SEAL_KEY));
    ph__safetensors_close(written);
    return PH_OK;
}

static ph_status describe_file(const struct part_file *file, char **description_out)
{
    struct ph__json *description = ph__json_object();
    ph__json_set_text(description, "file", file->name);
    ph_status status = describe_bytes(file, description);
    ph__json_set(description, "tensors", file->listed);
    if (status == PH_OK)
        status = ph__json_text(description, 0, description_out);
    ph__json_destroy(description);
    return status;
}

ph_status ph__folder_write_part(const char *path, size_t writer, size_t num_writers, size_t num_tensors,
    const struct ph_tensor *tensors, char **description_out)
{
    struct part_file file = {.listed = ph__json_array()};
    file.name = ph__arena_printf(&file.arena, PH_FOLDER_FILE_FORMAT, writer + 1, num_writers);
    ph_status status = file.name != NULL ? list_tensors(&file, path, num_tensors, tensors) : fail_path(path);
    if (status == PH_OK)
        status = ph__safetensors_write(file.path, file.num_tensors, file.tensors, NULL);
    if (status == PH_OK)
        status = describe_file(&file, description_out);
    else
        ph__json_destroy(file.listed);
    ph__arena_fini(&file.arena);
    return status;
}

/* A commit of a checkpoint's index from the writers' descriptions. */

struct commit {
    const char *path;
    struct ph__arena arena;
    size_t num_writers;
    struct ph__json **descriptions; /* (num_writers), parsed; they own the names in the layout */
    struct ph__layout layout;
};

static ph_status fail_description(const struct commit *commit, size_t writer)
{
    return ph_fail(PH_ERROR_BUG, "%s: writer %zu of %zu sent no valid description of its file", commit->path,
        writer + 1, commit->num_writers);
}

/* ---- the writers' descriptions ---- */

static ph_status read_tensor(struct commit *commit, size_t writer, const struct ph__json *tensor)
{
    struct ph__layout_piece piece = {
        .name = ph__json_as_text(ph__json_get(tensor, "name"), NULL),
        .stored = ph__json_as_text(ph__json_get(tensor, "stored"), NULL),
        .is_cut = ph__json_get(tensor, "first_row") != NULL,
        .file = writer,
    };
    if (piece.name == NULL || piece.stored == NULL ||
        !ph__safetensors_dtype(ph__json_as_text(ph__json_get(tensor, "dtype"), ""), &piece.dtype) ||
        !ph__layout_get_shape(ph__json_get(tensor, "shape"), &piece.shape))
        return fail_description(commit, writer);
    const struct ph__area whole = ph__shape_area(&piece.shape);
    piece.area = whole;
    if (piece.is_cut &&
        (!ph__layout_get_area(tensor, &piece.area) || !ph__area_is_within(&piece.area, &whole)))
        return fail_description(commit, writer);
    return ph__layout_add(&commit->layout, &piece);
}

/* Checks that the file is there with the writer's size, as seen from this process, which may run on another
 * host. */
static ph_status check_file(struct commit *commit, size_t writer, const struct ph__json *description)
{
    const char *name =
        ph__arena_printf(&commit->arena, PH_FOLDER_FILE_FORMAT, writer + 1, commit->num_writers);
    const char *path = name != NULL ? ph__path_join(&commit->arena, commit->path, name) : NULL;
    if (path == NULL)
        return ph__out_of_memory("a path in %s", commit->path);
    const char *said = ph__json_as_text(ph__json_get(description, "file"), "");
    if (strcmp(said, name) != 0)
        return fail_description(commit, writer);
    uint64_t bytes;
    const int64_t said_bytes = ph__json_as_integer(ph__json_get(description, "bytes"), -1);
    if (ph__file_size(path, &bytes) != PH_OK || (int64_t)bytes != said_bytes)
        return ph_fail(
            PH_ERROR_DISK, "%s: the file is missing, or its size is not what its writer wrote", path);
    return PH_OK;
}

static ph_status read_description(struct commit *commit, size_t writer, const char *text)
{
    PH_TRY(ph__json_parse(text, strlen(text), commit->path, PH_ERROR_BUG, &commit->descriptions[writer]));
    const struct ph__json *description = commit->descriptions[writer];
    const struct ph__json *tensors = ph__json_get(description, "tensors");
    PH_TRY(check_file(commit, writer, description));
    for (size_t i = 0; i < ph__json_size(tensors); i++)
        PH_TRY(read_tensor(commit, writer, ph__json_at(tensors, i)));
    return PH_OK;
}

static ph_status read_descriptions(struct commit *commit, const char *const *descriptions)
{
    commit->descriptions = calloc(commit->num_writers + 1, sizeof(struct ph__json *));
    if (commit->descriptions == NULL)
        return ph__out_of_memory("the index of %s", commit->path);
    for (size_t writer = 0; writer < commit->num_writers; writer++)
        PH_TRY(read_description(commit, writer, descriptions[writer]));
    return ph__layout_finish(&commit->layout, commit->path, PH_ERROR_BUG);
}

/* ---- the index ---- */

static const char *file_of(const struct commit *commit, size_t writer)
{
    return ph__json_as_text(ph__json_get(commit->descriptions[writer], "file"), "");
}

static uint64_t total_bytes(const struct commit *commit)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < commit->layout.num_pieces; i++) {
        const struct ph__layout_piece *piece = &commit->layout.pieces[i];
        bytes += (uint64_t)piece->area.num_rows * piece->area.num_columns * ph_dtype_size(piece->dtype);
    }
    return bytes;
}

static struct ph__json *metadata_json(const struct commit *commit, const char *const *metadata)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_integer(object, "total_size", (int64_t)total_bytes(commit));
    for (size_t i = 0; metadata != NULL && metadata[i] != NULL; i += 2) {
        assert(strcmp(metadata[i], "total_size") != 0);
        ph__json_set_text(object, metadata[i], metadata[i + 1]);
    }
    return object;
}

static ph_status set_weight_map(const struct commit *commit, struct ph__json *index)
{
    struct ph__json *map = ph__json_object();
    ph__json_set(index, "weight_map", map);
    for (size_t i = 0; i < commit->layout.num_pieces; i++) {
        const struct ph__layout_piece *piece = &commit->layout.pieces[i];
        if (ph__json_get(map, piece->stored) != NULL)
            return ph_fail(PH_ERROR_BUG, "%s: tensor '%s' is stored twice", commit->path, piece->stored);
        ph__json_set_text(map, piece->stored, file_of(commit, piece->file));
    }
    return PH_OK;
}

static struct ph__json *cut_json(const struct commit *commit, const struct ph__layout_tensor *tensor)
{
    struct ph__json *object = ph__json_object(), *pieces = ph__json_array();
    ph__json_set_text(object, "dtype", ph_dtype_name(tensor->pieces[0].dtype));
    ph__json_set(object, "shape", ph__layout_shape_json(&tensor->pieces[0].shape));
    ph__json_set(object, "pieces", pieces);
    for (size_t i = 0; i < tensor->num_pieces; i++) {
        const struct ph__layout_piece *piece = &tensor->pieces[i];
        struct ph__json *entry = ph__json_object();
        ph__json_set_text(entry, "file", file_of(commit, piece->file));
        ph__json_set_text(entry, "name", piece->stored);
        ph__layout_set_area(entry, &piece->area);
        ph__json_append(pieces, entry);
    }
    return object;
}

static struct ph__json *parts_json(const struct commit *commit)
{
    struct ph__json *parts = ph__json_object();
    for (size_t i = 0; i < commit->layout.num_tensors; i++) {
        const struct ph__layout_tensor *tensor = &commit->layout.tensors[i];
        if (tensor->pieces[0].is_cut)
            ph__json_set(parts, tensor->pieces[0].name, cut_json(commit, tensor));
    }
    return parts;
}

static struct ph__json *files_json(const struct commit *commit)
{
    struct ph__json *files = ph__json_object();
    for (size_t writer = 0; writer < commit->num_writers; writer++) {
        const struct ph__json *description = commit->descriptions[writer];
        struct ph__json *file = ph__json_object();
        ph__json_set_integer(file, "bytes", ph__json_as_integer(ph__json_get(description, "bytes"), 0));
        ph__json_set_text(file, PH_SEAL_KEY, ph__json_as_text(ph__json_get(description, PH_SEAL_KEY), NULL));
        ph__json_set(files, file_of(commit, writer), file);
    }
    return files;
}

static ph_status write_index(struct commit *commit, const char *const *metadata)
{
    const char *path = ph__path_join(&commit->arena, commit->path, PH_FOLDER_INDEX);
    if (path == NULL)
        return ph__out_of_memory("a path in %s", commit->path);
    struct ph__json *index = ph__sealed_json_object();
    ph__json_set(index, "metadata", metadata_json(commit, metadata));
    ph_status status = set_weight_map(commit, index);
    ph__json_set(index, "parts", parts_json(commit));
    ph__json_set(index, "files", files_json(commit));
    if (status == PH_OK)
        status = ph__sealed_json_write(index, path);
    ph__json_destroy(index);
    return status;
}

ph_status ph__folder_commit(
    const char *path, size_t num_writers, const char *const *descriptions, const char *const *metadata)
{
    struct commit commit = {.path = path, .num_writers = num_writers};
    ph_status status = read_descriptions(&commit, descriptions);
    if (status == PH_OK)
        status = write_index(&commit, metadata);
    ph__layout_fini(&commit.layout);
    for (size_t i = 0; commit.descriptions != NULL && i < num_writers; i++)
        if (commit.descriptions[i] != NULL)
            ph__json_destroy(commit.descriptions[i]);
    free(commit.descriptions);
    ph__arena_fini(&commit.arena);
    return status;
}
