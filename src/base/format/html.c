#include "base/format/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/text/utf8.h"

struct ph__html {
    struct ph__writer *writer;
    ph_status status;                      /* the first error */
    const struct ph__html_column *columns; /* of the table at hand */
    size_t num_columns, next_column;
};

/* ---- style ---- */

/* The look of all pages: colours are variables, so that light and dark differ in one place. */

static const char style[] =
    ":root{--page:#fafaf8;--card:#ffffff;--text:#20262b;--muted:#66707a;--line:#e2e4e1;--accent:#2a66a5;"
    "--bar:#dbe7f3;--good:#2f7d4f;--bad:#b23a3a;"
    "--c1:#2a66a5;--c2:#c4601d;--c3:#37845a;--c4:#8150a0;--c5:#b0395a;--c6:#6a737c}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#14171a;--card:#1b1f23;--text:#e3e7ea;--muted:#98a2ac;"
    "--line:#30363c;--accent:#78aee6;--bar:#26405a;--good:#74c495;--bad:#ea8a8a;"
    "--c1:#78aee6;--c2:#e99a5f;--c3:#74c495;--c4:#c196dc;--c5:#ea87a1;--c6:#a3adb7}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",\"Noto Sans\",\"DejaVu Sans\",sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}\n"
    "h1{font-size:26px;font-weight:600;line-height:1.25;margin:0 0 4px}\n"
    "h2{font-size:18px;font-weight:600;margin:0 0 4px}\n"
    "h3{font-size:14px;font-weight:600;margin:16px 0 4px}\n"
    "p{margin:0 0 12px;max-width:76ch}\n"
    ".note{color:var(--muted);font-size:13.5px}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:20px 22px;"
    "margin:20px 0}\n"
    "code,pre{font-family:ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;font-size:13px}\n"
    "pre{overflow-x:auto;margin:8px 0 0}\n"
    "summary{cursor:pointer;color:var(--accent)}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}\n"
    ".state::before{content:\"\";display:inline-block;width:9px;height:9px;border-radius:50%;background:var(-"
    "-muted);"
    "margin-right:8px}\n"
    ".state.done::before{background:var(--good)}.state.stopped::before{background:var(--c2)}\n"
    "dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:6px 24px;margin:12px "
    "0 0;"
    "font-size:13.5px}\n"
    "dl.facts dt{color:var(--muted)}\n"
    "dl.facts dd{margin:0;overflow-wrap:anywhere}\n"
    "dl.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px 24px;"
    "margin:12px 0 0}\n"
    "dl.figures dt{color:var(--muted);font-size:13px}\n"
    "dl.figures dd{margin:0}\n"
    "dl.figures .value{font-size:22px;font-weight:600;line-height:1.25;font-variant-numeric:tabular-nums;"
    "overflow-wrap:anywhere}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:12px 20px}\n"
    ".scroll{overflow:auto;max-height:560px;margin:8px 0 0}\n"
    "table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}\n"
    "th{text-align:left;color:var(--muted);font-weight:500;border-bottom:1px solid var(--line);"
    "vertical-align:bottom;position:sticky;top:0;z-index:1;background:var(--card)}\n"
    "th,td{padding:5px 10px 5px 0;white-space:nowrap}\n"
    "td{position:relative;border-bottom:1px solid var(--line)}\n"
    "tr:last-child td{border-bottom:0}\n"
    ".number{text-align:right;padding:5px 16px 5px 0}\n"
    "td .bar{position:absolute;left:0;top:3px;bottom:3px;background:var(--bar);border-radius:2px}\n"
    "td .bar+span{position:relative;padding-left:6px}\n"
    "svg{display:block;max-width:100%;height:auto}\n"
    "figure{margin:8px 0 0}\n"
    "svg text{fill:var(--text);font-size:12px;font-family:inherit}\n"
    "svg .tick,svg .axis{fill:var(--muted)}\n"
    "svg .title{font-weight:600;font-size:13px}\n"
    "svg .grid{stroke:var(--line);stroke-width:1}\n"
    "svg .frame{stroke:var(--muted);stroke-width:1;fill:none}\n"
    "svg .mark{stroke:var(--muted);stroke-width:1;stroke-dasharray:3 3}\n"
    "svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\n"
    "svg .whisker{stroke-width:1.4}\n"
    "svg .zone{fill:transparent}\n"
    "svg g:hover>.zone{fill:var(--bar);fill-opacity:.5}\n"
    "svg.whole{max-width:none;margin:0 auto}\n"
    "svg .small{font-size:10.5px}\n"
    "svg .node{fill:var(--card);stroke:var(--line);stroke-width:1.2}\n"
    "svg .edge{fill:none;stroke:var(--muted);stroke-width:1.1;opacity:.65}\n"
    "svg .arrow{fill:var(--muted)}\n"
    "svg .s1{stroke:var(--c1)}svg .s2{stroke:var(--c2)}svg .s3{stroke:var(--c3)}"
    "svg .s4{stroke:var(--c4)}svg .s5{stroke:var(--c5)}svg .s6{stroke:var(--c6)}\n"
    "svg .f1{fill:var(--c1)}svg .f2{fill:var(--c2)}svg .f3{fill:var(--c3)}"
    "svg .f4{fill:var(--c4)}svg .f5{fill:var(--c5)}svg .f6{fill:var(--c6)}\n"
    "@media "
    "print{body{background:#fff}section{border:0;padding:0}.scroll{max-height:none;overflow:visible}}\n";

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* ---- the page --------------------------------------------------------------------------------------------- */

