/* Event files that a resumed training cuts. The first 4 bytes of an input tell how long metrics.jsonl was,
 * the rest is a file, whose records get fitting sums as far as their lengths fit. What is left is a beginning
 * of what was there, and cutting it once more changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/sum/checksum.h"
#include "support/fuzz_support.h"
#include "train/measure/event_file.h"

static void put_sum(const uint8_t *bytes, size_t size, uint8_t *sum_out)
{
    uint32_t crc = ph__crc32c(bytes, size);
    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    memcpy(sum_out, &crc, sizeof crc);
}

static void fit_sums(uint8_t *bytes, size_t size)
{
    while (size >= 16) {
        uint64_t length;
        memcpy(&length, bytes, sizeof length);
        put_sum(bytes, 8, bytes + 8);
        if (length > size - 16)
            return;
        put_sum(bytes + 12, (size_t)length, bytes + 12 + length);
        bytes += 16 + length;
        size -= 16 + (size_t)length;
    }
}

/* What is left of the file, malloc'ed; an empty one where it is gone. */
static char *cut(const char *folder, const char *path, uint64_t metrics_bytes, size_t *size_out)
{
    *size_out = 0;
    fuzz_require(ph__event_files_cut(folder, metrics_bytes) == PH_OK);
    return ph__file_exists(path) ? fuzz_read(path, size_out) : calloc(1, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[64], path[64];
    uint32_t metrics_bytes;
    size_t left, left_again;
    if (size < sizeof metrics_bytes)
        return 0;
    memcpy(&metrics_bytes, data, sizeof metrics_bytes);
    data += sizeof metrics_bytes;
    size -= sizeof metrics_bytes;
    uint8_t *file = malloc(size + 1);
    fuzz_require(file != NULL);
    memcpy(file, data, size);
    fit_sums(file, size);
    fuzz_folder_path(".", folder);
    fuzz_folder_path("events.out.tfevents.1.phloem.0", path);
    fuzz_put(path, file, size);
    char *kept = cut(folder, path, metrics_bytes, &left);
    fuzz_require(left <= size && memcmp(kept, file, left) == 0);
    char *again = cut(folder, path, metrics_bytes, &left_again);
    fuzz_require(left_again == left);
    free(again);
    free(kept);
    free(file);
    return 0;
}
