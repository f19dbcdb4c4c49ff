/* Curves, dots and bars over two axes, drawn as SVG onto a page. Nothing is drawn for a number that is not finite (nor, on
 * a logarithmic axis, for one that is not positive): a line has a gap there. A plot without a single number says so. */
#ifndef PH_BASE_SVG_PLOT_H
#define PH_BASE_SVG_PLOT_H

#include "base/format/html.h"

enum ph_plot_style {
    PH_PLOT_LINE,          /* through the points in their order */
    PH_PLOT_DOTS,          /* one a point */
    PH_PLOT_LINE_AND_DOTS, /* both */
    PH_PLOT_BARS,          /* from the bottom up to y, from x to x_end: a histogram */
};

struct ph_plot_series {
    const char
        *name;      /* in the legend, and shown when the pointer rests on a point; NULL: not in the legend */
    const char *id; /* of the element that holds what is drawn; NULL: none */
    enum ph_plot_style style;
    size_t color; /* 1 .. 6: --c1 .. --c6 of the page's style */
    size_t count;
    const double *x, *y;      /* (count) */
    const double *x_end;      /* (count) for bars */
    const double *low, *high; /* (count) ends of a whisker through each point; NULL: none */
};

struct ph_plot_axis {
    const char *label;
    bool is_log;
    bool is_fixed; /* from low to high; else what the series need, and some room */
    bool has_zero; /* the range begins at 0, or ends there */
    double low, high;
};

struct ph_plot_mark { /* a dashed line across, shown with its text when the pointer rests on it */
    double x;
    const char *text;
};

struct ph_plot {
    const char *id, *title; /* title may be NULL */
    double width, height;   /* in pixels where there is room */
    struct ph_plot_axis x, y;
    const struct ph_plot_series *series;
    size_t num_series;
    const struct ph_plot_mark *marks;
    size_t num_marks;
    bool has_diagonal; /* y = x, dashed */
};

/* All is borrowed for the call. */
void ph__html_plot(struct ph_html *html, const struct ph_plot *plot);

#endif