ph_status ph__html_open(const char *path, const char *title, struct ph__html **html_out)
{
    struct ph__html *html = calloc(1, sizeof *html);
    if (html == NULL)
        return ph__out_of_memory("cannot write %s", path);
    ph_status status = ph__writer_open_atomic(path, &html->writer);
    if (status != PH_OK) {
        free(html);
        return status;
    }
    ph__html_markup(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                          "<meta name=\"color-scheme\" content=\"light dark\">\n"
                          "<link rel=\"icon\" href=\"data:,\">\n"); /* so that nobody asks for one */
    ph__html_element(html, "title", NULL, "%s", title);
    ph__html_markup(html, "\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
    *html_out = html;
    return PH_OK;
}

ph_status ph__html_finish(struct ph__html *html)
{
    ph__html_markup(html, "</main>\n</body>\n</html>\n");
    if (html->status == PH_OK)
        html->status = ph__writer_finish(html->writer);
    return html->status;
}

void ph__html_close(struct ph__html *html)
{
    if (html == NULL)
        return;
    ph__writer_close(html->writer);
    free(html);
}

void ph__html_fail(struct ph__html *html, ph_status status)
{
    if (html->status == PH_OK)
        html->status = status;
}

/* ---- markup and text -------------------------------------------------------------------------------------- */

static void write_bytes(struct ph__html *html, const char *bytes, size_t size)
{
    if (html->status == PH_OK)
        html->status = ph__writer_write(html->writer, bytes, size);
}

/* Malloc'ed; NULL once the page has failed, as it has when there is no memory for the text. */
static char *format_text(struct ph__html *html, const char *format, va_list arguments)
{
    char *text = NULL;
    if (html->status == PH_OK && vasprintf(&text, format, arguments) < 0) {
        html->status = ph__out_of_memory("a page's text");
        return NULL;
    }
    return text;
}

void ph__html_markup(struct ph__html *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(html, format, arguments);
    va_end(arguments);
    if (text != NULL)
        write_bytes(html, text, strlen(text));
    free(text);
}

/* Gives the entity that stands for a character; NULL: the character itself. */
static const char *entity_of(uint32_t code)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (code < ' ' && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ? REPLACEMENT
                                                                                             : NULL;
    }
}

void ph__html_text(struct ph__html *html, const char *text)
{
    const char *at = text != NULL ? text : "", *end = at + strlen(at);
    const char *plain = at; /* from here to `at` nothing needs another spelling */
    while (at < end) {
        uint32_t code = 0;
        size_t size = ph__utf8_decode(at, (size_t)(end - at), &code);
        const char *spelled = size > 0 ? entity_of(code) : REPLACEMENT;
        size = size > 0 ? size : 1;
        if (spelled != NULL) {
            write_bytes(html, plain, (size_t)(at - plain));
            write_bytes(html, spelled, strlen(spelled));
            plain = at + size;
        }
        at += size;
    }
    write_bytes(html, plain, (size_t)(end - plain));
}

