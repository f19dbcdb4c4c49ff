/* Writing a checkpoint's folder: the writers' files, and the index over them.
 *
 * A description is the JSON text {"file", "bytes", "sha256", "tensors": [{"name", "stored", "dtype", "shape", and the
 * area of a part}]}: what the index has to know of a file. */
#include <errno.h>
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
    return ph_fail(PH_ERROR_MEMORY, "no memory for a path in %s", path);
}

/* ---- what was there before --------------------------------------------------------------------------------- */

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
    if (!is_part && !begins_with(name, PH_FOLDER_INDEX)) /* the index that was not written to its end */
        return PH_OK;
    struct ph_arena arena = {0};
    const char *path = ph__path_join(&arena, folder, name);
    const ph_status status = path != NULL ? remove_file(path) : fail_path(folder);
    ph__arena_fini(&arena);
    return status;
}

/* The index is gone for good before the first of its files is. */
static ph_status remove_index(const char *folder)
{
    struct ph_arena arena = {0};
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

/* ---- a writer's file --------------------------------------------------------------------------------------- */

/* What is written by this writer: not the numbers of rows that others have as well, and no part without elements. */
static bool is_written(const struct ph_tensor *tensor)
{
    if (!ph__tensor_is_part(tensor))
        return true;
    return ph_shape_elements(&tensor->shape) > 0 && (tensor->shape.rank > 1 || tensor->first_column == 0);
}

/* The tensor as the file names it, in *tensor, and what the index says of it. */
static ph_status describe_tensor(struct ph_arena *arena, struct ph_tensor *tensor, struct ph_json *tensors)
{
    const struct ph_shape shape = ph__tensor_whole(tensor);
    const struct ph_area area = ph__tensor_area(tensor), whole = ph__shape_area(&shape);
    struct ph_json *object = ph__json_object();
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
    struct ph_arena arena;
    const char *name, *path;
    struct ph_tensor *tensors; /* as they are stored */
    size_t num_tensors;
    struct ph_json *listed;
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

/* Bytes and seal of the file that was written. */
static ph_status describe_bytes(const struct part_file *file, struct ph_json *description)
{
    struct ph_safetensors *written;
    PH_TRY(ph__safetensors_open(file->path, &written));
    ph__json_set_integer(description, "bytes", (int64_t)ph__safetensors_bytes(written));
    ph__json_set_text(description, PH_SEAL_KEY, ph__safetensors_metadata(written, PH_SEAL_KEY));
    ph__safetensors_close(written);
    return PH_OK;
}

static ph_status describe_file(const struct part_file *file, char **description_out)
{
    struct ph_json *description = ph__json_object();
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
