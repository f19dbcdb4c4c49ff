/* A folder of prepared data: its manifest or one of its parts edited, with checksums that fit. What can be
 * opened gives batches whose ids are in range; its floats, which the checksums cover, are believed. An input
 * is which file (a byte), how it is read (a byte), and a list of edits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum/checksum.h"
#include "data/prepared/part_block.h"
#include "data/prepared/prepared_manifest.h"
#include "data/source/input_file.h"
#include "support/fuzz_parts.h"
#include "support/fuzz_rows.h"

#define HEAD_BYTES 2
#define NUM_FILES 3 /* the manifest, two parts */

#define PART_BYTES 4096 /* the least */

/* Two parts of three rows each, since empty lines fill the first. */
static const char first_rows[] = "y,w,d,t,h,u\n"
                                 "1,1,2.5,a|b,x,1\n"
                                 "0,0.5,,b,y,2\n"
                                 "1,1,7,,x,2\n";
static const char second_rows[] = "0,2,0,a,z,3\n"
                                  "1,1,1e3,b|b,,3\n"
                                  "0,1,12,c|a,x,4\n";

static struct fuzz_schema schema = {
    .yaml =
        "data: {max_bad_rows: 0, fields: [{name: y, kind: label}, {name: w, kind: weight}, {name: d, kind: "
        "dense, transform: log1p}, {name: t, kind: id, list: true}, {name: h, kind: id, encoding: hash, "
        "rows: 5}, {name: u, kind: group}]}\n"};

/* The folder as it was made, to which each input does something. */
struct prepared {
    struct ph_encoder *encoder;
    struct ph__row_layout layout;
    unsigned char digest[PH_ENCODER_DIGEST_BYTES];
    char split[64]; /* its folder */
    struct ph__manifest manifest;
    struct file {
        char path[96];
        char *bytes;
        size_t size;
    } files[NUM_FILES];
};

static void read_file(struct prepared *prepared, size_t number, const char *name)
{
    struct file *file = &prepared->files[number];
    snprintf(file->path, sizeof file->path, "%s/%s", prepared->split, name);
    file->bytes = fuzz_read(file->path, &file->size);
}

static void write_rows(const char *path)
{
    char text[PART_BYTES + sizeof second_rows];
    memset(text, '\n', PART_BYTES);
    memcpy(text, first_rows, strlen(first_rows));
    memcpy(text + PART_BYTES, second_rows, sizeof second_rows);
    fuzz_put(path, text, strlen(text));
}

static void prepare(struct prepared *prepared)
{
    char text[64], folder[64], path[64], digest[65];
    struct ph_prepare_summary summary;
    const struct ph_prepare_options options = {
        .size = sizeof options, .num_threads = 1, .settings.part_bytes = PART_BYTES};
    fuzz_folder_path("rows.csv", text);
    fuzz_folder_path("set", folder);
    fuzz_folder_path("set/encoder.json", path);
    fuzz_folder_path("set/train", prepared->split);
    write_rows(text);
    fuzz_require(ph_prepare(fuzz_settings(&schema, text), folder, &options, &summary) == PH_OK);
    fuzz_require(ph_encoder_load(path, &prepared->encoder) == PH_OK);
    fuzz_require(ph__row_layout_init(&prepared->layout, prepared->encoder) == PH_OK);
    fuzz_require(ph__encoder_digest(prepared->encoder, digest) == PH_OK);
    ph__part_digest(digest, prepared->digest);
    fuzz_folder_path("set/train/" PH_MANIFEST_NAME, path);
    fuzz_require(ph__manifest_read(path, &prepared->manifest) == PH_OK);
    fuzz_require(prepared->manifest.num_parts == NUM_FILES - 1);
    read_file(prepared, 0, PH_MANIFEST_NAME);
    for (size_t i = 1; i < NUM_FILES; i++)
        read_file(prepared, i, prepared->manifest.parts[i - 1].name);
}

/* Makes the manifest tell what the edited part says of itself. False: it stands for more words than shall be
 * decoded. */
static bool agree(struct prepared *prepared, size_t number, const uint8_t *bytes, size_t size)
{
    struct ph__part_footer footer;
    struct ph__manifest manifest = prepared->manifest;
    struct ph__manifest_part parts[NUM_FILES - 1];
    memcpy(parts, manifest.parts, sizeof parts);
    manifest.parts = parts;
    if (size < sizeof footer)
        return true;
    memcpy(&footer, bytes + size - sizeof footer, sizeof footer);
    struct ph__manifest_part *part = &parts[number - 1];
    if (footer.num_words > FUZZ_MAX_WORDS)
        return false;
    manifest.num_rows += footer.num_rows - part->num_rows;
    manifest.num_words += footer.num_words - part->num_words;
    manifest.num_bytes += size - part->num_bytes;
    part->num_rows = footer.num_rows;
    part->num_words = footer.num_words;
    part->num_bytes = size;
    ph__checksum_text(footer.checksum, part->checksum);
    fuzz_require(ph__manifest_write(&manifest, prepared->files[0].path) == PH_OK);
    return true;
}

static bool put_edited(struct prepared *prepared, size_t number, const uint8_t *data, size_t size)
{
    const struct file *file = &prepared->files[number];
    size_t edited_size, mark;
    bool is_fine = true;
    uint8_t *bytes = fuzz_edit(file->bytes, file->size, data, size, 0, &mark, &edited_size);
    if (number == 0) {
        fuzz_reseal_json(bytes, edited_size);
    } else {
        fuzz_reseal_part(bytes, edited_size, &prepared->layout, prepared->digest);
        is_fine = agree(prepared, number, bytes, edited_size);
    }
    fuzz_put(file->path, bytes, edited_size);
    free(bytes);
    return is_fine;
}

static void read_batches(const struct prepared *prepared, const struct ph_batches_options *options)
{
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    if (ph_batches_open(prepared->encoder, prepared->split, options, &batches) == PH_OK)
        while (ph_batches_next(batches, &batch) == PH_OK && batch != NULL)
            fuzz_check_ids(prepared->encoder, batch);
    ph_batches_close(batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct prepared prepared;
    if (prepared.encoder == NULL)
        prepare(&prepared);
    if (size < HEAD_BYTES)
        return 0;
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (data[1] & 1) != 0 ? 2 : 100,
        .reading.is_shuffled = (data[1] & 2) != 0,
        .reading.shuffle_bytes = 256,
        .needs_no_labels = (data[1] & 4) != 0,
        .reading.negative_rate = (data[1] & 8) != 0 ? 0.5 : 1,
        .reading.shuffle_lanes = (data[1] & 16) != 0 ? 2 : 1,
        .rank = (data[1] & 32) != 0 ? data[1] >> 6 : 0,
        .world_size = (data[1] & 32) != 0 ? 4 : 0};
    const size_t number = data[0] % NUM_FILES;
    if (put_edited(&prepared, number, data + HEAD_BYTES, size - HEAD_BYTES))
        read_batches(&prepared, &options);
    fuzz_put(prepared.files[0].path, prepared.files[0].bytes, prepared.files[0].size);
    fuzz_put(prepared.files[number].path, prepared.files[number].bytes, prepared.files[number].size);
    return 0;
}
