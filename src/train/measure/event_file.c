#include "train/measure/event_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"

#define NAME_BEGIN "events.out.tfevents."
#define NAME_OURS ".phloem."
#define HEADER_BYTES 12 /* length, and its checksum */
#define FOOTER_BYTES 4

enum event_field {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    EVENT_METRICS_BYTES = 1000, /* our own field */
};
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE_VALUE = 2, SESSION_STATUS = 1, SESSION_START = 1 };

static ph_status cannot_write(const char *path)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", path, strerror(errno));
}

/* ---- records ---- */

/* Rotates and shifts a checksum, as TFRecords do: sums of bytes that contain plain sums would be weak. */
static uint32_t masked_checksum(const void *bytes, size_t size)
{
    uint32_t crc = ph__crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little_endian(uint64_t number, size_t num_bytes, unsigned char *bytes_out)
{
    for (size_t i = 0; i < num_bytes; i++)
        bytes_out[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t get_little_endian(const unsigned char *bytes, size_t num_bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < num_bytes; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

/* Writes the event as a record and empties it. */
static ph_status write_event(struct ph__event_file *file)
{
    unsigned char header[HEADER_BYTES], footer[FOOTER_BYTES];
    struct ph__buffer *event = &file->event;
    if (event->has_failed)
        return ph__out_of_memory("%s: an event", file->path);
    put_little_endian(event->size, 8, header);
    put_little_endian(masked_checksum(header, 8), 4, header + 8);
    put_little_endian(masked_checksum(event->bytes, event->size), 4, footer);
    bool is_written = fwrite(header, 1, sizeof header, file->file) == sizeof header &&
                      fwrite(event->bytes, 1, event->size, file->file) == event->size &&
                      fwrite(footer, 1, sizeof footer, file->file) == sizeof footer &&
                      fflush(file->file) == 0;
    event->size = 0;
    return is_written ? PH_OK : cannot_write(file->path);
}

/* ---- events ---- */

static void begin_event(struct ph__event_file *file, struct ph__event_place place)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    ph__protobuf_double(&file->event, EVENT_WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    ph__protobuf_integer(&file->event, EVENT_STEP, place.step);
    ph__protobuf_integer(&file->event, EVENT_METRICS_BYTES, place.metrics_bytes);
}

static ph_status write_beginning(struct ph__event_file *file, struct ph__event_place place)
{
    begin_event(file, (struct ph__event_place){0, place.metrics_bytes});
    ph__protobuf_text(&file->event, EVENT_FILE_VERSION, "brain.Event:2");
    PH_TRY(write_event(file));
    if (place.step == 0)
        return PH_OK;
    begin_event(file, (struct ph__event_place){place.step + 1, place.metrics_bytes});
    ph__protobuf_integer(&file->value, SESSION_STATUS, SESSION_START);
    ph__protobuf_message(&file->event, EVENT_SESSION_LOG, &file->value);
    return write_event(file);
}

ph_status ph__event_file_open(
    const char *folder, struct ph__event_place place, struct ph__event_file *file_out)
{
    struct ph__event_file file = {0};
    /* readers order files by name, so the name begins with the time */
    snprintf(file.path, sizeof file.path, "%s/" NAME_BEGIN "%010lld" NAME_OURS "%012" PRIu64, folder,
        (long long)time(NULL), place.step);
    file.file = fopen(file.path, "ab");
    if (file.file == NULL)
        return cannot_write(file.path);
    ph_status status = write_beginning(&file, place);
    if (status == PH_OK)
        *file_out = file;
    else
        ph__event_file_close(&file);
    return status;
}

ph_status ph__event_file_write(struct ph__event_file *file, struct ph__event_place place,
    const struct ph__scalar *scalars, size_t num_scalars)
{
    if (file->file == NULL)
        return PH_OK;
    for (size_t i = 0; i < num_scalars; i++) {
        if (!isfinite(scalars[i].number))
            continue;
        ph__protobuf_text(&file->value, VALUE_TAG, scalars[i].tag);
        ph__protobuf_float(&file->value, VALUE_SIMPLE_VALUE, (float)scalars[i].number);
        ph__protobuf_message(&file->summary, SUMMARY_VALUE, &file->value);
    }
    if (file->summary.size == 0 && !file->summary.has_failed)
        return PH_OK;
    begin_event(file, place);
    ph__protobuf_message(&file->event, EVENT_SUMMARY, &file->summary);
    return write_event(file);
}

void ph__event_file_close(struct ph__event_file *file)
{
    if (file->file != NULL)
        fclose(file->file);
    ph__buffer_fini(&file->event);
    ph__buffer_fini(&file->summary);
    ph__buffer_fini(&file->value);
    *file = (struct ph__event_file){0};
}

/* ---- cutting ---- */

static uint64_t read_varint(const unsigned char **at, const unsigned char *end)
{
    uint64_t number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return number;
}

/* Reads the metrics_bytes of an event that begin_event wrote: a time of 9 bytes, then two integers with their
 * tags. Returns UINT64_MAX for other events. */
static uint64_t metrics_bytes_of(const unsigned char *event, size_t size)
{
    const unsigned char *at = event + 9, *end = event + size;
    if (size < 9)
        return UINT64_MAX;
    read_varint(&at, end);
    read_varint(&at, end);
    if (read_varint(&at, end) != (uint64_t)EVENT_METRICS_BYTES << 3)
        return UINT64_MAX;
    return read_varint(&at, end);
}

/* Returns the bytes of the whole record that begins there, and gives its event; 0 when there is none or it is
 * damaged. */
static size_t read_record(
    const unsigned char *bytes, size_t size, const unsigned char **event_out, size_t *event_size_out)
{
    if (size < HEADER_BYTES + FOOTER_BYTES || get_little_endian(bytes + 8, 4) != masked_checksum(bytes, 8))
        return 0;
    uint64_t length = get_little_endian(bytes, 8);
    if (length > size - HEADER_BYTES - FOOTER_BYTES)
        return 0;
    const unsigned char *event = bytes + HEADER_BYTES;
    if (get_little_endian(event + length, 4) != masked_checksum(event, (size_t)length))
        return 0;
    *event_out = event;
    *event_size_out = (size_t)length;
    return HEADER_BYTES + (size_t)length + FOOTER_BYTES;
}

static size_t kept_bytes(const struct ph__mapped_file *file, uint64_t metrics_bytes)
{
    size_t kept = 0;
    while (kept < file->size) {
        const unsigned char *event;
        size_t event_size, size = read_record(file->bytes + kept, file->size - kept, &event, &event_size);
        if (size == 0 || metrics_bytes_of(event, event_size) > metrics_bytes)
            break;
        kept += size;
    }
    return kept;
}

static ph_status cut_file(const char *path, uint64_t metrics_bytes)
{
    struct ph__mapped_file file = {0};
    PH_TRY(ph__mapped_file_open(path, PH_ERROR_DISK, &file));
    size_t size = file.size, kept = kept_bytes(&file, metrics_bytes);
    ph__mapped_file_close(&file);
    if (kept == size)
        return PH_OK;
    int outcome = kept == 0 ? unlink(path) : truncate(path, (off_t)kept);
    return outcome == 0 ? PH_OK : cannot_write(path);
}

struct cut {
    const char *folder;
    uint64_t metrics_bytes;
};

static ph_status cut_entry(void *argument, const char *name)
{
    const struct cut *cut = argument;
    char path[1152];
    if (strncmp(name, NAME_BEGIN, strlen(NAME_BEGIN)) != 0 || strstr(name, NAME_OURS) == NULL)
        return PH_OK;
    snprintf(path, sizeof path, "%s/%s", cut->folder, name);
    return cut_file(path, cut->metrics_bytes);
}

ph_status ph__event_files_cut(const char *folder, uint64_t metrics_bytes)
{
    struct cut cut = {folder, metrics_bytes};
    return ph__directory_visit(folder, cut_entry, &cut);
}
