/* Pages of HTML that need nothing beside themselves: no network, no script, the style inside, light or dark as the
 * reader's system asks. Plots that go on a page are in svg.h.
 *
 * Building needs no checks: the first error makes all that follows do nothing, and ph__html_finish returns it.
 * What comes from outside – names, paths, numbers of a file – goes through the functions that escape; a tag's name, a
 * class and an id are the program's own words. One thread at a time. */
#ifndef PH_BASE_HTML_H
#define PH_BASE_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

struct ph__html;

/* Begins a page at `path`, which keeps its former file until ph__html_finish; title: of the window, escaped. */
ph_status ph__html_open(const char *path, const char *title, struct ph__html **html_out);
/* Ends the page and puts it in its place in one moment. PH_ERROR_DISK naming the path. Close it in any case. */
ph_status ph__html_finish(struct ph__html *html);
void ph__html_close(struct ph__html *html); /* NULL is fine; a page that is not finished is discarded */
/* For what fails while a page is made: kept as if writing had failed. */
void ph__html_fail(struct ph__html *html, ph_status status);

/* As it stands: tags and numbers, never anything from outside. */
void ph__html_markup(struct ph__html *html, const char *format, ...) PH_PRINTF(2, 3);
/* Escaped for text and attributes alike; bytes that are no UTF-8 and control characters become U+FFFD. NULL is "". */
void ph__html_text(struct ph__html *html, const char *text);
void ph__html_textf(struct ph__html *html, const char *format, ...) PH_PRINTF(2, 3);
/* <tag class="…">text</tag>, escaped; class_name may be NULL. */
void ph__html_element(struct ph__html *html, const char *tag, const char *class_name, const char *format, ...)
    PH_PRINTF(4, 5);

/* A part of the page with its heading; note: one sentence beneath it, or NULL. */
void ph__html_begin_section(struct ph__html *html, const char *id, const char *heading, const char *note);
void ph__html_end_section(struct ph__html *html);
/* A part that the reader may open, closed at first. */
void ph__html_begin_details(struct ph__html *html, const char *summary);
void ph__html_end_details(struct ph__html *html);

/* Headline figures beside one another: what it is, its value, and what else to say of it ("" is fine). */
void ph__html_begin_figures(struct ph__html *html);
void ph__html_figure(struct ph__html *html, const char *name, const char *value, const char *note);
void ph__html_end_figures(struct ph__html *html);

/* ---- tables ----------------------------------------------------------------------------------------------- */

struct ph__html_column {
    const char *name;
    bool is_number;    /* set to the right */
    const char *title; /* what it means, shown when the pointer rests on it; or NULL */
};

/* The columns are borrowed until the table's end. Cells follow in their order. */
void ph__html_begin_table(
    struct ph__html *html, const char *id, const struct ph__html_column *columns, size_t num_columns);
void ph__html_begin_row(struct ph__html *html);
void ph__html_cell(struct ph__html *html, const char *format, ...) PH_PRINTF(2, 3); /* escaped */
/* "–" for a number that is not finite, else as `format` of one double says. */
void ph__html_number_cell(struct ph__html *html, const char *format, double number);
/* With a bar behind the text, as long as `share` of the cell: 0 .. 1, what lies outside is cut. */
void ph__html_bar_cell(struct ph__html *html, double share, const char *format, ...) PH_PRINTF(3, 4);
void ph__html_end_row(struct ph__html *html);
void ph__html_end_table(struct ph__html *html);

#endif
