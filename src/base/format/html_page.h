/* The inside of a page, for the files of html.h alone. */
#ifndef PH_BASE_HTML_PAGE_H
#define PH_BASE_HTML_PAGE_H

#include <stdarg.h>

#include "base/file/stream.h"
#include "base/format/html.h"

struct ph_html {
    struct ph_writer *writer;
    ph_status status;                     /* the first error */
    const struct ph_html_column *columns; /* of the table at hand */
    size_t num_columns, next_column;
};

/* What the style sheet says, between <style> and </style>. */
const char *ph__html_style(void);

/* Formats, and writes escaped. */
void ph__html_textv(struct ph_html *html, const char *format, va_list arguments) PH_PRINTF(2, 0);

#endif
