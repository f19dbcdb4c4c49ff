/* The effective config as YAML. */
#include <inttypes.h>
#include <string.h>

#include "base/option/option.h"
#include "base/option/option_value.h"
#include "base/text/utf8.h"

/* What YAML does not take as it is: controls, line breaks, byte order marks and what is no character. */
static bool is_escaped(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

ph_status ph__config_write_text(struct ph_writer *writer, const char *text)
{
    size_t left = strlen(text);
    PH_TRY(ph__writer_write(writer, "\"", 1));
    while (left > 0) {
        uint32_t code;
        size_t size = ph__utf8_decode(text, left, &code);
        if (size == 0)
            return ph_fail(PH_ERROR_USAGE, "'%s' is not UTF-8, which no config can hold", text);
        if (code == '"' || code == '\\')
            PH_TRY(ph__writer_printf(writer, "\\%c", (int)code));
        else if (is_escaped(code))
            PH_TRY(ph__writer_printf(writer, "\\u%04" PRIx32, code));
        else
            PH_TRY(ph__writer_write(writer, text, size));
        text += size;
        left -= size;
    }
    return ph__writer_write(writer, "\"", 1);
}

/* ["a", "b"] */
static ph_status write_texts(struct ph_writer *writer, const struct ph_text_list *list)
{
    PH_TRY(ph__writer_write(writer, "[", 1));
    for (size_t i = 0; i < list->count; i++) {
        PH_TRY(ph__writer_write(writer, ", ", i > 0 ? 2 : 0));
        PH_TRY(ph__config_write_text(writer, list->items[i]));
    }
    return ph__writer_write(writer, "]", 1);
}

/* " value" behind the colon; not for RECORDS. */
static ph_status write_value(struct ph_writer *writer, const struct ph_option *option, void *settings)
{
    if (option->type == PH_OPTION_TEXTS)
        return write_texts(writer, ph__option_member(option, settings));
    struct ph_arena arena = {0};
    const char *text = ph__option_text(option, ph__option_member(option, settings), &arena);
    ph_status status = PH_ERROR_MEMORY;
    if (text != NULL) {
        bool is_text = option->type == PH_OPTION_TEXT || option->type == PH_OPTION_PATH;
        if (is_text)
            status = ph__config_write_text(writer, text);
        else
            status = ph__writer_printf(writer, option->type == PH_OPTION_INTEGERS ? "[%s]" : "%s", text);
    }
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__config_write_path(struct ph_writer *writer, const char *path)
{
    static const struct ph_option option = {.type = PH_OPTION_PATH};
    return write_value(writer, &option, &path);
}

static ph_status write_records(
    struct ph_writer *writer, const struct ph_option *option, void *settings, const char *indent)
{
    const struct ph_option_table *records = option->records;
    const struct ph_record_list *list = ph__option_member(option, settings);
    if (list->count == 0)
        return ph__writer_printf(writer, "%s%s: []\n", indent, option->key);
    PH_TRY(ph__writer_printf(writer, "%s%s:\n", indent, option->key));
    for (size_t r = 0; r < list->count; r++) {
        void *record = (char *)list->items + r * records->settings_size;
        for (size_t i = 0; i < records->num_options; i++) {
            const struct ph_option *inner = &records->options[i];
            PH_TRY(ph__writer_printf(writer, "%s  %s %s: ", indent, i == 0 ? "-" : " ", inner->key));
            PH_TRY(write_value(writer, inner, record));
            PH_TRY(ph__writer_printf(writer, "\n"));
        }
    }
    return PH_OK;
}

static ph_status write_section(struct ph_writer *writer, const struct ph_section *section)
{
    const struct ph_option_table *table = section->table;
    const char *indent = table->section[0] != '\0' ? "  " : "";
    if (table->section[0] != '\0')
        PH_TRY(ph__writer_printf(writer, "%s:\n", table->section));
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph_option *option = &table->options[i];
        if (option->type == PH_OPTION_RECORDS) {
            PH_TRY(write_records(writer, option, section->settings, indent));
            continue;
        }
        PH_TRY(ph__writer_printf(writer, "%s%s: ", indent, option->key));
        PH_TRY(write_value(writer, option, section->settings));
        PH_TRY(ph__writer_printf(writer, "\n"));
    }
    return PH_OK;
}

ph_status ph__config_write(struct ph_writer *writer, const struct ph_section *sections, size_t num_sections)
{
    for (size_t s = 0; s < num_sections; s++)
        PH_TRY(write_section(writer, &sections[s]));
    return PH_OK;
}
