#include "base/text/utf8.h"

#include <string.h>

#define LONGEST 4 /* bytes of a character */

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t ph__utf8_decode(const char *text, size_t length, uint32_t *code_out)
{
    static const uint32_t least_code[LONGEST + 1] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80) {
        *code_out = bytes[0];
        return 1;
    }
    size_t size = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || length < size)
        return 0;
    uint32_t code = bytes[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if (!is_continuation(bytes[i]))
            return 0;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    if (code < least_code[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *code_out = code;
    return size;
}

/* Returns the length of the text's start that is ASCII, which most texts are, in steps of 8 bytes. */
static size_t skip_ascii(const char *text, size_t length)
{
    uint64_t bytes;
    size_t at = 0;
    for (; at + sizeof bytes <= length; at += sizeof bytes) {
        memcpy(&bytes, text + at, sizeof bytes);
        if ((bytes & 0x8080808080808080) != 0)
            break;
    }
    return at;
}

bool ph__utf8_is_valid(const char *text, size_t length)
{
    uint32_t code;
    for (size_t at = skip_ascii(text, length), size; at < length; at += size) {
        size = ph__utf8_decode(text + at, length - at, &code);
        if (size == 0)
            return false;
        if (code >= 0x80)
            continue;
        size += skip_ascii(text + at + size, length - at - size);
    }
    return true;
}

bool ph__utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool ph__utf8_is_plain(const char *text, size_t length)
{
    uint32_t code = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = ph__utf8_decode(text + at, length - at, &code);
        if (size == 0 || ph__utf8_is_control(code))
            return false;
    }
    return true;
}

size_t ph__utf8_cut(const char *text, size_t length, size_t max_bytes)
{
    if (length <= max_bytes)
        return length;
    size_t cut = max_bytes;
    while (cut > 0 && max_bytes - cut < LONGEST && is_continuation((unsigned char)text[cut]))
        cut--;
    return is_continuation((unsigned char)text[cut]) ? max_bytes : cut;
}

const char *ph__last_word(const char *text, char separator)
{
    const char *last = strrchr(text, separator);
    return last != NULL ? last + 1 : text;
}
