/* Typed values of options. */
#include "base/option/option_value.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/number.h"
#include "base/text/utf8.h"

static bool is_bounded(const struct ph__option *option)
{
    return option->min != 0 || option->max != 0;
}

static bool is_in_range(const struct ph__option *option, double number)
{
    return !is_bounded(option) || (number >= option->min && number <= option->max);
}

const char *ph__option_range(const struct ph__option *option, struct ph__arena *arena)
{
    char low[PH_NUMBER_TEXT_BYTES], high[PH_NUMBER_TEXT_BYTES];
    if (!is_bounded(option))
        return "";
    if (option->type == PH_OPTION_INTEGER || option->type == PH_OPTION_INTEGERS) /* 1000000, not 1e+06 */
        return ph__arena_printf(arena, "%.0f to %.0f", option->min, option->max);
    return ph__arena_printf(
        arena, "%s to %s", ph__number_format(option->min, low), ph__number_format(option->max, high));
}

/* Lists the words of `choices`, in the arena. */
static ph_status words_of(const struct ph__option *option, struct ph__arena *arena,
    const char *const **words_out, size_t *num_words_out)
{
    size_t count = 1;
    for (const char *at = option->choices; *at != '\0'; at++)
        count += *at == '|';
    char *text = ph__arena_strdup(arena, option->choices);
    const char **words = ph__arena_alloc_array(arena, count, sizeof *words);
    if (text == NULL || words == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        words[i] = text;
        text += strcspn(text, "|");
        if (*text == '|')
            *text++ = '\0';
    }
    *words_out = words;
    *num_words_out = count;
    return PH_OK;
}

/* Returns "a, b, c"; NULL when out of memory. */
static const char *list_words(const struct ph__option *option, struct ph__arena *arena)
{
    const char *const *words = NULL;
    size_t count = 0;
    if (words_of(option, arena, &words, &count) != PH_OK)
        return NULL;
    const char *list = words[0];
    for (size_t i = 1; i < count && list != NULL; i++)
        list = ph__arena_printf(arena, "%s, %s", list, words[i]);
    return list;
}

const char *ph__option_wanted(const struct ph__option *option, struct ph__arena *arena)
{
    const char *range = ph__option_range(option, arena);
    const char *from = is_bounded(option) ? " from " : "";
    if (range == NULL)
        return NULL;
    switch (option->type) {
    case PH_OPTION_BOOL:
        return "true or false";
    case PH_OPTION_INTEGER:
        return ph__arena_printf(arena, "an integer%s%s", from, range);
    case PH_OPTION_NUMBER:
        return ph__arena_printf(arena, "a number%s%s", from, range);
    case PH_OPTION_TEXT:
        return "a text";
    case PH_OPTION_PATH:
        return "a path";
    case PH_OPTION_CHOICE: {
        const char *words = list_words(option, arena);
        return words != NULL ? ph__arena_printf(arena, "one of %s", words) : NULL;
    }
    case PH_OPTION_INTEGERS:
        return ph__arena_printf(arena, "a list of integers%s%s", from, range);
    case PH_OPTION_TEXTS:
        return "a list of texts";
    case PH_OPTION_RECORDS:
        return "a list of mappings";
    }
    return "a value";
}

static ph_status refuse(const struct ph__option *option, const char *text, struct ph__arena *arena)
{
    const char *wanted = ph__option_wanted(option, arena);
    if (wanted == NULL)
        return PH_ERROR_MEMORY;
    if (text[0] == '\0')
        return ph_fail(PH_ERROR_CONFIG, "must be %s, not empty", wanted);
    return ph_fail(PH_ERROR_CONFIG, "must be %s, not '%s'", wanted, text);
}

static ph_status parse_choice(
    const struct ph__option *option, const char *text, struct ph__arena *arena, int *choice)
{
    const char *const *words = NULL;
    size_t count = 0;
    PH_TRY(words_of(option, arena, &words, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) != 0)
            continue;
        *choice = (int)i;
        return PH_OK;
    }
    ph_status status = refuse(option, text, arena);
    const char *nearest = ph__nearest_word(text, words, count);
    if (status == PH_ERROR_CONFIG && nearest != NULL)
        ph_fail(status, "%s; did you mean '%s'?", ph_error_text(), nearest);
    return status;
}

/* Fails for text that is not UTF-8, which no config file could hold. */
static ph_status check_text(const char *text)
{
    if (ph__utf8_is_valid(text, strlen(text)))
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "must be UTF-8, not '%s'", text);
}

