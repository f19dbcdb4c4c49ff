/* UTF-8 in texts of any bytes: validation, safe cuts, and the last word. */
#ifndef PH_BASE_UTF8_H
#define PH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character. Returns its size in bytes, or 0, without setting the code, unless the text
 * begins with a whole character in its shortest form, neither a surrogate nor beyond U+10FFFF. `length` is at
 * least 1. */
size_t ph__utf8_decode(const char *text, size_t length, uint32_t *code_out);

bool ph__utf8_is_valid(const char *text, size_t length);

/* Tells whether a character ends a line or steers a terminal: U+0000 to U+001F and U+007F to U+009F. */
bool ph__utf8_is_control(uint32_t code);

/* Tells whether the text is UTF-8 without such characters. */
bool ph__utf8_is_plain(const char *text, size_t length);

/* Returns the largest size, at most max_bytes, at which a cut leaves the last character whole. Where the text
 * is not UTF-8 and has no such place, the cut is at max_bytes. */
size_t ph__utf8_cut(const char *text, size_t length, size_t max_bytes);

/* Returns the text behind the last separator, an ASCII character, or the whole text when there is none.
 * Points into the text. */
const char *ph__last_word(const char *text, char separator);

#endif
