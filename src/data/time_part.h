/* Hour of the day and day of the week out of a written time. */
#ifndef PH_DATA_TIME_PART_H
#define PH_DATA_TIME_PART_H

#include <stddef.h>

#include "data/data_options.h"

/* The digits of the text, whatever separates them, are YYMMDDHH (exactly eight, as Avazu writes) or YYYYMMDDHH and more
 * (as 2014-10-21 05:30:00). hour: 0 to 23; weekday: 0, Monday, to 6; weekend: 1 on Saturday and Sunday, else 0.
 * -1: the text is no such time. */
int ph__time_part(enum ph_time_part part, const char *text, size_t length);

#endif
