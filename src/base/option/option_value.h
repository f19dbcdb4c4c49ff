/* Converts one option's value from text and back, for the files that read, compare and print options. */
#ifndef PH_BASE_OPTION_VALUE_H
#define PH_BASE_OPTION_VALUE_H

#include <stddef.h>

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "phloem/status.h"

/* Parses `text` into the option's member at `member`, which is untouched on failure. PH_ERROR_CONFIG with the
 * reason alone ("must be an integer from 1 to 8, not 'x'"): the caller knows where the text stood. Not for
 * RECORDS. */
ph_status ph__option_parse(
    const struct ph__option *option, const char *text, struct ph__arena *arena, void *member);

/* Parses one item of INTEGERS; replaces item `index`, or appends when index is the count. */
ph_status ph__option_parse_item(
    const struct ph__option *option, const char *text, size_t index, struct ph__integer_list *list);

/* Does the same for an item of TEXTS, which the arena owns. */
ph_status ph__option_parse_text_item(
    const char *text, size_t index, struct ph__arena *arena, struct ph__text_list *list);

/* Returns the wanted kind of value: "an integer from 1 to 8", "one of sum, mean"; in the arena, NULL when out
 * of memory. */
const char *ph__option_wanted(const struct ph__option *option, struct ph__arena *arena);

/* Returns "1 to 8", or "" when unbounded; in the arena, NULL when out of memory. */
const char *ph__option_range(const struct ph__option *option, struct ph__arena *arena);

/* Returns the member's value as text that ph__option_parse reads back, not quoted for YAML; in the arena,
 * NULL when out of memory. */
const char *ph__option_text(const struct ph__option *option, const void *member, struct ph__arena *arena);

/* Returns the option's member of the settings struct. */
static inline void *ph__option_member(const struct ph__option *option, void *settings)
{
    return (char *)settings + option->offset;
}

#endif
