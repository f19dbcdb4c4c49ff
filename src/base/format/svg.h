/* Plots, drawn as SVG onto a page: curves, dots and bars over two axes (svg_plot.c), named rows beside one (svg_rows.c), graphs
 * (svg_graph.c). */
#ifndef PH_BASE_SVG_H
#define PH_BASE_SVG_H

#include "base/format/graph_layout.h"
#include "base/format/html.h"

/* ---- curves, dots and bars ---- */

/* Curves, dots and bars over two axes. Nothing is drawn for a number that is not finite (nor, on
 * a logarithmic axis, for one that is not positive): a line has a gap there. A plot without a single number says so. */

enum ph__plot_style {
    PH_PLOT_LINE,          /* through the points in their order */
    PH_PLOT_DOTS,          /* one a point */
    PH_PLOT_LINE_AND_DOTS, /* both */
    PH_PLOT_BARS,          /* from the bottom up to y, from x to x_end: a histogram */
};

struct ph__plot_series {
    const char
        *name;      /* in the legend, and shown when the pointer rests on a point; NULL: not in the legend */
    const char *id; /* of the element that holds what is drawn; NULL: none */
    enum ph__plot_style style;
    size_t color; /* 1 .. 6: --c1 .. --c6 of the page's style */
    size_t count;
    const double *x, *y;      /* (count) */
    const double *x_end;      /* (count) for bars */
    const double *low, *high; /* (count) ends of a whisker through each point; NULL: none */
};

struct ph__plot_axis {
    const char *label;
    bool is_log;
    bool is_fixed; /* from low to high; else what the series need, and some room */
    bool has_zero; /* the range begins at 0, or ends there */
    double low, high;
};

struct ph__plot_mark { /* a dashed line across, shown with its text when the pointer rests on it */
    double x;
    const char *text;
};

struct ph__plot {
    const char *id, *title; /* title may be NULL */
    double width, height;   /* in pixels where there is room */
    struct ph__plot_axis x, y;
    const struct ph__plot_series *series;
    size_t num_series;
    const struct ph__plot_mark *marks;
    size_t num_marks;
    bool has_diagonal; /* y = x, dashed */
};

/* All is borrowed for the call. */
void ph__html_plot(struct ph__html *html, const struct ph__plot *plot);

/* ---- rows ---- */

/* Named rows beside one axis: where each one's number lies, how far it spreads, and the single values that it is made of. */

struct ph__plot_row {
    const char *name;
    double value;          /* a large dot; not finite: none */
    double low, high;      /* ends of a line through it; not finite: none */
    const double *singles; /* (num_singles) small dots */
    size_t num_singles;
    double reference; /* a tick of another colour, such as a published figure; not finite: none */
    size_t color;     /* 1 .. 6: --c1 .. --c6 of the page's style */
};

struct ph__row_plot {
    const char *id, *label;     /* label: of the axis */
    double width;               /* in pixels where there is room; the height follows from the rows */
    const char *format;         /* of a value, for one double: "%.4f" */
    const char *reference_name; /* NULL where no row has one */
    const struct ph__plot_row *rows;
    size_t num_rows;
};

/* All is borrowed for the call; the axis covers all numbers that are finite. */
void ph__html_row_plot(struct ph__html *html, const struct ph__row_plot *plot);

/* ---- graphs ---- */

/* A directed graph without cycles, drawn as SVG onto a page from top to bottom: nodes in layers by their longest way from
 * a source, ordered so that few edges cross (Sugiyama, Tagawa, Toda: Methods for Visual Understanding of Hierarchical
 * System Structures, 1981), and moved towards their neighbours. */

/* All is borrowed for the call. Takes time as nodes times edges and as edges squared, and memory as edges times layers: fine for
 * some hundreds of either. */
void ph__html_graph(struct ph__html *html, const struct ph__graph_drawing *drawing);

#endif
