#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "report/page_template.h"

static struct ph__json *set_array(struct ph__json *object, const char *key)
{
    struct ph__json *array = ph__json_array();
    ph__json_set(object, key, array);
    return array;
}

static struct ph__json *append_object(struct ph__json *array)
{
    struct ph__json *object = ph__json_object();
    ph__json_append(array, object);
    return object;
}

/* ---- the document ---- */

void ph__page_init(struct ph__page *page, const char *title, const char *heading, const char *about)
{
    page->document = ph__json_object();
    ph__json_set_text(page->document, "title", title);
    ph__json_set_text(page->document, "heading", heading);
    ph__json_set_text(page->document, "about", about);
    page->facts = set_array(page->document, "facts");
    page->sections = set_array(page->document, "sections");
}

void ph__page_fini(struct ph__page *page)
{
    ph__json_destroy(page->document);
}

void ph__page_set_state(struct ph__page *page, bool is_done, const char *text)
{
    struct ph__json *state = ph__json_object();
    ph__json_set_bool(state, "is_done", is_done);
    ph__json_set_text(state, "text", text);
    ph__json_set(page->document, "state", state);
}

void ph__page_add_fact(struct ph__page *page, const char *name, const char *value)
{
    struct ph__json *fact = append_object(page->facts);
    ph__json_set_text(fact, "name", name);
    ph__json_set_text(fact, "value", value);
}

struct ph__json *ph__page_add_section(
    struct ph__page *page, const char *id, const char *heading, const char *note)
{
    struct ph__json *section = append_object(page->sections);
    ph__json_set_text(section, "id", id);
    ph__json_set_text(section, "heading", heading);
    ph__json_set_text(section, "note", note);
    return set_array(section, "blocks");
}

struct ph__json *ph__page_add_block(struct ph__json *blocks, const char *kind)
{
    struct ph__json *block = append_object(blocks);
    ph__json_set_text(block, "kind", kind);
    return block;
}

void ph__page_add_text(struct ph__json *blocks, const char *kind, const char *text)
{
    ph__json_set_text(ph__page_add_block(blocks, kind), "text", text);
}

struct ph__json *ph__page_add_details(struct ph__json *blocks, const char *summary)
{
    struct ph__json *details = ph__page_add_block(blocks, "details");
    ph__json_set_text(details, "summary", summary);
    return set_array(details, "blocks");
}

/* ---- figures and tables ---- */

struct ph__json *ph__page_add_figures(struct ph__json *blocks)
{
    return set_array(ph__page_add_block(blocks, "figures"), "items");
}

void ph__page_add_figure(
    struct ph__json *items, const char *name, double value, const char *format, const char *note)
{
    struct ph__json *item = append_object(items);
    ph__json_set_text(item, "name", name);
    ph__json_set_number(item, "value", value);
    ph__json_set_text(item, "format", format);
    ph__json_set_text(item, "note", note);
}

static void add_head(struct ph__json *heads, const struct ph__page_column *column)
{
    struct ph__json *head = append_object(heads);
    ph__json_set_text(head, "name", column->name);
    ph__json_set_text(head, "format", column->format);
    ph__json_set_text(head, "title", column->title);
}

/* Adds a table without columns or rows, and gives its heads. */
static struct ph__page_table add_empty_table(
    struct ph__json *blocks, const char *id, size_t num_rows, struct ph__json **heads_out)
{
    struct ph__json *table = ph__page_add_block(blocks, "table");
    ph__json_set_text(table, "id", id);
    ph__json_set_integer(table, "num_rows", (int64_t)num_rows);
    *heads_out = set_array(table, "columns");
    struct ph__json *rows = set_array(table, "rows");
    return (struct ph__page_table){.rows = rows, .bars = set_array(table, "bars")};
}

struct ph__page_table ph__page_add_table(struct ph__json *blocks, const char *id,
    const struct ph__page_column *columns, size_t num_columns, size_t num_rows)
{
    struct ph__json *heads;
    const struct ph__page_table table = add_empty_table(blocks, id, num_rows, &heads);
    for (size_t i = 0; i < num_columns; i++)
        add_head(heads, &columns[i]);
    return table;
}

struct ph__json *ph__page_add_row(struct ph__page_table *table, double bar)
{
    struct ph__json *row = ph__json_array();
    ph__json_append(table->rows, row);
    ph__json_append_number(table->bars, bar);
    return row;
}

void ph__page_add_text_table(struct ph__json *blocks, const char *id, const struct ph__text_table *table)
{
    const size_t num_rows = ph__text_table_num_rows(table);
    struct ph__json *heads;
    struct ph__page_table shown = add_empty_table(blocks, id, num_rows, &heads);
    for (size_t i = 0; i < table->num_columns; i++)
        add_head(heads, &(struct ph__page_column){.name = table->columns[i].name,
                            .format = table->columns[i].is_number ? "number" : NULL});
    for (size_t row = 0; row < num_rows && row < PH_PAGE_MAX_ROWS; row++) {
        struct ph__json *values = ph__page_add_row(&shown, (double)NAN);
        for (size_t column = 0; column < table->num_columns; column++)
            ph__json_append_text(values, ph__text_table_at(table, row, column));
    }
}

/* ---- plots ---- */

/* Lists the points to draw in kept[PH_PAGE_MAX_POINTS], ascending: all of them, or the lowest and the highest
 * of each group of neighbours. */
