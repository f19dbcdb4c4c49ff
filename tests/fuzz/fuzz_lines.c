/* Text by lines, where a line is cut by buffers' ends in any way: the lines are those of the text behind its
 * byte order mark. */
#include <string.h>

#include "base/file/stream.h"
#include "support/fuzz_support.h"

/* The line that begins at `at`, without LF or CR-LF; *next_out is what follows. */
static size_t line_length(const uint8_t *at, const uint8_t *end, const uint8_t **next_out)
{
    const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
    const uint8_t *stop = newline != NULL ? newline : end;
    *next_out = newline != NULL ? newline + 1 : end;
    if (newline != NULL && stop > at && stop[-1] == '\r')
        stop--;
    return (size_t)(stop - at);
}

static size_t mark_bytes(const uint8_t *data, size_t size)
{
    return size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int is_compressed(const uint8_t *data, size_t size)
{
    return (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) ||
           (size >= 4 && (data[0] == 0x28 || (data[0] & 0xf0) == 0x50));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__reader *reader = NULL;
    if (is_compressed(data, size))
        return 0;
    fuzz_require(ph__reader_open(fuzz_file(0, data, size), &reader) == PH_OK);
    const uint8_t *at = data, *end = data + size;
    for (;;) {
        char *line = NULL;
        size_t length = 0;
        const ph_status status = ph__reader_line(reader, &line, &length);
        const uint8_t *start = at == data ? at + mark_bytes(data, size) : at, *next = at;
        const size_t expected = line_length(start, end, &next);
        if (status != PH_OK) {
            fuzz_require(memchr(start, '\0', expected) != NULL);
            break;
        }
        fuzz_require((line == NULL) == (at == end));
        if (line == NULL)
            break;
        fuzz_require(length == expected && memcmp(line, start, length) == 0 && line[length] == '\0');
        fuzz_require(ph__reader_byte(reader) == (uint64_t)(next - data));
        at = next;
    }
    ph__reader_close(reader);
    return 0;
}
