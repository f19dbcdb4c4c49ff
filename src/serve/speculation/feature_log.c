#include "serve/speculation/feature_log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/text/number.h"

#define MOST_HEAD 8192

static void add_head(struct ph__feature_log *log, const struct ph__speculation *speculation)
{
    ph__buffer_append_text(&log->lines, "request\tplace");
    for (size_t k = 0; k < log->width; k++) {
        ph__buffer_append(&log->lines, "\t", 1);
        ph__buffer_append_text(&log->lines, ph__name_index_text(ph__speculation_columns(speculation), k));
    }
    ph__buffer_append(&log->lines, "\n", 1);
}

ph_status ph__feature_log_open(
    struct ph__feature_log *log, const char *path, const struct ph__speculation *speculation)
{
    char former[MOST_HEAD];
    *log = (struct ph__feature_log){
        .descriptor = -1, .path = path, .width = ph__speculation_columns(speculation)->count};
    if (path[0] == '\0')
        return PH_OK;
    log->descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log->descriptor < 0)
        return ph__file_cannot_write(path);
    add_head(log, speculation);
    const ssize_t size = pread(log->descriptor, former, sizeof former, 0);
    if (size == 0)
        return ph__feature_log_flush(log);
    if (size < 0 || (size_t)size < log->lines.size || memcmp(former, log->lines.bytes, log->lines.size) != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "speculation.feature_log: %s is no log of %zu columns of pairs; name another file", path,
            log->width);
    ph__buffer_clear(&log->lines);
    return PH_OK;
}

void ph__feature_log_close(struct ph__feature_log *log)
{
    if (log->descriptor >= 0)
        close(log->descriptor);
    ph__buffer_fini(&log->lines);
    log->descriptor = -1;
}

static void add_number(struct ph__feature_log *log, double number)
{
    char digits[PH_NUMBER_TEXT_BYTES];
    ph__buffer_append(&log->lines, "\t", 1);
    ph__buffer_append(&log->lines, digits, ph__real_write(number, PH_FLOAT_DIGITS, digits));
}

void ph__feature_log_add(
    struct ph__feature_log *log, struct ph__bytes request, size_t count, const float *features)
{
    for (size_t i = 0; i < count && log->descriptor >= 0; i++) {
        ph__buffer_append(&log->lines, request.bytes, request.size);
        add_number(log, (double)i);
        for (size_t k = 0; k < log->width; k++)
            add_number(log, (double)features[i * log->width + k]);
        ph__buffer_append(&log->lines, "\n", 1);
    }
}

ph_status ph__feature_log_flush(struct ph__feature_log *log)
{
    ph_status status = PH_OK;
    if (log->descriptor < 0 || log->lines.size == 0)
        return PH_OK;
    if (log->lines.has_failed)
        status = ph__out_of_memory("lines of %s", log->path);
    else if (ph__write_all(log->descriptor, log->lines.bytes, log->lines.size) != PH_OK)
        status = ph__file_cannot_write(log->path);
    ph__buffer_fini(&log->lines);
    return status;
}
