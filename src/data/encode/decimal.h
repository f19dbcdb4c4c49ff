/* Decimal numbers from cells of text: strict, fast, independent of the locale. */
#ifndef PH_DATA_DECIMAL_H
#define PH_DATA_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [+-]digits[.digits][(e|E)[+-]digits], at least one digit before or after the point, nothing else. False for
 * anything else and for a magnitude beyond double ("nan" and "inf" included). Exact for up to 15 digits and
 * exponents to 22, else within one unit in the last place of double. */
bool ph__decimal_parse(const char *text, size_t length, double *number_out);

/* One to eighteen digits without a sign. */
bool ph__decimal_parse_id(const char *text, size_t length, uint64_t *number_out);

#endif
