#include "data/prepare_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "data/prepared_manifest.h"

#define END_BYTES ((size_t)64 << 10)

static const struct ph_json_field fields[] = {
    {"bytes", PH_JSON_COUNT, offsetof(struct ph__prepare_input, num_bytes), 0},
    {"checksum", PH_JSON_TEXT, offsetof(struct ph__prepare_input, checksum), 17},
};
#define NUM_FIELDS (sizeof fields / sizeof *fields)

/* ---- looking --------------------------------------------------------------------------------------------- */

/* Both ends of the file, which for a small one is all of it, into a buffer of 2 END_BYTES. */
static ph_status read_ends(
    int descriptor, const char *path, uint64_t num_bytes, unsigned char *buffer, size_t *size_out)
{
    if (num_bytes <= 2 * END_BYTES) {
        *size_out = (size_t)num_bytes;
        return ph__file_read_at(descriptor, path, 0, buffer, *size_out);
    }
    *size_out = 2 * END_BYTES;
    PH_TRY(ph__file_read_at(descriptor, path, 0, buffer, END_BYTES));
    return ph__file_read_at(descriptor, path, num_bytes - END_BYTES, buffer + END_BYTES, END_BYTES);
}

static ph_status look_at(const char *path, struct ph__prepare_input *input)
{
    int descriptor;
    size_t size = 0;
    unsigned char *buffer = malloc(2 * END_BYTES);
    if (buffer == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to look at it", path);
    input->path = path;
    ph_status status = ph__file_open(path, &descriptor, &input->num_bytes);
    if (status == PH_OK) {
        status = read_ends(descriptor, path, input->num_bytes, buffer, &size);
        close(descriptor);
    }
    if (status == PH_OK)
        ph__part_checksum_text(ph__checksum(buffer, size), input->checksum);
    free(buffer);
    return status;
}

ph_status ph__prepare_inputs_look(
    struct ph_arena *arena, const char *path, bool is_arrays, struct ph__prepare_inputs *inputs_out)
{
    const char *paths[PH_ARRAY_SET_MAX_FILES] = {path};
    *inputs_out = (struct ph__prepare_inputs){.count = 1};
    if (ph__file_is_pipe(path))
        inputs_out->count = 0;
    else if (is_arrays)
        PH_TRY(ph__array_set_list(arena, path, paths, &inputs_out->count));
    for (size_t i = 0; i < inputs_out->count; i++)
        PH_TRY(look_at(paths[i], &inputs_out->items[i]));
    return PH_OK;
}

/* ---- keeping --------------------------------------------------------------------------------------------- */

struct ph_json *ph__prepare_inputs_json(const struct ph__prepare_inputs *inputs)
{
    struct ph_json *json = ph__json_array();
    for (size_t i = 0; i < inputs->count; i++) {
        struct ph_json *item = ph__json_object();
        ph__json_set_text(item, "path", inputs->items[i].path);
        ph__json_set_fields(item, fields, NUM_FIELDS, &inputs->items[i]);
        ph__json_append(json, item);
    }
    return json;
}

static ph_status compare(const struct ph__prepare_input *input, const struct ph_json *saved)
{
    struct ph__prepare_input before = {.path = ph__json_as_text(ph__json_get(saved, "path"), "")};
    const char *key = ph__json_get_fields(saved, fields, NUM_FIELDS, &before);
    if (key != NULL || strcmp(before.path, input->path) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: was not there when the preparation was begun", input->path);
    if (before.num_bytes != input->num_bytes)
        return ph_fail(PH_ERROR_DATA,
            "%s: had %" PRIu64 " bytes when the preparation was begun and has %" PRIu64, input->path,
            before.num_bytes, input->num_bytes);
    if (strcmp(before.checksum, input->checksum) != 0)
        return ph_fail(
            PH_ERROR_DATA, "%s: its bytes are others than when the preparation was begun", input->path);
    return PH_OK;
}

ph_status ph__prepare_inputs_compare(const struct ph__prepare_inputs *inputs, const struct ph_json *saved)
{
    for (size_t i = 0; i < inputs->count; i++)
        PH_TRY(compare(&inputs->items[i], ph__json_at(saved, i)));
    if (ph__json_size(saved) <= inputs->count)
        return PH_OK;
    const struct ph_json *gone = ph__json_at(saved, inputs->count);
    return ph_fail(PH_ERROR_DATA, "%s: was there when the preparation was begun",
        ph__json_as_text(ph__json_get(gone, "path"), ""));
}
