#include "net/server/prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

void ph__prometheus_init(struct ph__prometheus *text, struct ph__writer *writer)
{
    *text = (struct ph__prometheus){.writer = writer};
}

static void put_bytes(struct ph__prometheus *text, const char *bytes, size_t size)
{
    if (text->status == PH_OK)
        text->status = ph__writer_write(text->writer, bytes, size);
}

static void put(struct ph__prometheus *text, const char *word)
{
    put_bytes(text, word, strlen(word));
}

/* Writes a text, escaping line ends, backslashes and, between quotes, quotes; the format has no other
 * escapes. */
static void put_escaped(struct ph__prometheus *text, const char *value, bool is_quoted)
{
    for (size_t left = strlen(value), size; left > 0; left -= size, value += size) {
        uint32_t code = 0;
        size = ph__utf8_decode(value, left, &code);
        if (size == 0) {
            put(text, REPLACEMENT);
            size = 1;
        } else if (code == '\n') {
            put(text, "\\n");
        } else if (code == '\\' || (code == '"' && is_quoted)) {
            put(text, "\\");
            put_bytes(text, value, size);
        } else {
            put_bytes(text, value, size);
        }
    }
}

void ph__prometheus_begin(
    struct ph__prometheus *text, enum ph__prometheus_kind kind, const char *family, const char *help)
{
    text->family = family;
    put(text, "# HELP ");
    put(text, family);
    put(text, " ");
    put_escaped(text, help, false);
    put(text, "\n# TYPE ");
    put(text, family);
    static const char *const kinds[] = {" counter\n", " gauge\n", " histogram\n"};
    put(text, kinds[kind]);
}

static void put_sample(struct ph__prometheus *text, const char *ending,
    const struct ph__prometheus_label *labels, size_t num_labels, const char *value)
{
    put(text, text->family);
    put(text, ending);
    for (size_t i = 0; i < num_labels; i++) {
        put(text, i == 0 ? "{" : ",");
        put(text, labels[i].name);
        put(text, "=\"");
        put_escaped(text, labels[i].value, true);
        put(text, "\"");
    }
    put(text, num_labels > 0 ? "} " : " ");
    put(text, value);
    put(text, "\n");
}

void ph__prometheus_count(
    struct ph__prometheus *text, const struct ph__prometheus_label *labels, size_t num_labels, uint64_t count)
{
    char value[24];
    snprintf(value, sizeof value, "%" PRIu64, count);
    put_sample(text, "", labels, num_labels, value);
}

void ph__prometheus_number(
    struct ph__prometheus *text, const struct ph__prometheus_label *labels, size_t num_labels, double number)
{
    char value[PH_NUMBER_TEXT_BYTES];
    (void)ph__real_write(number, PH_FLOAT_DIGITS, value);
    put_sample(text, "", labels, num_labels, value);
}

void ph__prometheus_histogram(struct ph__prometheus *text, const struct ph__prometheus_label *labels,
    size_t num_labels, const struct ph__prometheus_histogram *histogram)
{
    struct ph__prometheus_label all[PH_PROMETHEUS_MAX_LABELS + 1];
    char bound[PH_NUMBER_TEXT_BYTES], value[PH_NUMBER_TEXT_BYTES];
    uint64_t count = 0;
    memcpy(all, labels, num_labels * sizeof *all);
    all[num_labels] = (struct ph__prometheus_label){"le", bound};
    for (size_t i = 0; i <= histogram->num_bounds; i++) {
        count += histogram->counts[i];
        if (i < histogram->num_bounds)
            (void)ph__real_write(histogram->bounds[i], PH_FLOAT_DIGITS, bound);
        else
            snprintf(bound, sizeof bound, "+Inf");
        snprintf(value, sizeof value, "%" PRIu64, count);
        put_sample(text, "_bucket", all, num_labels + 1, value);
    }
    put_sample(text, "_count", labels, num_labels, value);
    (void)ph__real_write(histogram->sum, PH_FLOAT_DIGITS, value);
    put_sample(text, "_sum", labels, num_labels, value);
}

ph_status ph__prometheus_finish(const struct ph__prometheus *text)
{
    return text->status;
}
