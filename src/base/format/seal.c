/* Seals over base/digest. */
#include "base/format/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sum/digest.h"

#define BLOCK_BYTES ((size_t)1 << 16)
#define JSON_START "{\n  \"" PH_SEAL_KEY "\": \"" /* text before the digits in a JSON document */
#define JSON_INDENT 2

static ph_status fail_seal(const char *path, ph_status error_status)
{
    return ph_fail(error_status, "%s: the file is damaged: its bytes do not match its seal", path);
}

/* ---- files in blocks ---- */

/* Reads the bytes at `offset`, at most a block; fewer at the end of the file. */
static ph_status read_block(int descriptor, uint64_t offset, const char *path, ph_status error_status,
    char block[BLOCK_BYTES], size_t *size_out)
{
    size_t size = 0;
    while (size < BLOCK_BYTES) {
        const ssize_t count = pread(descriptor, block + size, BLOCK_BYTES - size, (off_t)(offset + size));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(error_status, "%s: cannot read: %s", path, strerror(errno));
        if (count == 0)
            break;
        size += (size_t)count;
    }
    *size_out = size;
    return PH_OK;
}

/* Sums the file; found_out: the digits in its first block. */
static ph_status sum_file(int descriptor, uint64_t offset, const char *path, ph_status error_status,
    const struct ph__meanwhile *meanwhile, struct ph__digest *digest, char found_out[PH_SEAL_DIGITS])
{
    char block[BLOCK_BYTES];
    size_t size = 0;
    PH_TRY(read_block(descriptor, 0, path, error_status, block, &size));
    if (size < offset + PH_SEAL_DIGITS)
        return ph_fail(error_status, "%s: the file is too short to hold a seal", path);
    memcpy(found_out, block + offset, PH_SEAL_DIGITS);
    memcpy(block + offset, PH_SEAL_BLANK, PH_SEAL_DIGITS);
    for (uint64_t end = size; size > 0; end += size) {
        PH_TRY(ph__digest_update(digest, block, size));
        PH_TRY(ph__meanwhile(meanwhile));
        PH_TRY(read_block(descriptor, end, path, error_status, block, &size));
    }
    return PH_OK;
}

ph_status ph__seal_check_file(int descriptor, uint64_t offset, const char *path, ph_status error_status,
    const struct ph__meanwhile *meanwhile)
{
    assert(offset <= BLOCK_BYTES - PH_SEAL_DIGITS);
    struct ph__digest *digest;
    char found[PH_SEAL_DIGITS], made[PH_SEAL_DIGITS + 1];
    PH_TRY(ph__digest_create(&digest));
    ph_status status = sum_file(descriptor, offset, path, error_status, meanwhile, digest, found);
    if (status == PH_OK)
        status = ph__digest_finish(digest, made);
    ph__digest_destroy(digest);
    if (status == PH_OK && memcmp(found, made, PH_SEAL_DIGITS) != 0)
        return fail_seal(path, error_status);
    return status;
}

/* ---- JSON documents ---- */

static char *json_digits(char *text)
{
    return text + strlen(JSON_START);
}

/* Sums a text whose digits are blank. */
static ph_status sum_text(const char *text, size_t size, char made_out[PH_SEAL_DIGITS + 1])
{
    struct ph__digest *digest;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = ph__digest_update(digest, text, size);
    if (status == PH_OK)
        status = ph__digest_finish(digest, made_out);
    ph__digest_destroy(digest);
    return status;
}

struct ph__json *ph__sealed_json_object(void)
{
    struct ph__json *json = ph__json_object();
    ph__json_set_text(json, PH_SEAL_KEY, PH_SEAL_BLANK);
    return json;
}

/* Gives the document's text with its seal and a line feed at the end, malloc'ed. */
static ph_status seal_text(const struct ph__json *json, char **text_out, size_t *size_out)
{
    char *text = NULL;
    PH_TRY(ph__json_text(json, JSON_INDENT, &text));
    assert(strncmp(text, JSON_START PH_SEAL_BLANK, strlen(JSON_START PH_SEAL_BLANK)) == 0);
    const size_t size = strlen(text) + 1;
    text[size - 1] = '\n'; /* replaces the NUL */
    char digits[PH_SEAL_DIGITS + 1];
    const ph_status status = sum_text(text, size, digits);
    if (status != PH_OK) {
        free(text);
        return status;
    }
    memcpy(json_digits(text), digits, PH_SEAL_DIGITS);
    *text_out = text;
    *size_out = size;
    return PH_OK;
}

ph_status ph__sealed_json_digest(const struct ph__json *json, char digits_out[PH_SEAL_DIGITS + 1])
{
    char *text = NULL;
    size_t size = 0;
    PH_TRY(seal_text(json, &text, &size));
    memcpy(digits_out, json_digits(text), PH_SEAL_DIGITS);
    digits_out[PH_SEAL_DIGITS] = '\0';
    free(text);
    return PH_OK;
}

static ph_status write_bytes(const char *path, const char *bytes, size_t size)
{
    struct ph__atomic_file file;
    PH_TRY(ph__atomic_file_open(path, &file));
    const ph_status status = ph__atomic_file_write(&file, bytes, size);
    if (status == PH_OK)
        return ph__atomic_file_commit(&file);
    ph__atomic_file_abandon(&file);
    return status;
}

ph_status ph__sealed_json_write(const struct ph__json *json, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    ph_status status = seal_text(json, &text, &size);
    if (status != PH_OK)
        return ph_fail(status, "%s: %s", path, ph_error_text());
    status = write_bytes(path, text, size);
    free(text);
    return status;
}

/* Compares the seal of the text with the sum. Blanks the digits for that and then restores them. */
static ph_status check_text(char *text, size_t size, const char *path, ph_status error_status)
{
    const size_t start = strlen(JSON_START);
    if (size < start || memcmp(text, JSON_START, start) != 0)
        return ph_fail(error_status,
            "%s: the file does not begin with a seal (\"" PH_SEAL_KEY
            "\"): another program or an older version wrote it, or it is damaged",
            path);
    if (size < start + PH_SEAL_DIGITS)
        return fail_seal(path, error_status);
    char found[PH_SEAL_DIGITS], made[PH_SEAL_DIGITS + 1];
    memcpy(found, json_digits(text), PH_SEAL_DIGITS);
    memcpy(json_digits(text), PH_SEAL_BLANK, PH_SEAL_DIGITS);
    PH_TRY(sum_text(text, size, made));
    memcpy(json_digits(text), found, PH_SEAL_DIGITS);
    return memcmp(found, made, PH_SEAL_DIGITS) == 0 ? PH_OK : fail_seal(path, error_status);
}

ph_status ph__sealed_json_read(
    const char *path, ph_status error_status, uint64_t max_bytes, struct ph__json **json_out)
{
    struct ph__arena arena = {0};
    char *text = NULL;
    size_t size = 0;
    ph_status status = ph__file_read(&arena, path, max_bytes, &text, &size);
    if (status == PH_ERROR_DATA)
        status = ph_fail(error_status, "%s", ph_error_text());
    if (status == PH_OK)
        status = check_text(text, size, path, error_status);
    if (status == PH_OK)
        status = ph__json_parse(text, size, path, error_status, json_out);
    ph__arena_fini(&arena);
    return status;
}
