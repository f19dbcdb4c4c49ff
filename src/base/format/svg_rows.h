/* Named rows beside one axis: where each one's number lies, how far it spreads, and the single values that it is made of. */
#ifndef PH_BASE_SVG_ROWS_H
#define PH_BASE_SVG_ROWS_H

#include "base/format/html.h"

struct ph_plot_row {
    const char *name;
    double value;          /* a large dot; not finite: none */
    double low, high;      /* ends of a line through it; not finite: none */
    const double *singles; /* (num_singles) small dots */
    size_t num_singles;
    double reference; /* a tick of another colour, such as a published figure; not finite: none */
    size_t color;     /* 1 .. 6: --c1 .. --c6 of the page's style */
};

struct ph_row_plot {
    const char *id, *label;     /* label: of the axis */
    double width;               /* in pixels where there is room; the height follows from the rows */
    const char *format;         /* of a value, for one double: "%.4f" */
    const char *reference_name; /* NULL where no row has one */
    const struct ph_plot_row *rows;
    size_t num_rows;
};

/* All is borrowed for the call; the axis covers all numbers that are finite. */
void ph__html_row_plot(struct ph_html *html, const struct ph_row_plot *plot);

#endif
