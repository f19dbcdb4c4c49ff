#include "base/format/svg.h"

#include <math.h>
#include <string.h>

#include "base/format/ticks.h"

#define ROW_PIXELS 30
#define TOP_PIXELS 34
#define BOTTOM_PIXELS 46
#define RIGHT_PIXELS 84 /* for the value, written out */
#define LETTER_PIXELS 7

struct row_frame {
    double low, high, left, right, bottom;
};

static double pixel(const struct row_frame *frame, double number)
{
    return frame->left + (number - frame->low) / (frame->high - frame->low) * (frame->right - frame->left);
}

static void take_in(struct row_frame *frame, double number)
{
    if (isfinite(number)) {
        frame->low = fmin(frame->low, number);
        frame->high = fmax(frame->high, number);
    }
}

static struct row_frame frame_of(const struct ph__row_plot *plot)
{
    struct row_frame frame = {.low = (double)INFINITY, .high = -(double)INFINITY};
    size_t longest = 0;
    for (size_t i = 0; i < plot->num_rows; i++) {
        const struct ph__plot_row *row = &plot->rows[i];
        const double numbers[] = {row->value, row->low, row->high, row->reference};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            take_in(&frame, numbers[k]);
        for (size_t k = 0; k < row->num_singles; k++)
            take_in(&frame, row->singles[k]);
        longest = strlen(row->name) > longest ? strlen(row->name) : longest;
    }
    ph__ticks_widen(&frame.low, &frame.high);
    frame.left = fmin(20 + LETTER_PIXELS * (double)longest, 0.4 * plot->width);
    frame.right = plot->width - RIGHT_PIXELS;
    frame.bottom = TOP_PIXELS + ROW_PIXELS * (double)plot->num_rows;
    return frame;
}

static void draw_axis(struct ph__html *html, const struct ph__row_plot *plot, const struct row_frame *frame)
{
    struct ph__ticks ticks;
    ph__ticks(frame->low, frame->high, 6, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = pixel(frame, ticks.at[i]);
        ph__html_markup(html,
            "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/>"
            "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            x, x, TOP_PIXELS, frame->bottom, x, frame->bottom + 18, ticks.text[i]);
    }
    ph__html_markup(html, "<text class=\"axis\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
        (frame->left + frame->right) / 2, frame->bottom + 38);
    ph__html_text(html, plot->label);
    ph__html_markup(html, "</text>\n");
}

/* The plot's format is a caller's constant of one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void write_number(struct ph__html *html, const struct ph__row_plot *plot, double number)
{
    if (isfinite(number))
        ph__html_textf(html, plot->format, number);
    else
        ph__html_text(html, "–");
}
#pragma GCC diagnostic pop

static void write_title(
    struct ph__html *html, const struct ph__row_plot *plot, const struct ph__plot_row *row)
{
    ph__html_markup(html, "<title>");
    ph__html_textf(html, "%s: ", row->name);
    write_number(html, plot, row->value);
    if (isfinite(row->low) && isfinite(row->high)) {
        ph__html_text(html, ", ");
        write_number(html, plot, row->low);
        ph__html_text(html, " to ");
        write_number(html, plot, row->high);
    }
    if (isfinite(row->reference) && plot->reference_name != NULL) {
        ph__html_textf(html, ", %s ", plot->reference_name);
        write_number(html, plot, row->reference);
    }
    ph__html_markup(html, "</title>");
}

static void draw_row(struct ph__html *html, const struct ph__row_plot *plot, const struct row_frame *frame,
    const struct ph__plot_row *row, double y)
{
    ph__html_markup(html,
        "<g><rect class=\"zone\" x=\"0\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>"
        "<text text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">",
        y - ROW_PIXELS / 2.0, plot->width, ROW_PIXELS, frame->left - 10, y + 4);
    ph__html_text(html, row->name);
    ph__html_markup(html, "</text>");
    if (isfinite(row->reference))
        ph__html_markup(html, "<line class=\"whisker s2\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
            pixel(frame, row->reference), pixel(frame, row->reference), y - 9, y + 9);
    if (isfinite(row->low) && isfinite(row->high))
        ph__html_markup(html,
            "<line class=\"whisker s%zu\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", row->color,
            pixel(frame, row->low), pixel(frame, row->high), y, y);
    for (size_t k = 0; k < row->num_singles; k++)
        if (isfinite(row->singles[k]))
            ph__html_markup(html,
                "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" opacity=\".45\"/>", row->color,
                pixel(frame, row->singles[k]), y);
    if (isfinite(row->value))
        ph__html_markup(html, "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", row->color,
            pixel(frame, row->value), y);
    ph__html_markup(html, "<text x=\"%.1f\" y=\"%.1f\">", frame->right + 14, y + 4);
    write_number(html, plot, row->value);
    ph__html_markup(html, "</text>");
    write_title(html, plot, row);
    ph__html_markup(html, "</g>\n");
}

static void draw_header(struct ph__html *html, const struct ph__row_plot *plot, const struct row_frame *frame)
{
    if (plot->reference_name == NULL)
        return;
    ph__html_markup(html, "<line class=\"whisker s2\" x1=\"%.1f\" x2=\"%.1f\" y1=\"6\" y2=\"22\"/>",
        frame->right, frame->right);
    ph__html_markup(html, "<text text-anchor=\"end\" x=\"%.1f\" y=\"18\">", frame->right - 8);
    ph__html_text(html, plot->reference_name);
    ph__html_markup(html, "</text>\n");
}

void ph__html_row_plot(struct ph__html *html, const struct ph__row_plot *plot)
{
    struct row_frame frame = frame_of(plot);
    double height = frame.bottom + BOTTOM_PIXELS;
    ph__html_markup(html,
        "<figure><svg id=\"%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
        plot->id, plot->width, height, plot->width, height);
    draw_header(html, plot, &frame);
    draw_axis(html, plot, &frame);
    for (size_t i = 0; i < plot->num_rows; i++)
        draw_row(html, plot, &frame, &plot->rows[i], TOP_PIXELS + ROW_PIXELS * ((double)i + 0.5));
    ph__html_markup(html, "</svg></figure>\n");
}
