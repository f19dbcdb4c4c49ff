/* Texts whose bytes may be anything: whether they are UTF-8, where they may be cut, and their last word. */
#ifndef PH_BASE_UTF8_H
#define PH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size in bytes of the first character and its code, where the text begins with a whole one in its
 * shortest form, neither a surrogate nor beyond U+10FFFF; else 0, and the code is not written. `length` is at
 * least 1. */
size_t ph__utf8_decode(const char *text, size_t length, uint32_t *code_out);

bool ph__utf8_is_valid(const char *text, size_t length);

/* What ends a line or steers a terminal: U+0000 to U+001F and U+007F to U+009F. */
bool ph__utf8_is_control(uint32_t code);

/* Whether it is UTF-8 and has no such character. */
bool ph__utf8_is_plain(const char *text, size_t length);

/* How many of the text's bytes, at most max_bytes, leave its last character whole; in what is not UTF-8 there
 * may be none to leave whole, and the cut is at max_bytes. */
size_t ph__utf8_cut(const char *text, size_t length, size_t max_bytes);

/* What stands behind the last separator, which is a character of ASCII; the whole text where there is none.
 * Points into the text. */
const char *ph__last_word(const char *text, char separator);

#endif
