/* Reads the text of a cell: raw ids, and the hour and the day of the week of written times. Used by
 * row_cells.c and schema_fields.c; any number of threads. */
#ifndef PH_DATA_CELL_TEXT_H
#define PH_DATA_CELL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_options.h"

/* Parses one to eighteen digits without a sign; returns false for anything else. */
bool ph__decimal_parse_id(const char *text, size_t length, uint64_t *number_out);

/* Returns a component of a written time: the hour, 0 to 23; the weekday, 0 (Monday) to 6; or the weekend, 1
 * on Saturday and Sunday, else 0. Returns -1 when the text is not such a time. A time is YYMMDDHH of the
 * years from 2000 on (as Avazu writes), YYYY-MM-DD HH followed by nothing, :MM, :MM:SS or :MM:SS.fraction (a
 * T may stand for the blank, and a Z at the end), or a date YYYY-MM-DD, which has no hour. Every group must
 * have all its digits, so that no other number is taken for a time. */
int ph__time_component(enum ph__time_component component, const char *text, size_t length);

#endif
