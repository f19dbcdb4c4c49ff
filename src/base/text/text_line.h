/* Lines "name=value" of a text, as ph__config_values writes them. Ranks agree on such texts; checkpoints hold
 * them. */
#ifndef PH_BASE_TEXT_LINE_H
#define PH_BASE_TEXT_LINE_H

#include <stdbool.h>

/* A line, borrowed from the text; name and value do not end in a NUL. A line without '=' has an empty
 * value. */
struct ph__text_line {
    const char *name, *value;
    int name_length, value_length; /* as the precision of "%.*s" */
};

/* Takes the first line and moves *text behind it; false when there is none. */
bool ph__text_line_next(const char **text, struct ph__text_line *line_out);

/* Finds the line with the name of another; leaves line_out alone where there is none. */
bool ph__text_line_find(const char *text, const struct ph__text_line *named, struct ph__text_line *line_out);

bool ph__text_line_has_value_of(const struct ph__text_line *line, const struct ph__text_line *other);

#endif
