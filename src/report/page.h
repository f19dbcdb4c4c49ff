/* The page of a report: one HTML file that needs nothing beside itself. C describes what the page shows as
 * JSON; the template (page.html) draws it. The template and the document travel in one file, so that no
 * network and no second file is needed.
 *
 * The document, member by member:
 *
 *     title       of the window
 *     heading     above the page; about: one sentence below it
 *     state       {is_done, text}: how the reported work ended, and why
 *     facts       [{name, value}]
 *     sections    [{id, heading, note, blocks}]
 *     live        {path, every_ms}: of a page that is drawn anew from the document at `path` of its own host
 *
 * A block is {kind, ...}; by its kind, the other members are:
 *
 *     heading, text, preformatted: {text}
 *     figures     {items: [{name, value, format, note}]}
 *     table       {id, columns: [{name, format, title}], rows: [[value]], bars: [share], num_rows}
 *     plots       {plots: [ph__page_plot]}
 *     rows        {id, label, format, reference_name,
 *                  rows: [{name, value, low, high, reference, singles: [value]}]}
 *     graph       {id, nodes: [{label, note, title, color}], edges: [[from, to]]}
 *     matrix      {id, format, names: [text], groups: [number], values: [[number]]}: by row and column, both
 *                 ordered by group; a number that is not above 0 is left out
 *     details     {summary, blocks}
 *
 * Building needs no checks, as in base/format/json.h: ph__page_write reports memory that ran out. Texts are
 * copied and may hold anything: the template sets them as text, never as markup. One thread at a time per
 * page. */
#ifndef PH_REPORT_PAGE_H
#define PH_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file/stream.h"
#include "base/format/json.h"
#include "base/format/text_table.h"

struct ph__page {
    struct ph__json *document;         /* owned */
    struct ph__json *facts, *sections; /* borrowed from it */
};

/* Begins a page without sections. `about` may be NULL. */
void ph__page_init(struct ph__page *page, const char *title, const char *heading, const char *about);
void ph__page_fini(struct ph__page *page);

/* Writes the page to `path`, which keeps its former file until the new one is complete. PH_ERROR_DISK naming
 * the path, PH_ERROR_MEMORY. */
ph_status ph__page_write(const struct ph__page *page, const char *path);

/* Make a page of a running server: `path` is where ph__page_write_document answers, every_ms how often the
 * page asks for it. */
void ph__page_set_live(struct ph__page *page, const char *path, int every_ms);
ph_status ph__page_write_html(const struct ph__page *page, struct ph__writer *writer);
ph_status ph__page_write_document(const struct ph__page *page, struct ph__writer *writer); /* JSON alone */

/* Says how the reported work ended, and why. */
void ph__page_set_state(struct ph__page *page, bool is_done, const char *text);
void ph__page_add_fact(struct ph__page *page, const char *name, const char *value);

/* Adds a section and returns its blocks, borrowed. `note`: a sentence below the heading, or NULL. */
struct ph__json *ph__page_add_section(
    struct ph__page *page, const char *id, const char *heading, const char *note);

/* Adds a block of `kind` and returns it, borrowed. */
struct ph__json *ph__page_add_block(struct ph__json *blocks, const char *kind);
/* Adds a block that has only a text: a heading, text, or preformatted. */
void ph__page_add_text(struct ph__json *blocks, const char *kind, const char *text);
/* Adds a part that the reader may open, and returns its blocks, borrowed. */
struct ph__json *ph__page_add_details(struct ph__json *blocks, const char *summary);

/* ---- figures and tables ----
 *
 * A format is how a value reads: "quantity" (12.3k), "bytes", "percent" (of a share), "number", ".3"
 * (decimals), or NULL for text. A value that is not finite reads "–". */

/* Adds a block of headline figures and returns its items, borrowed. */
struct ph__json *ph__page_add_figures(struct ph__json *blocks);
/* note: an addition, or NULL. */
void ph__page_add_figure(
    struct ph__json *items, const char *name, double value, const char *format, const char *note);

struct ph__page_column {
    const char *name;
    const char *format;
    const char *title; /* shown while the pointer rests on the column's head; or NULL */
};

#define PH_PAGE_MAX_ROWS 1000

struct ph__page_table {
    struct ph__json *rows, *bars; /* borrowed from the page */
};

/* Adds a table, which gets its rows next. The reader may sort it by any column. num_rows: all rows there are;
 * add the first PH_PAGE_MAX_ROWS of more: the page says how many are left out. */
struct ph__page_table ph__page_add_table(struct ph__json *blocks, const char *id,
    const struct ph__page_column *columns, size_t num_columns, size_t num_rows);
/* Adds a row and returns its values, borrowed: append one a column. bar: length of the bar behind the first
 * value, 0 .. 1, or NAN for none. */
struct ph__json *ph__page_add_row(struct ph__page_table *table, double bar);

/* Adds a text table as it is, its first PH_PAGE_MAX_ROWS rows. */
void ph__page_add_text_table(struct ph__json *blocks, const char *id, const struct ph__text_table *table);

/* ---- plots ---- */

enum ph__page_style {
    PH_PAGE_LINE,          /* through the points in their order */
    PH_PAGE_DOTS,          /* one a point */
    PH_PAGE_LINE_AND_DOTS, /* both */
    PH_PAGE_BARS,          /* from the bottom up to y, from x to x_end: a histogram */
};

/* Points to draw. A point that is not finite leaves a gap. Of more than PH_PAGE_MAX_POINTS, the lowest and
 * the highest of neighbours are kept. */
struct ph__page_series {
    const char *name; /* in the legend; NULL: not in the legend */
    const char *id;   /* of the element that holds what is drawn */
    enum ph__page_style style;
    int color; /* 1 .. 6, of the page's style */
    size_t count;
    const double *x, *y;      /* (count) */
    const double *x_end;      /* (count) of bars */
    const double *low, *high; /* (count) ends of a whisker through each point; NULL: none */
};

#define PH_PAGE_MAX_POINTS 4000

struct ph__page_axis {
    const char *label;
    bool is_log;
    bool is_fixed; /* range low .. high; else as the series need */
    bool has_zero; /* the range begins or ends at 0 */
    double low, high;
};

struct ph__page_mark { /* a dashed line across, with its text beside it */
    double x;
    const char *text;
};

struct ph__page_plot {
    const char *id, *title; /* title may be NULL */
    struct ph__page_axis x, y;
    const struct ph__page_series *series;
    size_t num_series;
    const struct ph__page_mark *marks;
    size_t num_marks;
    const char *diagonal; /* label of the dashed line y = x; NULL: no such line */
};

/* Adds a block of plots, side by side where there is room, and returns its plots, borrowed. */
struct ph__json *ph__page_add_plots(struct ph__json *blocks);
void ph__page_add_plot(struct ph__json *plots, const struct ph__page_plot *plot);

#endif
