/* Days and the proleptic Gregorian calendar, in UTC: without the C library's time zones, which take a lock and memory. */
#ifndef PH_BASE_DATE_H
#define PH_BASE_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* Days since 1 March of year 0, not before it; month 1 to 12, any day. */
int64_t ph__date_days(int year, int month, int day);
int ph__date_month_length(int year, int month); /* days */

/* The day so many days after 1 January 1970 as YYYY-MM-DD. False outside the years 1 to 9999. */
#define PH_DATE_BYTES 11
bool ph__date_write(int64_t days, char text[PH_DATE_BYTES]);

/* The moment so many milliseconds after 1 January 1970 as YYYY-MM-DDThh:mm:ss.mmmZ (RFC 3339). False after the year 9999. */
#define PH_UTC_BYTES 25
bool ph__utc_write(uint64_t milliseconds, char text[PH_UTC_BYTES]);

#endif
