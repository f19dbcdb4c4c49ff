/* Encoder files: what is loaded is saved and loaded as the same bytes, and reads rows into batches that are in range.
 * The input is the file, then, behind a NUL, the rows; the file's seal is made to fit. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_rows.h"

#define JSON_START "{\n  \"sha256\": \""

/* The text with a fitting seal, in slot 0. */
static const char *sealed_file(const uint8_t *text, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, text, size);
    if (size > strlen(JSON_START) && memcmp(bytes, JSON_START, strlen(JSON_START)) == 0)
        fuzz_reseal(bytes, size, strlen(JSON_START));
    const char *path = fuzz_file(0, bytes, size);
    free(bytes);
    return path;
}

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
    if (ph_encoder_load(sealed_file(data, text_size), &encoder) != PH_OK)
        return 0;
    check_again(encoder);
    const struct ph_batches_options options = {.batch_size = 3, .needs_no_labels = size % 2 == 1};
    if (end != NULL)
        fuzz_read_batches(encoder, fuzz_file(1, end + 1, size - text_size - 1), &options);
    ph_encoder_destroy(encoder);
    return 0;
}
