#include "data/source/fingerprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json_fields.h"
#include "base/memory/memory.h"

#define CHECK_BYTES ((size_t)1 << 20)
#define SINCE "the training began"

/* ---- looking ---- */

static ph_status add_path(
    struct ph__fingerprint *fingerprint, const char *path, const struct ph__input_beside *beside)
{
    struct ph__input_files files;
    PH_TRY(ph__input_files_look(&fingerprint->arena, path, beside, &files));
    for (size_t i = 0; i < files.count; i++)
        fingerprint->files[fingerprint->num_files++].file = files.items[i];
    fingerprint->first[++fingerprint->num_paths] = fingerprint->num_files;
    return PH_OK;
}

static ph_status add_paths(struct ph__fingerprint *fingerprint, const char *const *paths, size_t num_paths,
    const struct ph__input_beside *beside)
{
    fingerprint->files = ph__arena_alloc_array(
        &fingerprint->arena, num_paths * PH_INPUT_MAX_FILES, sizeof *fingerprint->files);
    fingerprint->first =
        ph__arena_alloc_array(&fingerprint->arena, num_paths + 1, sizeof *fingerprint->first);
    if (fingerprint->files == NULL || fingerprint->first == NULL)
        return PH_ERROR_MEMORY;
    memset(fingerprint->files, 0, num_paths * PH_INPUT_MAX_FILES * sizeof *fingerprint->files);
    fingerprint->first[0] = 0;
    for (size_t i = 0; i < num_paths; i++)
        PH_TRY(add_path(fingerprint, paths[i], beside));
    return PH_OK;
}

ph_status ph__fingerprint_look(
    struct ph__fingerprint *fingerprint, const char *path, const struct ph__input_beside *beside)
{
    const char **paths;
    size_t num_paths;
    *fingerprint = (struct ph__fingerprint){.num_files = 0};
    if (ph__file_is_pipe(path))
        return PH_OK;
    if (ph__input_is_prepared(path)) {
        const char *manifest = ph__path_join(&fingerprint->arena, path, PH_MANIFEST_NAME);
        return manifest != NULL ? add_paths(fingerprint, &manifest, 1, &(struct ph__input_beside){0})
                                : (ph_status)PH_ERROR_MEMORY;
    }
    PH_TRY(ph__input_list(&fingerprint->arena, path, &paths, &num_paths));
    return add_paths(fingerprint, paths, num_paths, beside);
}

void ph__fingerprint_fini(struct ph__fingerprint *fingerprint)
{
    for (size_t i = 0; i < fingerprint->num_files; i++)
        ph__running_checksum_fini(&fingerprint->files[i].checksum);
    ph__arena_fini(&fingerprint->arena);
    *fingerprint = (struct ph__fingerprint){.num_files = 0};
}

/* ---- while rows are read ---- */

/* Updates the record of a file's reading from its checksum. */
static void settle(struct ph__read_file *file)
{
    if (file->checksum.state == NULL || file->checksum.num_bytes == file->read.num_bytes)
        return;
    file->read.num_bytes = file->checksum.num_bytes;
    file->read.checksum = ph__running_checksum_value(&file->checksum);
}

static void leave_front(struct ph__fingerprint *fingerprint)
{
    for (size_t i = fingerprint->first[fingerprint->front]; i < fingerprint->first[fingerprint->front + 1];
         i++) {
        settle(&fingerprint->files[i]);
        ph__running_checksum_fini(&fingerprint->files[i].checksum);
    }
}

ph_status ph__fingerprint_begin(struct ph__fingerprint *fingerprint, size_t path)
{
    const size_t next = fingerprint->has_front ? fingerprint->front + 1 : 0;
    if (path != next || path >= fingerprint->num_paths)
        return PH_OK;
    if (fingerprint->has_front)
        leave_front(fingerprint);
    fingerprint->front = path;
    fingerprint->has_front = true;
    for (size_t i = fingerprint->first[path]; i < fingerprint->first[path + 1]; i++)
        PH_TRY(ph__running_checksum_init(&fingerprint->files[i].checksum));
    return PH_OK;
}

struct ph__running_checksum *ph__fingerprint_checksum(
    struct ph__fingerprint *fingerprint, size_t path, const char *name)
{
    if (!fingerprint->has_front || path != fingerprint->front)
        return NULL;
    for (size_t i = fingerprint->first[path]; i < fingerprint->first[path + 1]; i++)
        if (strcmp(fingerprint->files[i].file.path, name) == 0)
            return &fingerprint->files[i].checksum;
    return NULL;
}

void ph__fingerprint_tell(struct ph__fingerprint *fingerprint, struct ph__read_place *place_out)
{
    *place_out = (struct ph__read_place){.front = fingerprint->front};
    if (!fingerprint->has_front)
        return;
    const size_t first = fingerprint->first[fingerprint->front],
                 end = fingerprint->first[fingerprint->front + 1];
    for (size_t i = first; i < end; i++) {
        settle(&fingerprint->files[i]);
        place_out->prefixes[i - first] = fingerprint->files[i].read;
    }
}

/* ---- saving ---- */

struct saved_file {
    uint64_t bytes, read_bytes;
    char checksum[17], read_checksum[17];
};

static const struct ph__json_field saved_fields[] = {
    {"bytes", PH_JSON_COUNT, offsetof(struct saved_file, bytes), 0},
    {"checksum", PH_JSON_TEXT, offsetof(struct saved_file, checksum), 17},
    {"read_bytes", PH_JSON_COUNT, offsetof(struct saved_file, read_bytes), 0},
    {"read_checksum", PH_JSON_TEXT, offsetof(struct saved_file, read_checksum), 17},
};
#define NUM_SAVED_FIELDS (sizeof saved_fields / sizeof *saved_fields)