/* Formats, and writes escaped. */
PH_PRINTF(2, 0)
static void write_text(struct ph__html *html, const char *format, va_list arguments)
{
    char *text = format_text(html, format, arguments);
    ph__html_text(html, text);
    free(text);
}

void ph__html_textf(struct ph__html *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text(html, format, arguments);
    va_end(arguments);
}

void ph__html_element(struct ph__html *html, const char *tag, const char *class_name, const char *format, ...)
{
    va_list arguments;
    if (class_name != NULL)
        ph__html_markup(html, "<%s class=\"%s\">", tag, class_name);
    else
        ph__html_markup(html, "<%s>", tag);
    va_start(arguments, format);
    write_text(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</%s>", tag);
}

/* ---- parts of a page -------------------------------------------------------------------------------------- */

void ph__html_begin_section(struct ph__html *html, const char *id, const char *heading, const char *note)
{
    ph__html_markup(html, "<section id=\"%s\">\n", id);
    ph__html_element(html, "h2", NULL, "%s", heading);
    if (note != NULL)
        ph__html_element(html, "p", "note", "%s", note);
    ph__html_markup(html, "\n");
}

void ph__html_end_section(struct ph__html *html)
{
    ph__html_markup(html, "</section>\n");
}

void ph__html_begin_details(struct ph__html *html, const char *summary)
{
    ph__html_markup(html, "<details>");
    ph__html_element(html, "summary", NULL, "%s", summary);
    ph__html_markup(html, "\n");
}

void ph__html_end_details(struct ph__html *html)
{
    ph__html_markup(html, "</details>\n");
}

void ph__html_begin_figures(struct ph__html *html)
{
    ph__html_markup(html, "<dl class=\"figures\">\n");
}

void ph__html_figure(struct ph__html *html, const char *name, const char *value, const char *note)
{
    ph__html_markup(html, "<div>");
    ph__html_element(html, "dt", NULL, "%s", name);
    ph__html_element(html, "dd", "value", "%s", value);
    ph__html_element(html, "dd", "note", "%s", note);
    ph__html_markup(html, "</div>\n");
}

void ph__html_end_figures(struct ph__html *html)
{
    ph__html_markup(html, "</dl>\n");
}

/* ---- tables ---- */

void ph__html_begin_table(
    struct ph__html *html, const char *id, const struct ph__html_column *columns, size_t num_columns)
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

void ph__html_begin_row(struct ph__html *html)
{
    html->next_column = 0;
    ph__html_markup(html, "<tr>");
}

/* The class of the cell that is next, and on to the one behind it. */
static const char *next_class(struct ph__html *html)
{
    size_t column = html->next_column++;
    return column < html->num_columns && html->columns[column].is_number ? " class=\"number\"" : "";
}

void ph__html_cell(struct ph__html *html, const char *format, ...)
{
    va_list arguments;
    ph__html_markup(html, "<td%s>", next_class(html));
    va_start(arguments, format);
    write_text(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</td>");
}

/* The format is a caller's constant of one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void ph__html_number_cell(struct ph__html *html, const char *format, double number)
{
    if (isfinite(number))
        ph__html_cell(html, format, number);
    else
        ph__html_cell(html, "–");
}
#pragma GCC diagnostic pop

void ph__html_bar_cell(struct ph__html *html, double share, const char *format, ...)
{
    va_list arguments;
    double percent = isfinite(share) ? 100 * fmin(fmax(share, 0), 1) : 0;
    ph__html_markup(
        html, "<td%s><span class=\"bar\" style=\"width:%.2f%%\"></span><span>", next_class(html), percent);
    va_start(arguments, format);
    write_text(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</span></td>");
}

void ph__html_end_row(struct ph__html *html)
{
    ph__html_markup(html, "</tr>\n");
}

void ph__html_end_table(struct ph__html *html)
{
    html->columns = NULL;
    html->num_columns = 0;
    ph__html_markup(html, "</tbody>\n</table></div>\n");
}
