/* Round numbers along an axis. */
#ifndef PH_BASE_TICKS_H
#define PH_BASE_TICKS_H

#include <stddef.h>

#define PH_MAX_TICKS 16
#define PH_TICK_TEXT_BYTES 32

struct ph__ticks {
    size_t count;
    double at[PH_MAX_TICKS];                     /* ascending */
    char text[PH_MAX_TICKS][PH_TICK_TEXT_BYTES]; /* as long as needed to tell neighbours apart; 25k, 1.5M */
};

/* Multiples of 1, 2 or 5 times a power of ten that lie in [low, high], about `wanted` of them: 2 .. PH_MAX_TICKS / 2.
 * None where the range is empty or not finite. */
void ph__ticks(double low, double high, size_t wanted, struct ph__ticks *ticks_out);

/* Powers of ten in [low, high], of positive numbers, every second or third where there are many. */
void ph__ticks_log(double low, double high, size_t wanted, struct ph__ticks *ticks_out);

/* Makes room beyond the lowest and highest number, so that neither is drawn on the frame: *low < *high afterwards,
 * whatever they were; numbers that are not finite give 0 .. 1. */
void ph__ticks_widen(double *low, double *high);

/* A number as people read it in a table or beside a curve: four digits that count, and a letter for powers of a thousand.
 * "–" when it is not finite. Returns `text`. */
const char *ph__quantity_text(double number, char text[PH_TICK_TEXT_BYTES]);

#endif