static struct ph__json *file_json(const struct ph__read_file *file, struct ph__read_prefix read)
{
    struct saved_file saved = {.bytes = file->file.num_bytes, .read_bytes = read.num_bytes};
    memcpy(saved.checksum, file->file.checksum, sizeof saved.checksum);
    ph__checksum_text(read.checksum, saved.read_checksum);
    struct ph__json *json = ph__json_object();
    ph__json_set_fields(json, saved_fields, NUM_SAVED_FIELDS, &saved);
    return json;
}

struct ph__json *ph__fingerprint_json(
    const struct ph__fingerprint *fingerprint, const struct ph__read_place *place)
{
    struct ph__json *json = ph__json_array();
    for (size_t path = 0; path < fingerprint->num_paths; path++)
        for (size_t i = fingerprint->first[path]; i < fingerprint->first[path + 1]; i++) {
            struct ph__read_prefix read = {0};
            if (path < place->front)
                read = fingerprint->files[i].read;
            else if (path == place->front)
                read = place->prefixes[i - fingerprint->first[path]];
            ph__json_append(json, file_json(&fingerprint->files[i], read));
        }
    return json;
}

/* ---- comparing ---- */

static ph_status compare_file(struct ph__read_file *file, const struct ph__json *json)
{
    struct saved_file saved;
    struct ph__input_file before = {.path = file->file.path};
    const char *key = ph__json_get_fields(json, saved_fields, NUM_SAVED_FIELDS, &saved);
    if (key == NULL && strspn(saved.read_checksum, "0123456789abcdef") != sizeof saved.read_checksum - 1)
        key = "read_checksum";
    if (key != NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the checkpoint's record of this file has no valid '%s'",
            before.path, key);
    before.num_bytes = saved.bytes;
    memcpy(before.checksum, saved.checksum, sizeof before.checksum);
    PH_TRY(ph__input_file_compare(&file->file, &before, SINCE));
    if (saved.read_bytes > saved.bytes)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the checkpoint says that more bytes were read than the file had", before.path);
    file->read = (struct ph__read_prefix){saved.read_bytes, strtoull(saved.read_checksum, NULL, 16)};
    return PH_OK;
}

/* Sets the front to the last path of which something was read. */
static void find_front(struct ph__fingerprint *fingerprint)
{
    for (size_t path = 0; path < fingerprint->num_paths; path++)
        for (size_t i = fingerprint->first[path]; i < fingerprint->first[path + 1]; i++)
            if (fingerprint->files[i].read.num_bytes > 0) {
                fingerprint->front = path;
                fingerprint->has_front = true;
            }
}

ph_status ph__fingerprint_compare(
    struct ph__fingerprint *fingerprint, const struct ph__json *saved, const char *path)
{
    const size_t num_saved = ph__json_size(saved);
    size_t same = 0;
    ph_status status = PH_OK;
    while (status == PH_OK && same < fingerprint->num_files && same < num_saved) {
        status = compare_file(&fingerprint->files[same], ph__json_at(saved, same));
        same += status == PH_OK;
    }
    if (num_saved != fingerprint->num_files && (status == PH_OK || status == PH_ERROR_DATA))
        return ph_fail(PH_ERROR_DATA, "%s: had %zu files when " SINCE ", and has %zu now%s%s", path,
            num_saved, fingerprint->num_files,
            same < fingerprint->num_files ? "; the first new or changed file is " : "",
            same < fingerprint->num_files ? fingerprint->files[same].file.path : "");
    PH_TRY(status);
    find_front(fingerprint);
    return PH_OK;
}

/* ---- reading again ---- */

static ph_status take_in(int descriptor, const struct ph__read_file *file, unsigned char *buffer,
    struct ph__running_checksum *checksum, const struct ph__meanwhile *meanwhile)
{
    for (uint64_t byte = 0; byte < file->read.num_bytes;) {
        const uint64_t rest = file->read.num_bytes - byte;
        const size_t size = rest < CHECK_BYTES ? (size_t)rest : CHECK_BYTES;
        PH_TRY(ph__meanwhile(meanwhile));
        PH_TRY(ph__file_read_at(descriptor, file->file.path, byte, buffer, size));
        ph__running_checksum_add(checksum, byte, buffer, size);
        byte += size;
    }
    if (ph__running_checksum_value(checksum) == file->read.checksum || file->read.num_bytes == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "%s: the first %" PRIu64 " bytes, which the training has read, have changed", file->file.path,
        file->read.num_bytes);
}

static ph_status check_file(
    struct ph__read_file *file, unsigned char *buffer, const struct ph__meanwhile *meanwhile)
{
    int descriptor;
    uint64_t num_bytes;
    PH_TRY(ph__running_checksum_init(&file->checksum));
    PH_TRY(ph__file_open(file->file.path, &descriptor, &num_bytes));
    const ph_status status = take_in(descriptor, file, buffer, &file->checksum, meanwhile);
    close(descriptor);
    return status;
}

ph_status ph__fingerprint_check(struct ph__fingerprint *fingerprint, const struct ph__meanwhile *meanwhile)
{
    if (!fingerprint->has_front)
        return PH_OK;
    unsigned char *buffer = malloc(CHECK_BYTES);
    if (buffer == NULL)
        return ph__out_of_memory("cannot compare the data with what was read");
    ph_status status = PH_OK;
    for (size_t path = 0; path <= fingerprint->front && status == PH_OK; path++)
        for (size_t i = fingerprint->first[path]; i < fingerprint->first[path + 1] && status == PH_OK; i++) {
            status = check_file(&fingerprint->files[i], buffer, meanwhile);
            if (path < fingerprint->front)
                ph__running_checksum_fini(&fingerprint->files[i].checksum);
        }
    free(buffer);
    return status;
}
