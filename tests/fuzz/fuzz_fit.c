/* What a first pass has learnt of a part, edited, with checksums that fit, merged with another part's. What
 * can be merged, and loaded once it is saved, reads rows. An input is a list of edits. */
#include <stdlib.h>
#include <string.h>

#include "data/learn/fit_file.h"
#include "data/learn/learn.h"
#include "support/fuzz_rows.h"

#define MAX_BYTES ((uint64_t)1 << 20) /* of vocabularies */

static const char rows_text[] = "y,t,d\n"
                                "1,a|b,2.5\n"
                                "0,bb,\n"
                                "1,,7\n"
                                "0,a|c,0\n";

static struct fuzz_schema schema = {
    .yaml = "data: {min_count: 2, fields: [{name: y, kind: label}, {name: t, kind: id, list: true}, "
            "{name: d, kind: dense, transform: log1p_standardise}, {name: b, from: d, kind: id, encoding: "
            "bucket, buckets: 3}]}\n"};

struct learnt {
    char text[64]; /* the path of the rows */
    char prefixes[2][64];
    char file[64]; /* of the first part */
    char *bytes;   /* as it was written */
    size_t size;
};

static void learn(struct learnt *learnt)
{
    struct ph_encoder *encoder = NULL;
    fuzz_folder_path("rows.csv", learnt->text);
    fuzz_folder_path("a", learnt->prefixes[0]);
    fuzz_folder_path("b", learnt->prefixes[1]);
    fuzz_folder_path("a-000.fit", learnt->file);
    fuzz_put(learnt->text, rows_text, strlen(rows_text));
    fuzz_require(ph__encoder_outline(fuzz_settings(&schema, learnt->text), &encoder) == PH_OK);
    for (size_t i = 0; i < 2; i++) {
        struct ph__fit_summary summary;
        const struct ph__learn_part part = {
            .path = learnt->text, .prefix = learnt->prefixes[i], .max_bytes = MAX_BYTES};
        fuzz_require(ph__learn_part(encoder, &part, &summary) == PH_OK);
    }
    ph_encoder_destroy(encoder);
    learnt->bytes = fuzz_read(learnt->file, &learnt->size);
}

static void reseal_entry(const uint8_t *bytes, uint64_t end, struct ph__fit_entry *entry)
{
    if (ph__fit_entry_lies_within(entry, end))
        entry->checksum = ph__fit_entry_checksum(entry, (const uint64_t *)(bytes + entry->hashes_at),
            (const uint32_t *)(bytes + entry->counts_at), (const uint32_t *)(bytes + entry->indices_at),
            (const uint64_t *)(bytes + entry->ends_at), (const char *)(bytes + entry->text_at),
            bytes + entry->sample_at);
}

static void reseal(uint8_t *bytes, size_t size)
{
    struct ph__fit_footer footer;
    if (size < sizeof footer)
        return;
    const size_t end = size - sizeof footer;
    memcpy(&footer, bytes + end, sizeof footer);
    if (ph__fit_lies_within(footer.directory_at, footer.num_columns, sizeof(struct ph__fit_entry), end)) {
        for (size_t i = 0; i < footer.num_columns; i++) {
            struct ph__fit_entry entry;
            uint8_t *at = bytes + footer.directory_at + i * sizeof entry;
            memcpy(&entry, at, sizeof entry);
            reseal_entry(bytes, footer.directory_at, &entry);
            memcpy(at, &entry, sizeof entry);
        }
        footer.directory_checksum =
            ph__checksum(bytes + footer.directory_at, footer.num_columns * sizeof(struct ph__fit_entry));
    }
    footer.checksum = ph__checksum(&footer, offsetof(struct ph__fit_footer, checksum));
    memcpy(bytes + end, &footer, sizeof footer);
}

static void use(const struct ph_encoder *encoder, const char *text)
{
    struct ph_encoder *again = NULL;
    char path[64];
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 3};
    fuzz_folder_path("encoder.json", path);
    if (ph_encoder_save(encoder, path) == PH_OK && ph_encoder_load(path, &again) == PH_OK)
        fuzz_read_batches(again, text, &options);
    ph_encoder_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct learnt learnt;
    struct ph_encoder *encoder = NULL;
    size_t edited_size, mark;
    if (learnt.bytes == NULL)
        learn(&learnt);
    const char *const prefixes[] = {learnt.prefixes[0], learnt.prefixes[1]};
    uint8_t *bytes = fuzz_edit(learnt.bytes, learnt.size, data, size, 0, &mark, &edited_size);
    reseal(bytes, edited_size);
    fuzz_put(learnt.file, bytes, edited_size);
    free(bytes);
    fuzz_require(ph__encoder_outline(fuzz_settings(&schema, learnt.text), &encoder) == PH_OK);
    const ph_status status = ph__learn_finish(learnt.text, prefixes, 2, MAX_BYTES, encoder);
    fuzz_require(status == PH_OK || size > 0); /* the files as they are can be merged */
    if (status == PH_OK)
        use(encoder, learnt.text);
    ph_encoder_destroy(encoder);
    return 0;
}
