#include "serve/model_identity.h"

#include <string.h>

#include "data/data_options.h"
#include "model/model_options.h"

static const struct ph__key_filter of_model = {.with = PH_KEY_OF_MODEL};

ph_status ph__model_identity(const struct ph_model_settings *settings, double negative_rate,
    struct ph__arena *arena, const char **text_out)
{
    struct ph__model_section model;
    struct ph__section sections[1 + PH_NUM_MODEL_SECTIONS];
    void *data;
    const char *text;
    PH_TRY(ph__model_section_take(&model, settings, arena));
    PH_TRY(ph__config_defaults(&ph__data_options, arena, &data));
    if (negative_rate > 0)
        ((struct ph_data_settings *)data)->reading.negative_rate = negative_rate;
    size_t count = ph__model_used_sections(&model, sections);
    sections[count++] = (struct ph__section){&ph__data_options, data};
    PH_TRY(ph__config_changes(sections, count, of_model, arena, &text));
    if (strlen(text) >= PH_IDENTITY_BYTES)
        return ph_fail(PH_ERROR_BUG, "the model's settings are too long: %zu bytes", strlen(text));
    *text_out = text;
    return PH_OK;
}

/* ---- text to settings ---- */

/* Returns true for a key of the model. Other keys, paths say, must not get into a config this way. */
static bool is_of_model(const struct ph__section *sections, size_t num_sections, const char *line)
{
    for (size_t i = 0; i < num_sections; i++) {
        const struct ph__option_table *table = sections[i].table;
        const size_t length = strlen(table->section);
        if (strncmp(line, table->section, length) != 0 || line[length] != '.')
            continue;
        if ((table->traits & PH_KEY_OF_MODEL) != 0)
            return true;
        const char *key = line + length + 1;
        const size_t size = strcspn(key, "[=");
        for (size_t k = 0; k < table->num_options; k++)
            if (strncmp(table->options[k].key, key, size) == 0 && table->options[k].key[size] == '\0')
                return ph__key_is_selected(table, &table->options[k], of_model);
    }
    return false;
}

/* Cuts the text into lines, each with a NUL in place of its end. */
static ph_status cut_lines(const char *path, const char *text, const struct ph__section *sections,
    size_t num_sections, struct ph__arena *arena, const char ***lines_out, size_t *num_lines_out)
{
    const size_t length = strnlen(text, PH_IDENTITY_BYTES);
    if (length == PH_IDENTITY_BYTES)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model's settings are too long", path);
    char *at = ph__arena_strdup(arena, text);
    const char **lines = ph__arena_alloc_array(arena, length, sizeof *lines); /* a line has a byte or more */
    if (at == NULL || lines == NULL)
        return PH_ERROR_MEMORY;
    size_t count = 0;
    while (*at != '\0') {
        const size_t size = strcspn(at, "\n");
        const bool is_last = at[size] == '\0';
        at[size] = '\0';
        if (!is_of_model(sections, num_sections, at))
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' is not a setting of a model", path, at);
        lines[count++] = at;
        at += size + !is_last;
    }
    *lines_out = lines;
    *num_lines_out = count;
    return PH_OK;
}

ph_status ph__model_identity_sets(const char *path, const char *text, struct ph__arena *arena,
    const char *const **sets_out, size_t *num_sets_out)
{
    struct ph_data_settings data;
    struct ph__model_section model;
    struct ph__section sections[1 + PH_NUM_MODEL_SECTIONS] = {{&ph__data_options, &data}};
    const size_t num_sections = 1 + ph__model_sections(&model, sections + 1);
    const char **lines = NULL;
    size_t count = 0;
    PH_TRY(cut_lines(path, text, sections, num_sections, arena, &lines, &count));
    ph_status status = ph__config_read(NULL, lines, count, sections, num_sections, arena);
    if (status == PH_OK)
        status = ph__model_section_finish(&model, NULL, arena);
    if (status == PH_ERROR_CONFIG)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: the model's settings are not valid: %s", path, ph_error_text());
    PH_TRY(status);
    *sets_out = lines;
    *num_sets_out = count;
    return PH_OK;
}

/* ---- comparing ---- */

/* Returns the first line of `text` that `other` lacks; its length is 0 when there is none. */
static const char *line_missing(const char *text, const char *other, size_t *length_out)
{
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *at = other;
        while (*at != '\0' && (strncmp(at, line, length) != 0 || (at[length] != '\n' && at[length] != '\0')))
            at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
        *length_out = length;
        if (*at == '\0')
            return line;
        line += length + (line[length] == '\n');
    }
    *length_out = 0;
    return text;
}

ph_status ph__model_identity_check(const char *path, const char *trained, const char *wanted)
{
    size_t length;
    const char *line = line_missing(trained, wanted, &length);
    if (length > 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: was trained with %.*s, but its config says otherwise", path,
            (int)length, line);
    line = line_missing(wanted, trained, &length);
    if (length > 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: was not trained with %.*s, but its config says so", path,
            (int)length, line);
    return PH_OK;
}
