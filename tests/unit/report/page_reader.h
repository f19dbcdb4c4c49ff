/* Reads back the document of a page that ph__page_write has written. */
#ifndef PH_TEST_PAGE_READER_H
#define PH_TEST_PAGE_READER_H

#include "support/test_support.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"

/* Returns the document; destroy it with ph__json_destroy. */
static inline struct ph__json *page_read(const char *path)
{
    static const char begin[] = "id=\"document\">";
    struct ph__arena arena = {0};
    struct ph__json *document;
    char *text;
    size_t size;
    assert_ok(ph__file_read(&arena, path, 1 << 24, &text, &size));
    const char *json = strstr(text, begin);
    assert_non_null(json);
    json += sizeof begin - 1;
    assert_ok(
        ph__json_parse(json, (size_t)(strstr(json, "</script>") - json), path, PH_ERROR_DATA, &document));
    ph__arena_fini(&arena);
    return document;
}

/* Returns the first object, at any depth, whose member "id" is that text; NULL: there is none. */
static inline const struct ph__json *page_find(const struct ph__json *json, const char *id)
{
    struct ph__json_member member = {0};
    const struct ph__json *found = NULL;
    if (strcmp(ph__json_as_text(ph__json_get(json, "id"), ""), id) == 0)
        return json;
    while (found == NULL && ph__json_next_member(json, &member))
        found = page_find(member.value, id);
    for (size_t i = 0; found == NULL && ph__json_is_array(json) && i < ph__json_size(json); i++)
        found = page_find(ph__json_at(json, i), id);
    return found;
}

/* Returns how many points the series of that id has; SIZE_MAX: there is none. */
static inline size_t page_points(const struct ph__json *document, const char *id)
{
    const struct ph__json *series = page_find(document, id);
    const struct ph__json *x = ph__json_get(series, "x"), *y = ph__json_get(series, "y");
    size_t count = 0;
    for (size_t i = 0; i < ph__json_size(x); i++)
        count += !ph__json_is_null(ph__json_at(x, i)) && !ph__json_is_null(ph__json_at(y, i));
    return series != NULL ? count : SIZE_MAX;
}

/* Returns the row of a table whose first value is `name`. */
static inline const struct ph__json *page_row(
    const struct ph__json *document, const char *table, const char *name)
{
    const struct ph__json *rows = ph__json_get(page_find(document, table), "rows");
    for (size_t i = 0; i < ph__json_size(rows); i++)
        if (strcmp(ph__json_as_text(ph__json_at(ph__json_at(rows, i), 0), ""), name) == 0)
            return ph__json_at(rows, i);
    fail_msg("the table %s has no row %s", table, name);
    return NULL;
}

/* Fails unless the JSON, as text, contains the words. */
static inline void page_expect(const struct ph__json *json, const char *words)
{
    char *text;
    assert_ok(ph__json_text(json, 0, &text));
    if (strstr(text, words) == NULL)
        fail_msg("the page lacks: %s", words);
    free(text);
}

static inline void page_expect_equal(const struct ph__json *json, const struct ph__json *other)
{
    char *text, *other_text;
    assert_ok(ph__json_text(json, 0, &text));
    assert_ok(ph__json_text(other, 0, &other_text));
    assert_string_equal(text, other_text);
    free(text);
    free(other_text);
}

#endif
