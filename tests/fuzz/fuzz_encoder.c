/* Encoder files: what is loaded is saved and loaded as the same bytes, and reads rows into batches that are
 * in range. The input is the file, then, behind a NUL, the rows; the file's seal is made to fit. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_rows.h"

/* Saved, malloc'ed. */
static char *text_of(const struct ph_encoder *encoder)
{
    char path[64];
    size_t size;
    fuzz_folder_path("encoder.json", path);
    fuzz_require(ph_encoder_save(encoder, path) == PH_OK);
    return fuzz_read(path, &size);
}

static void check_again(const struct ph_encoder *encoder)
{
    struct ph_encoder *again = NULL;
    char *text = text_of(encoder);
    fuzz_require(ph_encoder_load(fuzz_file(1, text, strlen(text)), &again) == PH_OK);
    char *same = text_of(again);
    fuzz_require(strcmp(text, same) == 0);
    ph_encoder_destroy(again);
    free(same);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph_encoder *encoder = NULL;
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t text_size = end != NULL ? (size_t)(end - data) : size;
    if (ph_encoder_load(fuzz_sealed_json(0, data, text_size), &encoder) != PH_OK)
        return 0;
    check_again(encoder);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 3, .needs_no_labels = size % 2 == 1};
    if (end != NULL)
        fuzz_read_batches(encoder, fuzz_file(1, end + 1, size - text_size - 1), &options);
    ph_encoder_destroy(encoder);
    return 0;
}
