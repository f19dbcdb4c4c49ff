/* What the text of a cell says: decimal numbers, strict, fast and independent of the locale; raw ids; and of
 * written times the hour of the day and the day of the week. */
#ifndef PH_DATA_CELL_TEXT_H
#define PH_DATA_CELL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_options.h"

/* [+-]digits[.digits][(e|E)[+-]digits], at least one digit before or after the point, nothing else. False for
 * anything else and for a magnitude beyond double ("nan" and "inf" included). Exact for up to 15 digits and
 * exponents to 22, else within one unit in the last place of double. */
bool ph__decimal_parse(const char *text, size_t length, double *number_out);

/* One to eighteen digits without a sign. */
bool ph__decimal_parse_id(const char *text, size_t length, uint64_t *number_out);

/* The text is YYMMDDHH of the years from 2000 on (as Avazu writes), YYYY-MM-DD HH with :MM, :MM:SS or
 * :MM:SS.fraction behind it (a T may stand for the blank, a Z at the end), or a date YYYY-MM-DD, which has no
 * hour. Nothing else is a time: groups have all their digits, so that no other number is taken for one. hour:
 * 0 to 23; weekday: 0, Monday, to 6; weekend: 1 on Saturday and Sunday, else 0. -1: the text is no such time.
 */
int ph__time_component(enum ph__time_component component, const char *text, size_t length);

#endif
