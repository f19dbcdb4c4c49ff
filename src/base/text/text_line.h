/* Lines "name=value" of a text, as ph__config_values writes them: ranks agree on such texts, checkpoints hold
 * them. */
#ifndef PH_BASE_TEXT_LINE_H
#define PH_BASE_TEXT_LINE_H

#include <stdbool.h>

/* Both borrowed from the text, neither ends in a NUL. A line without '=' has an empty value. */
struct ph__text_line {
    const char *name, *value;
    int name_length, value_length; /* as the precision of "%.*s" */
};

/* Moves *text behind its first line; false: there is none. */
bool ph__text_line_next(const char **text, struct ph__text_line *line_out);

/* Finds the line that has the name of another; line_out is left alone where there is none. */
bool ph__text_line_find(const char *text, const struct ph__text_line *named, struct ph__text_line *line_out);

bool ph__text_line_has_value_of(const struct ph__text_line *line, const struct ph__text_line *other);

#endif