static size_t thin(const struct ph__page_series *series, size_t kept[PH_PAGE_MAX_POINTS])
{
    const size_t num_groups = PH_PAGE_MAX_POINTS / 2;
    size_t count = 0;
    if (series->count <= PH_PAGE_MAX_POINTS) {
        for (size_t i = 0; i < series->count; i++)
            kept[count++] = i;
        return count;
    }
    for (size_t group = 0; group < num_groups; group++) {
        const size_t begin = series->count * group / num_groups,
                     end = series->count * (group + 1) / num_groups;
        size_t lowest = begin, highest = begin;
        for (size_t i = begin; i < end; i++) {
            lowest = series->y[i] < series->y[lowest] || isnan(series->y[lowest]) ? i : lowest;
            highest = series->y[i] > series->y[highest] || isnan(series->y[highest]) ? i : highest;
        }
        kept[count++] = lowest < highest ? lowest : highest;
        if (lowest != highest)
            kept[count++] = lowest < highest ? highest : lowest;
    }
    return count;
}

static void set_numbers(
    struct ph__json *object, const char *key, const double *numbers, const size_t *kept, size_t count)
{
    if (numbers == NULL)
        return;
    struct ph__json *array = set_array(object, key);
    for (size_t i = 0; i < count; i++)
        ph__json_append_number(array, numbers[kept[i]]);
}

static struct ph__json *series_json(const struct ph__page_series *series)
{
    static const char *const styles[] = {"line", "dots", "line and dots", "bars"};
    struct ph__json *object = ph__json_object();
    size_t kept[PH_PAGE_MAX_POINTS];
    const size_t count = thin(series, kept);
    ph__json_set_text(object, "name", series->name);
    ph__json_set_text(object, "id", series->id);
    ph__json_set_text(object, "style", styles[series->style]);
    ph__json_set_integer(object, "color", series->color);
    set_numbers(object, "x", series->x, kept, count);
    set_numbers(object, "y", series->y, kept, count);
    set_numbers(object, "x_end", series->x_end, kept, count);
    set_numbers(object, "low", series->low, kept, count);
    set_numbers(object, "high", series->high, kept, count);
    return object;
}

static struct ph__json *axis_json(const struct ph__page_axis *axis)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_text(object, "label", axis->label);
    ph__json_set_bool(object, "is_log", axis->is_log);
    ph__json_set_bool(object, "has_zero", axis->has_zero);
    if (axis->is_fixed) {
        ph__json_set_number(object, "low", axis->low);
        ph__json_set_number(object, "high", axis->high);
    }
    return object;
}

struct ph__json *ph__page_add_plots(struct ph__json *blocks)
{
    return set_array(ph__page_add_block(blocks, "plots"), "plots");
}

void ph__page_add_plot(struct ph__json *plots, const struct ph__page_plot *plot)
{
    struct ph__json *object = append_object(plots);
    ph__json_set_text(object, "id", plot->id);
    ph__json_set_text(object, "title", plot->title);
    ph__json_set(object, "x", axis_json(&plot->x));
    ph__json_set(object, "y", axis_json(&plot->y));
    ph__json_set_text(object, "diagonal", plot->diagonal);
    struct ph__json *series = set_array(object, "series"), *marks = set_array(object, "marks");
    for (size_t i = 0; i < plot->num_series; i++)
        ph__json_append(series, series_json(&plot->series[i]));
    for (size_t i = 0; i < plot->num_marks; i++) {
        struct ph__json *mark = append_object(marks);
        ph__json_set_number(mark, "x", plot->marks[i].x);
        ph__json_set_text(mark, "text", plot->marks[i].text);
    }
}

/* ---- the file ---- */

/* Writes JSON as the text of a script element. Spells out every '<', since "</script" or "<!--" within a
 * string would end the element. */
static ph_status write_document(struct ph__writer *writer, const char *json)
{
    for (;;) {
        const size_t length = strcspn(json, "<");
        PH_TRY(ph__writer_write(writer, json, length));
        if (json[length] == '\0')
            return PH_OK;
        PH_TRY(ph__writer_write(writer, "\\u003c", 6));
        json += length + 1;
    }
}

static ph_status write_page(struct ph__writer *writer, const char *json)
{
    static const char place[] = "id=\"document\">";
    const char *document = strstr(ph__page_template, place) + sizeof place - 1; /* "{}" follows */
    const char *behind = document + 2;
    PH_TRY(ph__writer_write(writer, ph__page_template, (size_t)(document - ph__page_template)));
    PH_TRY(write_document(writer, json));
    return ph__writer_write(writer, behind, strlen(behind));
}

ph_status ph__page_write(const struct ph__page *page, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__page_write_html(page, writer));
}

/* ---- live pages ---- */

void ph__page_set_live(struct ph__page *page, const char *path, int every_ms)
{
    struct ph__json *live = ph__json_object();
    ph__json_set_text(live, "path", path);
    ph__json_set_integer(live, "every_ms", every_ms);
    ph__json_set(page->document, "live", live);
}

ph_status ph__page_write_html(const struct ph__page *page, struct ph__writer *writer)
{
    char *json;
    PH_TRY(ph__json_text(page->document, 0, &json));
    const ph_status status = write_page(writer, json);
    free(json);
    return status;
}

ph_status ph__page_write_document(const struct ph__page *page, struct ph__writer *writer)
{
    char *json;
    PH_TRY(ph__json_text(page->document, 0, &json));
    const ph_status status = ph__writer_write(writer, json, strlen(json));
    free(json);
    return status;
}
