#include "data/prepared/prepare_input.h"

#include <string.h>

#include "base/file/file.h"
#include "base/format/json_fields.h"

static const struct ph_json_field fields[] = {
    {"bytes", PH_JSON_COUNT, offsetof(struct ph__input_file, num_bytes), 0},
    {"checksum", PH_JSON_TEXT, offsetof(struct ph__input_file, checksum), 17},
};
#define NUM_FIELDS (sizeof fields / sizeof *fields)

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
        PH_TRY(ph__input_file_look(paths[i], &inputs_out->items[i]));
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

static ph_status compare(const struct ph__input_file *input, const struct ph_json *saved)
{
    struct ph__input_file before = {.path = ph__json_as_text(ph__json_get(saved, "path"), "")};
    const char *key = ph__json_get_fields(saved, fields, NUM_FIELDS, &before);
    if (key != NULL || strcmp(before.path, input->path) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: was not there when the preparation was begun", input->path);
    return ph__input_file_compare(input, &before, "the preparation was begun");
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
