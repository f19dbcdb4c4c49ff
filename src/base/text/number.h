/* Numbers as text, the same way in configs, on the command line, in JSON and in tables. */
#ifndef PH_BASE_NUMBER_H
#define PH_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole text is one decimal number: an optional sign, digits, and for a number a fraction and an exponent
 * ("1e-3"). No blanks, no underscores, no hexadecimal, no infinity; false too when it does not fit. */
bool ph__number_parse(const char *text, double *number_out);
bool ph__integer_parse(const char *text, int64_t *integer_out);

/* The shortest decimal text that reads back as the same double; `number` is finite. Returns `text`. */
#define PH_NUMBER_TEXT_BYTES 32
const char *ph__number_format(double number, char text[PH_NUMBER_TEXT_BYTES]);

/* "3.2 GiB". Returns `text`. */
const char *ph__bytes_text(uint64_t bytes, char text[PH_NUMBER_TEXT_BYTES]);

#endif
