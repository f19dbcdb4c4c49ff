#include "net/server/prometheus.h"

#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static void write_all(struct ph__prometheus *text)
{
    const struct ph__prometheus_label labels[] = {{"job", "click model"}, {"link", "tcp"}};
    const struct ph__prometheus_label odd = {"job", "a \"b\" \\ c\nd, {e}\t\xff z\xc3\xbcrich"};
    const struct ph__prometheus_label empty = {"job", ""};
    ph__prometheus_begin(text, PH_PROMETHEUS_COUNTER, "phloem_pushes_total", "Chunks \"received\".");
    ph__prometheus_count(text, labels, 2, UINT64_MAX);
    ph__prometheus_count(text, &odd, 1, 0);
    ph__prometheus_begin(text, PH_PROMETHEUS_GAUGE, "phloem_wait_seconds", "Two\nlines, one \\.");
    ph__prometheus_count(text, NULL, 0, 1);
    ph__prometheus_count(text, &empty, 1, 2);
}

/* Written by the format's description; prometheus_client's parser (0.26) reads from it what was written
 * above. */
static void families_and_samples_are_written(void **state)
{
    (void)state;
    struct ph__prometheus text;
    struct ph__writer *writer = NULL;
    size_t size = 0;
    assert_ok(ph__writer_open_memory("metrics", 10000, &writer));
    ph__prometheus_init(&text, writer);
    write_all(&text);
    assert_ok(ph__prometheus_finish(&text));
    assert_ok(ph__writer_write(writer, "", 1));
    assert_ok(ph__writer_finish(writer));
    char *written = ph__writer_take(writer, &size);
    ph__writer_close(writer);
    assert_string_equal(written,
        "# HELP phloem_pushes_total Chunks \"received\".\n"
        "# TYPE phloem_pushes_total counter\n"
        "phloem_pushes_total{job=\"click model\",link=\"tcp\"} 18446744073709551615\n"
        "phloem_pushes_total{job=\"a \\\"b\\\" \\\\ c\\nd, {e}\t\xef\xbf\xbd z\xc3\xbcrich\"} 0\n"
        "# HELP phloem_wait_seconds Two\\nlines, one \\\\.\n"
        "# TYPE phloem_wait_seconds gauge\n"
        "phloem_wait_seconds 1\n"
        "phloem_wait_seconds{job=\"\"} 2\n");
    free(written);
}

static void what_cannot_be_written_is_told_at_the_end(void **state)
{
    (void)state;
    struct ph__prometheus text;
    struct ph__writer *writer = NULL;
    static char long_text[1 << 20];
    memset(long_text, 'x', sizeof long_text - 1);
    assert_ok(ph__writer_open_memory("metrics", 100, &writer));
    ph__prometheus_init(&text, writer);
    ph__prometheus_begin(&text, PH_PROMETHEUS_GAUGE, "phloem_x", long_text);
    write_all(&text);
    assert_fails(ph__prometheus_finish(&text), PH_ERROR_MEMORY, "metrics: more than 100 bytes");
    ph__writer_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_and_samples_are_written),
        cmocka_unit_test(what_cannot_be_written_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
