/* The index of a checkpoint's folder, made of what the writers said of their files. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/seal.h"
#include "base/memory/memory.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"
#include "store/safetensors.h"

struct commit {
    const char *path;
    struct ph_arena arena;
    size_t num_writers;
    struct ph_json **descriptions; /* (num_writers), parsed; they own what the layout names */
    struct ph_layout layout;
};

static ph_status fail_description(const struct commit *commit, size_t writer)
{
    return ph_fail(PH_ERROR_BUG, "%s: what writer %zu of %zu says of its file is not understood",
        commit->path, writer + 1, commit->num_writers);
}

/* ---- what the writers said --------------------------------------------------------------------------------- */

static ph_status read_tensor(struct commit *commit, size_t writer, const struct ph_json *tensor)
{
    struct ph_layout_piece piece = {
        .name = ph__json_as_text(ph__json_get(tensor, "name"), NULL),
        .stored = ph__json_as_text(ph__json_get(tensor, "stored"), NULL),
        .is_cut = ph__json_get(tensor, "first_row") != NULL,
        .file = writer,
    };
    if (piece.name == NULL || piece.stored == NULL ||
        !ph__safetensors_dtype(ph__json_as_text(ph__json_get(tensor, "dtype"), ""), &piece.dtype) ||
        !ph__layout_get_shape(ph__json_get(tensor, "shape"), &piece.shape))
        return fail_description(commit, writer);
    const struct ph_area whole = ph__shape_area(&piece.shape);
    piece.area = whole;
    if (piece.is_cut &&
        (!ph__layout_get_area(tensor, &piece.area) || !ph__area_is_within(&piece.area, &whole)))
        return fail_description(commit, writer);
    return ph__layout_add(&commit->layout, &piece);
}

/* The file is there, as the writer left it: seen from here, which may be another host. */
static ph_status check_file(struct commit *commit, size_t writer, const struct ph_json *description)
{
    const char *name =
        ph__arena_printf(&commit->arena, PH_FOLDER_FILE_FORMAT, writer + 1, commit->num_writers);
    const char *path = name != NULL ? ph__path_join(&commit->arena, commit->path, name) : NULL;
    if (path == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a path in %s", commit->path);
    const char *said = ph__json_as_text(ph__json_get(description, "file"), "");
    if (strcmp(said, name) != 0)
        return fail_description(commit, writer);
    uint64_t bytes;
    const int64_t said_bytes = ph__json_as_integer(ph__json_get(description, "bytes"), -1);
    if (ph__file_size(path, &bytes) != PH_OK || (int64_t)bytes != said_bytes)
        return ph_fail(PH_ERROR_DISK, "%s: not the file that its writer has written", path);
    return PH_OK;
}

static ph_status read_description(struct commit *commit, size_t writer, const char *text)
{
    PH_TRY(ph__json_parse(text, strlen(text), commit->path, PH_ERROR_BUG, &commit->descriptions[writer]));
    const struct ph_json *description = commit->descriptions[writer];
    const struct ph_json *tensors = ph__json_get(description, "tensors");
    PH_TRY(check_file(commit, writer, description));
    for (size_t i = 0; i < ph__json_size(tensors); i++)
        PH_TRY(read_tensor(commit, writer, ph__json_at(tensors, i)));
    return PH_OK;
}

static ph_status read_descriptions(struct commit *commit, const char *const *descriptions)
{
    commit->descriptions = calloc(commit->num_writers + 1, sizeof(struct ph_json *));
    if (commit->descriptions == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the index of %s", commit->path);
    for (size_t writer = 0; writer < commit->num_writers; writer++)
        PH_TRY(read_description(commit, writer, descriptions[writer]));
    return ph__layout_finish(&commit->layout, commit->path, PH_ERROR_BUG);
}

/* ---- the index --------------------------------------------------------------------------------------------- */

static const char *file_of(const struct commit *commit, size_t writer)
{
    return ph__json_as_text(ph__json_get(commit->descriptions[writer], "file"), "");
}

static uint64_t total_bytes(const struct commit *commit)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < commit->layout.num_pieces; i++) {
        const struct ph_layout_piece *piece = &commit->layout.pieces[i];
        bytes += (uint64_t)piece->area.num_rows * piece->area.num_columns * ph_dtype_size(piece->dtype);
    }
    return bytes;
}

static struct ph_json *metadata_json(const struct commit *commit, const char *const *metadata)
{
    struct ph_json *object = ph__json_object();
    ph__json_set_integer(object, "total_size", (int64_t)total_bytes(commit));
    for (size_t i = 0; metadata != NULL && metadata[i] != NULL; i += 2) {
        assert(strcmp(metadata[i], "total_size") != 0);
        ph__json_set_text(object, metadata[i], metadata[i + 1]);
    }
    return object;
}

static ph_status set_weight_map(const struct commit *commit, struct ph_json *index)
{
    struct ph_json *map = ph__json_object();
    ph__json_set(index, "weight_map", map);
    for (size_t i = 0; i < commit->layout.num_pieces; i++) {
        const struct ph_layout_piece *piece = &commit->layout.pieces[i];
        if (ph__json_get(map, piece->stored) != NULL)
            return ph_fail(PH_ERROR_BUG, "%s: %s is there twice", commit->path, piece->stored);
        ph__json_set_text(map, piece->stored, file_of(commit, piece->file));
    }
    return PH_OK;
}

static struct ph_json *cut_json(const struct commit *commit, const struct ph_layout_tensor *tensor)
{
    struct ph_json *object = ph__json_object(), *pieces = ph__json_array();
    ph__json_set_text(object, "dtype", ph_dtype_name(tensor->pieces[0].dtype));
    ph__json_set(object, "shape", ph__layout_shape_json(&tensor->pieces[0].shape));
    ph__json_set(object, "pieces", pieces);
    for (size_t i = 0; i < tensor->num_pieces; i++) {
        const struct ph_layout_piece *piece = &tensor->pieces[i];
        struct ph_json *entry = ph__json_object();
        ph__json_set_text(entry, "file", file_of(commit, piece->file));
        ph__json_set_text(entry, "name", piece->stored);
        ph__layout_set_area(entry, &piece->area);
        ph__json_append(pieces, entry);
    }
    return object;
}

static struct ph_json *parts_json(const struct commit *commit)
{
    struct ph_json *parts = ph__json_object();
    for (size_t i = 0; i < commit->layout.num_tensors; i++) {
        const struct ph_layout_tensor *tensor = &commit->layout.tensors[i];
        if (tensor->pieces[0].is_cut)
            ph__json_set(parts, tensor->pieces[0].name, cut_json(commit, tensor));
    }
    return parts;
}

static struct ph_json *files_json(const struct commit *commit)
{
    struct ph_json *files = ph__json_object();
    for (size_t writer = 0; writer < commit->num_writers; writer++) {
        const struct ph_json *description = commit->descriptions[writer];
        struct ph_json *file = ph__json_object();
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
        return ph_fail(PH_ERROR_MEMORY, "no memory for a path in %s", commit->path);
    struct ph_json *index = ph__sealed_json_object();
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
