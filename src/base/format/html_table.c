/* Tables of html.h. */
#include <math.h>

#include "base/format/html_page.h"

void ph__html_begin_table(
    struct ph_html *html, const char *id, const struct ph_html_column *columns, size_t num_columns)
{
    html->columns = columns;
    html->num_columns = num_columns;
    html->next_column = 0;
    ph__html_markup(html, "<div class=\"scroll\"><table id=\"%s\">\n<thead><tr>", id);
    for (size_t i = 0; i < num_columns; i++) {
        ph__html_markup(html, "<th scope=\"col\"%s", columns[i].is_number ? " class=\"number\"" : "");
        if (columns[i].title != NULL) {
            ph__html_markup(html, " title=\"");
            ph__html_text(html, columns[i].title);
            ph__html_markup(html, "\"");
        }
        ph__html_markup(html, ">");
        ph__html_text(html, columns[i].name);
        ph__html_markup(html, "</th>");
    }
    ph__html_markup(html, "</tr></thead>\n<tbody>\n");
}

void ph__html_begin_row(struct ph_html *html)
{
    html->next_column = 0;
    ph__html_markup(html, "<tr>");
}

/* The class of the cell that is next, and on to the one behind it. */
static const char *next_class(struct ph_html *html)
{
    size_t column = html->next_column++;
    return column < html->num_columns && html->columns[column].is_number ? " class=\"number\"" : "";
}

void ph__html_cell(struct ph_html *html, const char *format, ...)
{
    va_list arguments;
    ph__html_markup(html, "<td%s>", next_class(html));
    va_start(arguments, format);
    ph__html_textv(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</td>");
}

/* The format is a caller's constant of one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void ph__html_number_cell(struct ph_html *html, const char *format, double number)
{
    if (isfinite(number))
        ph__html_cell(html, format, number);
    else
        ph__html_cell(html, "–");
}
#pragma GCC diagnostic pop

void ph__html_bar_cell(struct ph_html *html, double share, const char *format, ...)
{
    va_list arguments;
    double percent = isfinite(share) ? 100 * fmin(fmax(share, 0), 1) : 0;
    ph__html_markup(
        html, "<td%s><span class=\"bar\" style=\"width:%.2f%%\"></span><span>", next_class(html), percent);
    va_start(arguments, format);
    ph__html_textv(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</span></td>");
}

void ph__html_end_row(struct ph_html *html)
{
    ph__html_markup(html, "</tr>\n");
}

void ph__html_end_table(struct ph_html *html)
{
    html->columns = NULL;
    html->num_columns = 0;
    ph__html_markup(html, "</tbody>\n</table></div>\n");
}
