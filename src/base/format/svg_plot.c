#include "base/format/svg.h"

#include <math.h>

#include "base/format/ticks.h"

#define LEFT_PIXELS 76
#define RIGHT_PIXELS 14
#define TOP_PIXELS 38 /* title or legend */
#define BOTTOM_PIXELS 46
#define MAX_HOVER_POINTS 400 /* of a line: more lie on top of each other */
#define MAX_LINE_DOTS 150    /* of a line with dots: more hide the line */

/* Numbers to pixels along one axis. */
struct scale {
    double low, high, from, to; /* low is drawn at `from` */
    bool is_log;
};

struct frame {
    struct scale x, y;
};

static double pixel(const struct scale *scale, double number)
{
    double low = scale->low, high = scale->high;
    if (scale->is_log) {
        number = log10(number);
        low = log10(low);
        high = log10(high);
    }
    return scale->from + (number - low) / (high - low) * (scale->to - scale->from);
}

static bool is_drawable(const struct scale *scale, double number)
{
    return isfinite(number) && (!scale->is_log || number > 0);
}

static bool is_point(const struct frame *frame, const struct ph__plot_series *series, size_t i)
{
    return is_drawable(&frame->x, series->x[i]) && is_drawable(&frame->y, series->y[i]);
}

/* ---- ranges ----------------------------------------------------------------------------------------------- */

static void take_in(struct scale *scale, const double *numbers, size_t count)
{
    for (size_t i = 0; numbers != NULL && i < count; i++)
        if (is_drawable(scale, numbers[i])) {
            scale->low = fmin(scale->low, numbers[i]);
            scale->high = fmax(scale->high, numbers[i]);
        }
}

/* Log axes reach to where they do; there is no room to add below 0. */
static void set_range(struct scale *scale, const struct ph__plot_axis *axis)
{
    bool is_empty = scale->low > scale->high;
    if (axis->is_fixed || is_empty) {
        scale->low = axis->is_fixed ? axis->low : axis->is_log ? 1 : 0;
        scale->high = axis->is_fixed ? axis->high : axis->is_log ? 10 : 1;
        return;
    }
    if (axis->is_log) {
        scale->low /= 1.3;
        scale->high *= 1.3;
        return;
    }
    double low = axis->has_zero ? fmin(scale->low, 0) : scale->low;
    double high = axis->has_zero ? fmax(scale->high, 0) : scale->high;
    ph__ticks_widen(&low, &high);
    scale->low = axis->has_zero && scale->low >= 0 ? 0 : low;
    scale->high = axis->has_zero && scale->high <= 0 && scale->low < 0 ? 0 : high;
}

static struct frame frame_of(const struct ph__plot *plot)
{
    struct frame frame = {
        .x = {(double)INFINITY, -(double)INFINITY, LEFT_PIXELS, plot->width - RIGHT_PIXELS, plot->x.is_log},
        .y = {(double)INFINITY, -(double)INFINITY, plot->height - BOTTOM_PIXELS, TOP_PIXELS, plot->y.is_log},
    };
    for (size_t s = 0; s < plot->num_series; s++) {
        const struct ph__plot_series *series = &plot->series[s];
        take_in(&frame.x, series->x, series->count);
        take_in(&frame.x, series->x_end, series->count);
        take_in(&frame.y, series->y, series->count);
        take_in(&frame.y, series->low, series->count);
        take_in(&frame.y, series->high, series->count);
    }
    set_range(&frame.x, &plot->x);
    set_range(&frame.y, &plot->y);
    return frame;
}

/* ---- axes ------------------------------------------------------------------------------------------------- */

static void ticks_of(const struct scale *scale, size_t wanted, struct ph__ticks *ticks)
{
    if (scale->is_log)
        ph__ticks_log(scale->low, scale->high, wanted, ticks);
    else
        ph__ticks(scale->low, scale->high, wanted, ticks);
}

