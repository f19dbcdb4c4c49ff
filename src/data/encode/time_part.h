/* Written times: hour of the day and day of the week out of one. */
#ifndef PH_DATA_TIME_PART_H
#define PH_DATA_TIME_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_options.h"

/* The text is YYMMDDHH of the years from 2000 on (as Avazu writes), YYYY-MM-DD HH with :MM, :MM:SS or :MM:SS.fraction behind it
 * (a T may stand for the blank, a Z at the end), or a date YYYY-MM-DD, which has no hour. Nothing else is a time: groups
 * have all their digits, so that no other number is taken for one.
 * hour: 0 to 23; weekday: 0, Monday, to 6; weekend: 1 on Saturday and Sunday, else 0. -1: the text is no such time. */
int ph__time_part(enum ph_time_part part, const char *text, size_t length);

#endif
