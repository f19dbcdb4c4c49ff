#include "base/text/text_line.h"

#include <string.h>

#include "base/sizes.h"

bool ph__text_line_next(const char **text, struct ph__text_line *line_out)
{
    if (**text == '\0')
        return false;
    const size_t length = strcspn(*text, "\n"), name_length = strcspn(*text, "=\n");
    line_out->name = *text;
    line_out->name_length = (int)name_length;
    line_out->value = *text + ph__min(name_length + 1, length);
    line_out->value_length = (int)(*text + length - line_out->value);
    *text += length + ((*text)[length] == '\n' ? 1 : 0);
    return true;
}

bool ph__text_line_find(const char *text, const struct ph__text_line *named, struct ph__text_line *line_out)
{
    struct ph__text_line line;
    while (ph__text_line_next(&text, &line))
        if (line.name_length == named->name_length &&
            memcmp(line.name, named->name, (size_t)named->name_length) == 0) {
            *line_out = line;
            return true;
        }
    return false;
}

bool ph__text_line_has_value_of(const struct ph__text_line *line, const struct ph__text_line *other)
{
    return line->value_length == other->value_length &&
           memcmp(line->value, other->value, (size_t)line->value_length) == 0;
}