static void draw_axes(struct ph__html *html, const struct ph__plot *plot, const struct frame *frame)
{
    struct ph__ticks ticks;
    double left = frame->x.from, right = frame->x.to, bottom = frame->y.from, top = frame->y.to;
    ticks_of(&frame->y, 5, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = pixel(&frame->y, ticks.at[i]);
        ph__html_markup(html,
            "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            left, right, y, y, left - 7, y + 4, ticks.text[i]);
    }
    ticks_of(&frame->x, plot->width < 400 ? 4 : 6, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = pixel(&frame->x, ticks.at[i]);
        ph__html_markup(html,
            "<line class=\"frame\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            x, x, bottom, bottom + 4, x, bottom + 18, ticks.text[i]);
    }
    ph__html_markup(html, "<line class=\"frame\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", left,
        right, bottom, bottom);
    ph__html_markup(html, "<text class=\"axis\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
        (left + right) / 2, bottom + 38);
    ph__html_text(html, plot->x.label);
    ph__html_markup(html,
        "</text>\n<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(13 %.1f) rotate(-90)\">",
        (top + bottom) / 2);
    ph__html_text(html, plot->y.label);
    ph__html_markup(html, "</text>\n");
}

static void draw_legend(struct ph__html *html, const struct ph__plot *plot, const struct frame *frame)
{
    ph__html_markup(html, "<text text-anchor=\"end\" x=\"%.1f\" y=\"18\">", frame->x.to);
    for (size_t s = 0; s < plot->num_series; s++) {
        const struct ph__plot_series *series = &plot->series[s];
        if (series->name == NULL)
            continue;
        ph__html_markup(html, "<tspan dx=\"14\" class=\"f%zu\">■</tspan><tspan dx=\"5\">", series->color);
        ph__html_text(html, series->name);
        ph__html_markup(html, "</tspan>");
    }
    ph__html_markup(html, "</text>\n");
}

static void draw_title(struct ph__html *html, const struct ph__plot *plot)
{
    if (plot->title == NULL)
        return;
    ph__html_markup(html, "<text class=\"title\" x=\"4\" y=\"18\">");
    ph__html_text(html, plot->title);
    ph__html_markup(html, "</text>\n");
}

static void draw_marks(struct ph__html *html, const struct ph__plot *plot, const struct frame *frame)
{
    for (size_t i = 0; i < plot->num_marks; i++) {
        if (!is_drawable(&frame->x, plot->marks[i].x))
            continue;
        double x = pixel(&frame->x, plot->marks[i].x);
        ph__html_markup(html,
            "<g><rect class=\"zone\" x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"%.1f\"/>"
            "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><title>",
            x - 4, frame->y.to, frame->y.from - frame->y.to, x, x, frame->y.from, frame->y.to);
        ph__html_text(html, plot->marks[i].text);
        ph__html_markup(html, "</title></g>\n");
    }
    if (plot->has_diagonal)
        ph__html_markup(html, "<line class=\"mark\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            pixel(&frame->x, frame->x.low), pixel(&frame->y, frame->x.low), pixel(&frame->x, frame->x.high),
            pixel(&frame->y, frame->x.high));
}

/* ---- series ----------------------------------------------------------------------------------------------- */

static bool has_whisker(const struct ph__plot_series *series, size_t i)
{
    return series->low != NULL && series->high != NULL && isfinite(series->low[i]) &&
           isfinite(series->high[i]);
}

static void write_title(struct ph__html *html, const struct ph__plot_series *series, size_t i)
{
    char x[PH_TICK_TEXT_BYTES], y[PH_TICK_TEXT_BYTES];
    ph__html_markup(html, "<title>");
    if (series->name != NULL)
        ph__html_textf(html, "%s: ", series->name);
    ph__html_textf(html, "%s at %s", ph__quantity_text(series->y[i], y), ph__quantity_text(series->x[i], x));
    if (has_whisker(series, i))
        ph__html_textf(html, " (%.4g to %.4g)", series->low[i], series->high[i]);
    ph__html_markup(html, "</title>");
}

/* The points of one column of pixels: what a line shows of them is in these four. */
struct column {
    size_t first, lowest, highest, last;
};

static void write_point(struct ph__html *html, const struct frame *frame,
    const struct ph__plot_series *series, size_t i, bool *is_drawing)
{
    ph__html_markup(html, "%c%.1f %.1f", *is_drawing ? 'L' : 'M', pixel(&frame->x, series->x[i]),
        pixel(&frame->y, series->y[i]));
    *is_drawing = true;
}

static void write_column(struct ph__html *html, const struct frame *frame,
    const struct ph__plot_series *series, const struct column *column, bool *is_drawing)
{
    size_t inner[2] = {column->lowest, column->highest}, written = column->first;
    if (inner[0] > inner[1]) {
        inner[0] = column->highest;
        inner[1] = column->lowest;
    }
    write_point(html, frame, series, column->first, is_drawing);
    for (size_t k = 0; k < 2; k++)
        if (inner[k] > written) {
            write_point(html, frame, series, inner[k], is_drawing);
            written = inner[k];
        }
    if (column->last > written)
        write_point(html, frame, series, column->last, is_drawing);
}

static bool is_same_column(const struct frame *frame, double left, double right)
{
    return floor(pixel(&frame->x, left)) == floor(pixel(&frame->x, right));
}

/* The points from `first` on that fall into its column of pixels; the index behind them. */
static size_t gather_column(
    const struct frame *frame, const struct ph__plot_series *series, size_t first, struct column *column_out)
{
    struct column column = {first, first, first, first};
    size_t i = first + 1;
    for (; i < series->count && is_point(frame, series, i); i++) {
        if (!is_same_column(frame, series->x[first], series->x[i]))
            break;
        column.lowest = series->y[i] < series->y[column.lowest] ? i : column.lowest;
        column.highest = series->y[i] > series->y[column.highest] ? i : column.highest;
        column.last = i;
    }
    *column_out = column;
    return i;
}

static void draw_line(struct ph__html *html, const struct frame *frame, const struct ph__plot_series *series)
{
    bool is_drawing = false;
    ph__html_markup(html, "<path class=\"line s%zu\" d=\"", series->color);
    for (size_t i = 0; i < series->count;) {
        if (!is_point(frame, series, i)) {
            is_drawing = false;
            i++;
            continue;
        }
        struct column column;
        i = gather_column(frame, series, i, &column);
        write_column(html, frame, series, &column, &is_drawing);
    }
    ph__html_markup(html, "\"/>\n");
}

/* A dot, or a place for the pointer to rest where a line needs none. */
static void draw_dot(struct ph__html *html, const struct frame *frame, const struct ph__plot_series *series,
    size_t i, bool is_seen)
{
    double x = pixel(&frame->x, series->x[i]), y = pixel(&frame->y, series->y[i]);
    if (has_whisker(series, i) && is_drawable(&frame->y, series->low[i]))
        ph__html_markup(html,
            "<line class=\"whisker s%zu\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", series->color,
            x, x, pixel(&frame->y, series->low[i]), pixel(&frame->y, series->high[i]));
    ph__html_markup(html, "<g><circle class=\"zone\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>", x, y);
    if (is_seen)
        ph__html_markup(
            html, "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", series->color, x, y);
    write_title(html, series, i);
    ph__html_markup(html, "</g>\n");
}

static void draw_dots(struct ph__html *html, const struct frame *frame, const struct ph__plot_series *series)
{
    bool is_line = series->style != PH_PLOT_DOTS;
    bool is_seen = series->style != PH_PLOT_LINE && (!is_line || series->count <= MAX_LINE_DOTS);
    if (is_line && series->count > MAX_HOVER_POINTS)
        return;
    for (size_t i = 0; i < series->count; i++)
        if (is_point(frame, series, i))
            draw_dot(html, frame, series, i, is_seen || (is_line && series->count == 1));
}

static void draw_bars(struct ph__html *html, const struct frame *frame, const struct ph__plot_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        if (!is_point(frame, series, i) || !is_drawable(&frame->x, series->x_end[i]))
            continue;
        double x = pixel(&frame->x, series->x[i]), x_end = pixel(&frame->x, series->x_end[i]);
        double y = fmin(pixel(&frame->y, series->y[i]), frame->y.from);
        ph__html_markup(html, "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
            series->color, x, y, fmax(x_end - x - 1, 0.5), frame->y.from - y);
        write_title(html, series, i);
        ph__html_markup(html, "</rect>\n");
    }
}

static bool draw_series(
    struct ph__html *html, const struct frame *frame, const struct ph__plot_series *series)
{
    size_t num_points = 0;
    for (size_t i = 0; i < series->count; i++)
        num_points += is_point(frame, series, i);
    ph__html_markup(html, "<g");
    if (series->id != NULL)
        ph__html_markup(html, " id=\"%s\"", series->id);
    ph__html_markup(html, " data-points=\"%zu\">\n", num_points);
    if (series->style == PH_PLOT_BARS)
        draw_bars(html, frame, series);
    if (series->style == PH_PLOT_LINE || series->style == PH_PLOT_LINE_AND_DOTS)
        draw_line(html, frame, series);
    if (series->style != PH_PLOT_BARS)
        draw_dots(html, frame, series);
    ph__html_markup(html, "</g>\n");
    return num_points > 0;
}

static void draw_all_series(struct ph__html *html, const struct ph__plot *plot, const struct frame *frame)
{
    bool has_points = false;
    ph__html_markup(html,
        "<clipPath id=\"%s-clip\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n"
        "<g clip-path=\"url(#%s-clip)\">\n",
        plot->id, frame->x.from, frame->y.to - 5, frame->x.to - frame->x.from + 5,
        frame->y.from - frame->y.to + 5, plot->id);
    draw_marks(html, plot, frame);
    for (size_t s = 0; s < plot->num_series; s++)
        has_points = draw_series(html, frame, &plot->series[s]) || has_points;
    ph__html_markup(html, "</g>\n");
    if (!has_points)
        ph__html_markup(html,
            "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">nothing to show</text>\n",
            (frame->x.from + frame->x.to) / 2, (frame->y.from + frame->y.to) / 2);
}

void ph__html_plot(struct ph__html *html, const struct ph__plot *plot)
{
    struct frame frame = frame_of(plot);
    ph__html_markup(html,
        "<figure><svg id=\"%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
        plot->id, plot->width, plot->height, plot->width, plot->height);
    draw_title(html, plot);
    draw_legend(html, plot, &frame);
    draw_axes(html, plot, &frame);
    draw_all_series(html, plot, &frame);
    ph__html_markup(html, "</svg></figure>\n");
}
