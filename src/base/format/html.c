#include "base/format/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/html_page.h"
#include "base/text/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* ---- the page --------------------------------------------------------------------------------------------- */

ph_status ph__html_open(const char *path, const char *title, struct ph_html **html_out)
{
    struct ph_html *html = calloc(1, sizeof *html);
    if (html == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: cannot write %s", path);
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
    ph__html_markup(html, "\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", ph__html_style());
    *html_out = html;
    return PH_OK;
}

ph_status ph__html_finish(struct ph_html *html)
{
    ph__html_markup(html, "</main>\n</body>\n</html>\n");
    if (html->status == PH_OK)
        html->status = ph__writer_finish(html->writer);
    return html->status;
}

void ph__html_close(struct ph_html *html)
{
    if (html == NULL)
        return;
    ph__writer_close(html->writer);
    free(html);
}

void ph__html_fail(struct ph_html *html, ph_status status)
{
    if (html->status == PH_OK)
        html->status = status;
}

/* ---- markup and text -------------------------------------------------------------------------------------- */

static void write_bytes(struct ph_html *html, const char *bytes, size_t size)
{
    if (html->status == PH_OK)
        html->status = ph__writer_write(html->writer, bytes, size);
}

/* Malloc'ed; NULL once the page has failed, as it has when there is no memory for the text. */
static char *format_text(struct ph_html *html, const char *format, va_list arguments)
{
    char *text = NULL;
    if (html->status == PH_OK && vasprintf(&text, format, arguments) < 0) {
        html->status = ph_fail(PH_ERROR_MEMORY, "out of memory: a page's text");
        return NULL;
    }
    return text;
}

void ph__html_markup(struct ph_html *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(html, format, arguments);
    va_end(arguments);
    if (text != NULL)
        write_bytes(html, text, strlen(text));
    free(text);
}

/* What a character stands as; NULL: as itself. */
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

void ph__html_text(struct ph_html *html, const char *text)
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

void ph__html_textv(struct ph_html *html, const char *format, va_list arguments)
{
    char *text = format_text(html, format, arguments);
    ph__html_text(html, text);
    free(text);
}

void ph__html_textf(struct ph_html *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ph__html_textv(html, format, arguments);
    va_end(arguments);
}

void ph__html_element(struct ph_html *html, const char *tag, const char *class_name, const char *format, ...)
{
    va_list arguments;
    if (class_name != NULL)
        ph__html_markup(html, "<%s class=\"%s\">", tag, class_name);
    else
        ph__html_markup(html, "<%s>", tag);
    va_start(arguments, format);
    ph__html_textv(html, format, arguments);
    va_end(arguments);
    ph__html_markup(html, "</%s>", tag);
}

/* ---- parts of a page -------------------------------------------------------------------------------------- */

void ph__html_begin_section(struct ph_html *html, const char *id, const char *heading, const char *note)
{
    ph__html_markup(html, "<section id=\"%s\">\n", id);
    ph__html_element(html, "h2", NULL, "%s", heading);
    if (note != NULL)
        ph__html_element(html, "p", "note", "%s", note);
    ph__html_markup(html, "\n");
}

void ph__html_end_section(struct ph_html *html)
{
    ph__html_markup(html, "</section>\n");
}

void ph__html_begin_details(struct ph_html *html, const char *summary)
{
    ph__html_markup(html, "<details>");
    ph__html_element(html, "summary", NULL, "%s", summary);
    ph__html_markup(html, "\n");
}

void ph__html_end_details(struct ph_html *html)
{
    ph__html_markup(html, "</details>\n");
}

void ph__html_begin_figures(struct ph_html *html)
{
    ph__html_markup(html, "<dl class=\"figures\">\n");
}

void ph__html_figure(struct ph_html *html, const char *name, const char *value, const char *note)
{
    ph__html_markup(html, "<div>");
    ph__html_element(html, "dt", NULL, "%s", name);
    ph__html_element(html, "dd", "value", "%s", value);
    ph__html_element(html, "dd", "note", "%s", note);
    ph__html_markup(html, "</div>\n");
}

void ph__html_end_figures(struct ph_html *html)
{
    ph__html_markup(html, "</dl>\n");
}
