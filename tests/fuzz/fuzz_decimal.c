/* Numbers in cells, beside strtod and strtoull. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "data/encode/cell_text.h"
#include "support/fuzz_support.h"

#define MAX_TEXT_BYTES 400

static bool has_only(const char *text, const char *characters)
{
    return text[strspn(text, characters)] == '\0';
}

static void check_number(const char *text, size_t length)
{
    double number = 0;
    char *end = NULL;
    const bool is_parsed = ph__decimal_parse(text, length, &number);
    const double expected = strtod(text, &end);
    const bool is_plain = length > 0 && *end == '\0' && has_only(text, "0123456789+-.eE");
    fuzz_require(is_parsed == (is_plain && isfinite(expected)));
    if (is_parsed)
        fuzz_require(number == expected || nextafter(number, expected) == expected);
}

static void check_id(const char *text, size_t length)
{
    uint64_t id = 0;
    const bool is_parsed = ph__decimal_parse_id(text, length, &id);
    fuzz_require(is_parsed == (length >= 1 && length <= 18 && has_only(text, "0123456789")));
    if (is_parsed)
        fuzz_require(id == strtoull(text, NULL, 10));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MAX_TEXT_BYTES + 1];
    const size_t length = size < MAX_TEXT_BYTES ? size : MAX_TEXT_BYTES;
    memcpy(text, data, length);
    text[length] = '\0';
    if (strlen(text) != length)
        return 0; /* readers refuse a NUL */
    check_number(text, length);
    check_id(text, length);
    return 0;
}
