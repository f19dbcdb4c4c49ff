/* Numbers and dates as text. Configs, the command line, JSON and tables share these forms. */
#ifndef PH_BASE_NUMBER_H
#define PH_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a text that is one decimal number: an optional sign, digits, and for a number a fraction and an
 * exponent ("1e-3"). No blanks, no underscores, no hexadecimal, no infinity. Returns false for any other text
 * and for a number out of range. */
bool ph__number_parse(const char *text, double *number_out);
bool ph__integer_parse(const char *text, int64_t *integer_out);

/* Parses, fast and independently of the locale, [+-]digits[.digits][(e|E)[+-]digits], with at least one digit
 * before or after the point. Returns false for anything else and for a magnitude beyond double ("nan" and
 * "inf" included). Exact for up to 15 digits and exponents to 22, else within one unit in the last place of
 * double. */
bool ph__decimal_parse(const char *text, size_t length, double *number_out);

/* Returns the value of a hexadecimal digit, or -1. */
int ph__hex_digit(char digit);

#define PH_INTEGER_TEXT_BYTES 22 /* a sign, 20 digits and the NUL */

/* Write an integer in decimal, NUL-terminated, as "%d" does, at a tenth of the time. Return the length. */
size_t ph__integer_write(int64_t integer, char text[PH_INTEGER_TEXT_BYTES]);
size_t ph__unsigned_write(uint64_t integer, char text[PH_INTEGER_TEXT_BYTES]);

/* Writes a finite number with so many significant digits, with a point in any locale. Returns the length. A
 * float reads back to the same bits with 9 digits, a double with 17. */
#define PH_FLOAT_DIGITS 9
#define PH_DOUBLE_DIGITS 17
#define PH_NUMBER_TEXT_BYTES 32
size_t ph__real_write(double number, int num_digits, char text[PH_NUMBER_TEXT_BYTES]);

/* Writes the shortest decimal text that reads back as the same double; `number` is finite. Returns `text`. */
const char *ph__number_format(double number, char text[PH_NUMBER_TEXT_BYTES]);

/* Writes a size, such as "3.2 GiB". Returns `text`. */
const char *ph__bytes_text(uint64_t bytes, char text[PH_NUMBER_TEXT_BYTES]);

/* ---- dates ---- */

/* Days and the proleptic Gregorian calendar, in UTC. Avoids the C library's time zones, which take a lock and
 * memory. */

/* Returns days since 1 March of year 0, not before it; month 1 to 12, any day. */
int64_t ph__date_days(int year, int month, int day);
int ph__date_month_length(int year, int month); /* days */

/* Writes the date `days` after 1 January 1970 as YYYY-MM-DD. Returns false outside the years 1 to 9999. */
#define PH_DATE_BYTES 11
bool ph__date_write(int64_t days, char text[PH_DATE_BYTES]);

/* Writes the time `milliseconds` after 1 January 1970 as YYYY-MM-DDThh:mm:ss.mmmZ (RFC 3339). Returns false
 * after the year 9999. */
#define PH_UTC_BYTES 25
bool ph__utc_write(uint64_t milliseconds, char text[PH_UTC_BYTES]);

#endif