static ph_status parse_path(const char *text, struct ph__arena *arena, const char **path)
{
    const char *expanded = NULL;
    PH_TRY(ph__path_expand(arena, text, &expanded));
    PH_TRY(check_text(expanded));
    *path = expanded[0] != '\0' ? expanded : NULL;
    return PH_OK;
}

static bool parse_integer(const struct ph__option *option, const char *text, int64_t *integer_out)
{
    int64_t integer = 0;
    if (!ph__integer_parse(text, &integer) || !is_in_range(option, (double)integer))
        return false;
    *integer_out = integer;
    return true;
}

/* ---- lists ---- */

/* Takes an item up to a comma or the end, without the blanks before it. Moves *at there. */
static ph_status take_plain(const char **at, struct ph__arena *arena, const char **item_out)
{
    const size_t length = strcspn(*at, ",");
    size_t used = length;
    while (used > 0 && (*at)[used - 1] == ' ')
        used--;
    *item_out = ph__arena_printf(arena, "%.*s", (int)used, *at);
    *at += length;
    return *item_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Takes a quoted item, as quote() writes it. Moves *at to the comma or the end behind it. */
static ph_status take_quoted(const char **at, struct ph__arena *arena, const char **item_out)
{
    const char *from = *at + 1;
    char *item = ph__arena_alloc(arena, strlen(from) + 1), *to = item;
    if (item == NULL)
        return PH_ERROR_MEMORY;
    for (; *from != '"' && *from != '\0'; from++) {
        const bool is_escape = *from == '\\' && from[1] != '\0';
        from += is_escape;
        *to++ = is_escape && *from == 'n' ? '\n' : *from;
    }
    *to = '\0';
    if (*from == '\0')
        return ph_fail(PH_ERROR_CONFIG, "the text %s lacks its closing quote", *at);
    from += 1 + strspn(from + 1, " ");
    if (*from != ',' && *from != '\0')
        return ph_fail(PH_ERROR_CONFIG, "must have a comma before '%s'", from);
    *item_out = item;
    *at = from;
    return PH_OK;
}

/* Splits a list, such as "400, 300". Blanks around the commas are not part of the items; "" is the empty
 * list. */
static ph_status split_list(const char *text, struct ph__arena *arena, struct ph__text_list *list_out)
{
    struct ph__text_list list = {0};
    const char *at = text;
    bool has_more = text[0] != '\0';
    while (has_more) {
        at += strspn(at, " ");
        if (list.count == PH_LIST_MAX)
            return ph_fail(PH_ERROR_CONFIG, "must have at most %d items", PH_LIST_MAX);
        PH_TRY((*at == '"' ? take_quoted : take_plain)(&at, arena, &list.items[list.count]));
        list.count++;
        has_more = *at == ',';
        at += has_more;
    }
    *list_out = list;
    return PH_OK;
}

static ph_status parse_integers(const struct ph__option *option, const char *text, struct ph__arena *arena,
    struct ph__integer_list *list_out)
{
    struct ph__text_list texts;
    struct ph__integer_list list = {0};
    PH_TRY(split_list(text, arena, &texts));
    for (; list.count < texts.count; list.count++)
        if (!parse_integer(option, texts.items[list.count], &list.items[list.count]))
            return refuse(option, text, arena);
    *list_out = list;
    return PH_OK;
}

static ph_status parse_texts(const char *text, struct ph__arena *arena, struct ph__text_list *list_out)
{
    struct ph__text_list list;
    PH_TRY(check_text(text));
    PH_TRY(split_list(text, arena, &list));
    *list_out = list;
    return PH_OK;
}

static ph_status check_place(size_t index, size_t count)
{
    if (index > count)
        return ph_fail(PH_ERROR_CONFIG, "the list has only %zu items", count);
    if (index >= PH_LIST_MAX)
        return ph_fail(PH_ERROR_CONFIG, "must have at most %d items", PH_LIST_MAX);
    return PH_OK;
}

ph_status ph__option_parse_text_item(
    const char *text, size_t index, struct ph__arena *arena, struct ph__text_list *list)
{
    PH_TRY(check_place(index, list->count));
    PH_TRY(check_text(text));
    const char *copy = ph__arena_strdup(arena, text);
    if (copy == NULL)
        return PH_ERROR_MEMORY;
    list->items[index] = copy;
    list->count += index == list->count;
    return PH_OK;
}

ph_status ph__option_parse_item(
    const struct ph__option *option, const char *text, size_t index, struct ph__integer_list *list)
{
    struct ph__option item = *option;
    item.type = PH_OPTION_INTEGER;
    struct ph__arena arena = {0};
    ph_status status = check_place(index, list->count);
    if (status == PH_OK && !parse_integer(option, text, &list->items[index]))
        status = refuse(&item, text, &arena);
    else if (status == PH_OK)
        list->count += index == list->count;
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__option_parse(
    const struct ph__option *option, const char *text, struct ph__arena *arena, void *member)
{
    switch (option->type) {
    case PH_OPTION_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return refuse(option, text, arena);
        *(bool *)member = text[0] == 't';
        return PH_OK;
    case PH_OPTION_INTEGER:
        return parse_integer(option, text, member) ? PH_OK : refuse(option, text, arena);
    case PH_OPTION_NUMBER: {
        double number = 0;
        if (!ph__number_parse(text, &number) || !is_in_range(option, number))
            return refuse(option, text, arena);
        *(double *)member = number;
        return PH_OK;
    }
    case PH_OPTION_TEXT: {
        PH_TRY(check_text(text));
        const char *copy = ph__arena_strdup(arena, text);
        if (copy == NULL)
            return PH_ERROR_MEMORY;
        *(const char **)member = copy;
        return PH_OK;
    }
    case PH_OPTION_PATH:
        return parse_path(text, arena, member);
    case PH_OPTION_CHOICE:
        return parse_choice(option, text, arena, member);
    case PH_OPTION_INTEGERS:
        return parse_integers(option, text, arena, member);
    case PH_OPTION_TEXTS:
        return parse_texts(text, arena, member);
    case PH_OPTION_RECORDS:
        break;
    }
    return ph_fail(PH_ERROR_BUG, "the option '%s' has no text", option->key);
}

static const char *integers_text(const struct ph__integer_list *list, struct ph__arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < list->count && text != NULL; i++)
        text = ph__arena_printf(arena, "%s%s%" PRId64, text, i > 0 ? ", " : "", list->items[i]);
    return text;
}

/* Tells whether a list needs the item quoted: unquoted, the list would be split differently or span lines. */
static bool needs_quotes(const char *item)
{
    const size_t length = strlen(item);
    return length == 0 || item[0] == ' ' || item[length - 1] == ' ' || item[strcspn(item, ",\"\n")] != '\0';
}

/* Quotes an item, with \" \\ and \n for a quote, a backslash and a line feed. Returns NULL when out of
 * memory. */
static const char *quote(const char *item, struct ph__arena *arena)
{
    char *text = ph__arena_alloc_array(arena, strlen(item) + 2, 2);
    if (text == NULL)
        return NULL;
    char *to = text;
    *to++ = '"';
    for (; *item != '\0'; item++) {
        if (strchr("\"\\\n", *item) != NULL)
            *to++ = '\\';
        *to++ = *item == '\n' ? 'n' : *item;
    }
    *to++ = '"';
    *to = '\0';
    return text;
}

static const char *texts_text(const struct ph__text_list *list, struct ph__arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < list->count && text != NULL; i++) {
        const char *item = needs_quotes(list->items[i]) ? quote(list->items[i], arena) : list->items[i];
        if (item == NULL)
            return NULL;
        text = ph__arena_printf(arena, "%s%s%s", text, i > 0 ? ", " : "", item);
    }
    return text;
}

const char *ph__option_text(const struct ph__option *option, const void *member, struct ph__arena *arena)
{
    char number[PH_NUMBER_TEXT_BYTES];
    switch (option->type) {
    case PH_OPTION_BOOL:
        return *(const bool *)member ? "true" : "false";
    case PH_OPTION_INTEGER:
        return ph__arena_printf(arena, "%" PRId64, *(const int64_t *)member);
    case PH_OPTION_NUMBER:
        return ph__arena_strdup(arena, ph__number_format(*(const double *)member, number));
    case PH_OPTION_TEXT: {
        const char *text = *(const char *const *)member;
        return text != NULL ? text : "";
    }
    case PH_OPTION_PATH:
        return ph__path_protect(arena, *(const char *const *)member);
    case PH_OPTION_CHOICE: {
        const char *const *words = NULL;
        size_t count = 0;
        if (words_of(option, arena, &words, &count) != PH_OK)
            return NULL;
        size_t choice = (size_t) * (const int *)member;
        return choice < count ? words[choice] : "";
    }
    case PH_OPTION_INTEGERS:
        return integers_text(member, arena);
    case PH_OPTION_TEXTS:
        return texts_text(member, arena);
    case PH_OPTION_RECORDS:
        break;
    }
    return "";
}
