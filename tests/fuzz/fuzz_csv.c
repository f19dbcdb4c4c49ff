/* CSV and TSV files: quotes, headers, lists, every kind of field and encoding. */
#include "support/fuzz_rows.h"

static struct fuzz_schema schemas[] = {
    {.yaml = "data:\n"
             "  fields:\n"
             "    - {name: label, kind: label}\n"
             "    - {name: w, kind: weight}\n"
             "    - {name: d, kind: dense, transform: log1p, missing: -1}\n"
             "    - {name: t, kind: id, list: true, max_length: 3}\n"
             "    - {name: g, kind: id, group: true, encoding: hash, rows: 100}\n"
             "    - {name: '*', kind: id}\n"},
    {.yaml = "data:\n"
             "  format: tsv\n"
             "  fields:\n"
             "    - {name: 'label*', kind: label}\n"
             "    - {name: 'd*', kind: dense}\n"
             "    - {name: 'r*', kind: id, encoding: raw, rows: 50}\n"
             "    - {name: 'l*', kind: id, encoding: hash, rows: 7, list: true}\n"
             "    - {name: 'v*', kind: id, min_count: 2}\n"},
    {.yaml = "data:\n"
             "  separator: ';'\n"
             "  list_separator: ' '\n"
             "  has_header: false\n"
             "  fields:\n"
             "    - {name: y, kind: label}\n"
             "    - {name: a, kind: id, encoding: raw, rows: 10, list: true}\n"
             "    - {name: b, kind: dense, transform: log1p}\n"
             "    - {name: c, kind: ignore}\n"
             "    - {name: d, kind: id, list: true}\n"},
    {.yaml = "data:\n"
             "  max_bad_rows: 3\n"
             "  fields:\n"
             "    - {name: y, kind: label}\n"
             "    - {name: s, kind: dense, transform: standardise}\n"
             "    - {name: u, from: s, kind: dense, transform: log1p_standardise, missing_indicator: true}\n"
             "    - {name: l, kind: id, list: true, weighted: true, encoding: hash, rows: 11}\n"
             "    - {name: v, kind: id, list: true, weighted: true, max_length: 2}\n"
             "    - {name: b, from: n, kind: id, encoding: bucket, buckets: 3}\n"
             "    - {name: c, from: n, kind: id, encoding: bucket, boundaries: '-1,0,2.5'}\n"
             "    - {name: e, from: n, kind: id, encoding: log_bucket}\n"
             "    - {name: h, from: t, kind: id, part: hour, encoding: raw, rows: 24}\n"
             "    - {name: w, from: t, kind: id, part: weekday}\n"
             "    - {name: k, from: t, kind: id, part: weekend, encoding: raw, rows: 2}\n"
             "    - {name: g, kind: group}\n"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_rows(schemas, sizeof schemas / sizeof schemas[0], data, size);
    return 0;
}
