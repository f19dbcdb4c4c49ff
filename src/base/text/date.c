#include "base/text/date.h"

#include <string.h>

#define MS_A_DAY 86400000

/* Years begin in March, so that the leap day is last. */
int64_t ph__date_days(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

int ph__date_month_length(int year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

static void write_number(char *text, int count, int value)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        text[i] = (char)('0' + value % 10);
}

bool ph__date_write(int64_t days, char text[PH_DATE_BYTES])
{
    const int64_t first = ph__date_days(1, 1, 1), last = ph__date_days(9999, 12, 31);
    const int64_t shift = ph__date_days(1970, 1, 1);
    if (days < first - shift || days > last - shift)
        return false;
    const int64_t wanted = days + shift;
    int year = (int)(wanted / 366), month = 1; /* of that year or a later one */
    while (ph__date_days(year + 1, 1, 1) <= wanted)
        year++;
    while (ph__date_days(year, month, ph__date_month_length(year, month)) < wanted)
        month++;
    const int in_month = (int)(wanted - ph__date_days(year, month, 1)) + 1;
    memcpy(text, "0000-00-00", PH_DATE_BYTES);
    write_number(text, 4, year);
    write_number(text + 5, 2, month);
    write_number(text + 8, 2, in_month);
    return true;
}

bool ph__utc_write(uint64_t milliseconds, char text[PH_UTC_BYTES])
{
    char date[PH_DATE_BYTES];
    const int in_day = (int)(milliseconds % MS_A_DAY);
    if (!ph__date_write((int64_t)(milliseconds / MS_A_DAY), date))
        return false;
    memcpy(text, "0000-00-00T00:00:00.000Z", PH_UTC_BYTES);
    memcpy(text, date, PH_DATE_BYTES - 1);
    write_number(text + 11, 2, in_day / 3600000);
    write_number(text + 14, 2, in_day / 60000 % 60);
    write_number(text + 17, 2, in_day / 1000 % 60);
    write_number(text + 20, 3, in_day % 1000);
    return true;
}
