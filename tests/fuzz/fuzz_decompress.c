/* Streams of gzip, zstd and plain bytes. A few bytes may stand for very many, so that no more than
 * MAX_OUTPUT_BYTES are taken out; the sizes of the pieces, from the first byte on, must not change what comes
 * out. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file/compress.h"
#include "support/fuzz_support.h"

#define MAX_OUTPUT_BYTES ((size_t)1 << 13)

/* Reads by pieces of piece_bytes; the status of the call that ended it. */
static ph_status read_all(const char *path, size_t piece_bytes, char *output, size_t *size_out)
{
    struct ph__decompressor *decompressor = NULL;
    size_t size = 0, count = 1;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ph_status status = ph__decompressor_create(descriptor, NULL, &decompressor);
    while (status == PH_OK && count > 0 && size + piece_bytes <= MAX_OUTPUT_BYTES) {
        status = ph__decompressor_read(decompressor, output + size, piece_bytes, &count);
        size += status == PH_OK ? count : 0;
        fuzz_require(count <= piece_bytes);
    }
    ph__decompressor_destroy(decompressor);
    close(descriptor);
    *size_out = size;
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char outputs[2][MAX_OUTPUT_BYTES];
    size_t sizes[2] = {0, 0};
    if (size == 0)
        return 0;
    const char *path = fuzz_file(0, data + 1, size - 1);
    const ph_status first = read_all(path, MAX_OUTPUT_BYTES / 4, outputs[0], &sizes[0]);
    const ph_status second = read_all(path, 1 + data[0], outputs[1], &sizes[1]);
    const size_t common = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
    fuzz_require(memcmp(outputs[0], outputs[1], common) == 0);
    if (first == PH_OK && second == PH_OK && sizes[0] < MAX_OUTPUT_BYTES / 2)
        fuzz_require(sizes[0] == sizes[1]);
    return 0;
}
