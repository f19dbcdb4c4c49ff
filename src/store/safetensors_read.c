/* Reads safetensors. Checks every value of the file against the format and the file's size before using it,
 * as a size or an offset above all. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "store/safetensors.h"

#define MAX_HEADER_BYTES ((uint64_t)100 << 20)
#define PREFIX_BYTES 8
#define METADATA "__metadata__"

struct entry {
    const char *name;
    enum ph_dtype dtype;
    struct ph_shape shape;
    uint64_t begin, end;  /* from the start of the tensors */
    const char *checksum; /* PH_CHECKSUM_DIGITS; NULL: none */
};

struct ph__safetensors {
    struct ph__arena arena; /* path */
    const char *path;
    int descriptor;
    uint64_t data_begin, data_bytes; /* in the file */
    bool is_sealed;                  /* the header begins with a seal */
    struct ph__json *header;         /* owns the names; only the metadata in a file opened for that */
    const struct ph__json *metadata; /* NULL: none */
    struct entry *entries;           /* by name */
    size_t num_entries;
};

/* ---- bytes ---- */

static ph_status read_at(const struct ph__safetensors *file, uint64_t offset, void *bytes, size_t size)
{
    char *next = bytes;
    while (size > 0) {
        const ssize_t count = pread(file->descriptor, next, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: cannot read: %s", file->path, strerror(errno));
        if (count == 0)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: the file shrank while it was read", file->path);
        next += count;
        size -= (size_t)count;
        offset += (uint64_t)count;
    }
    return PH_OK;
}

static ph_status open_file(struct ph__safetensors *file, uint64_t *size_out)
{
    struct stat status;
    file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: cannot open: %s", file->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not a file", file->path);
    *size_out = (uint64_t)status.st_size;
    return PH_OK;
}

/* ---- the header ---- */

static ph_status read_prefix(struct ph__safetensors *file, uint64_t file_bytes, uint64_t *length_out)
{
    unsigned char prefix[PREFIX_BYTES];
    if (file_bytes < sizeof prefix)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the file is too short for a safetensors file", file->path);
    PH_TRY(read_at(file, 0, prefix, sizeof prefix));
    uint64_t length = 0;
    for (size_t i = 0; i < sizeof prefix; i++)
        length |= (uint64_t)prefix[i] << (8 * i);
    if (length > MAX_HEADER_BYTES || length > file_bytes - sizeof prefix)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: not a safetensors file, or cut short: it names a header of %llu bytes", file->path,
            (unsigned long long)length);
    file->data_begin = sizeof prefix + length;
    file->data_bytes = file_bytes - file->data_begin;
    *length_out = length;
    return PH_OK;
}

static bool begins_with_seal(const char *header, size_t length)
{
    const size_t start = strlen(PH_SAFETENSORS_SEAL_START);
    return length > start + PH_SEAL_DIGITS && memcmp(header, PH_SAFETENSORS_SEAL_START, start) == 0 &&
           header[start + PH_SEAL_DIGITS] == '"';
}

static ph_status parse_text(struct ph__safetensors *file, const char *text, size_t length, bool is_whole)
{
    const size_t metadata = strlen(PH_SAFETENSORS_METADATA_START);
    file->is_sealed = begins_with_seal(text, length);
    if (is_whole)
        return ph__json_parse(text, length, file->path, PH_ERROR_CHECKPOINT, &file->header);
    if (!file->is_sealed)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the file has no seal", file->path);
    return ph__json_parse_start(
        text + metadata, length - metadata, file->path, PH_ERROR_CHECKPOINT, &file->header);
}

static ph_status read_header(struct ph__safetensors *file, uint64_t length, bool is_whole)
{
    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return ph__out_of_memory("the header of %s", file->path);
    ph_status status = read_at(file, PREFIX_BYTES, text, (size_t)length);
    if (status == PH_OK)
        status = parse_text(file, text, (size_t)length, is_whole);
    free(text);
    if (status == PH_OK && !ph__json_is_object(file->header))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the header is not a JSON object", file->path);
    return status;
}

static ph_status check_metadata(const struct ph__safetensors *file)
{
    if (!ph__json_is_object(file->metadata))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: " METADATA " is not an object", file->path);
    struct ph__json_member member = {0};
    while (ph__json_next_member(file->metadata, &member))
        if (ph__json_as_text(member.value, NULL) == NULL)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: " METADATA " '%s' is not text", file->path, member.key);
    return PH_OK;
}

bool ph__safetensors_dtype(const char *name, enum ph_dtype *dtype_out)
{
    for (int dtype = 0; dtype < PH_DTYPE_COUNT; dtype++)
        if (strcmp(name, ph_dtype_name((enum ph_dtype)dtype)) == 0) {
            *dtype_out = (enum ph_dtype)dtype;
            return true;
        }
    return false;
}

static ph_status parse_dtype(
    const struct ph__safetensors *file, const struct ph__json *description, struct entry *entry)
{
    const char *text = ph__json_as_text(ph__json_get(description, "dtype"), NULL);
    if (text == NULL)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' has no dtype", file->path, entry->name);
    if (ph__safetensors_dtype(text, &entry->dtype))
        return PH_OK;
    return ph_fail(
        PH_ERROR_CHECKPOINT, "%s: tensor '%s' has unknown dtype '%.32s'", file->path, entry->name, text);
}

static ph_status parse_shape(
    const struct ph__safetensors *file, const struct ph__json *description, struct entry *entry)
{
    const struct ph__json *shape = ph__json_get(description, "shape");
    if (!ph__json_is_array(shape) || ph__json_size(shape) > PH_MAX_DIMS)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' has no shape of at most %d dimensions",
            file->path, entry->name, PH_MAX_DIMS);
    entry->shape.num_dims = ph__json_size(shape);
    for (size_t i = 0; i < entry->shape.num_dims; i++) {
        const int64_t extent = ph__json_as_integer(ph__json_at(shape, i), -1);
        if (extent < 0)
            return ph_fail(
                PH_ERROR_CHECKPOINT, "%s: tensor '%s' has a bad dimension", file->path, entry->name);
        entry->shape.dims[i] = (size_t)extent;
    }
    return PH_OK;
}

static ph_status parse_offsets(
    const struct ph__safetensors *file, const struct ph__json *description, struct entry *entry)
{
    const struct ph__json *offsets = ph__json_get(description, "data_offsets");
    const int64_t begin = ph__json_as_integer(ph__json_at(offsets, 0), -1);
    const int64_t end = ph__json_as_integer(ph__json_at(offsets, 1), -1);
    if (!ph__json_is_array(offsets) || ph__json_size(offsets) != 2 || begin < 0 || end < begin)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' has bad data_offsets", file->path, entry->name);
    if ((uint64_t)end > file->data_bytes)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' ends beyond the file: the file is cut short",
            file->path, entry->name);
    entry->begin = (uint64_t)begin;
    entry->end = (uint64_t)end;
    return PH_OK;
}

static ph_status check_size(const struct ph__safetensors *file, const struct entry *entry)
{
    size_t bytes = ph_dtype_size(entry->dtype);
    bool is_fit = true;
    for (size_t i = 0; i < entry->shape.num_dims; i++)
        is_fit = is_fit && ph__size_mul(bytes, entry->shape.dims[i], &bytes);
    if (is_fit && bytes == entry->end - entry->begin)
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' has a shape that does not fit its data_offsets",
        file->path, entry->name);
}

static ph_status parse_entry(const struct ph__safetensors *file, const char *name,
    const struct ph__json *description, struct entry *entry)
{
    *entry = (struct entry){.name = name};
    if (!ph__json_is_object(description) || ph__json_size(description) != 3)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: tensor '%s' is not {dtype, shape, data_offsets}", file->path, name);
    PH_TRY(parse_dtype(file, description, entry));
    PH_TRY(parse_shape(file, description, entry));
    PH_TRY(parse_offsets(file, description, entry));
    return check_size(file, entry);
}

static int compare_begin(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return left->end < right->end ? -1 : left->end > right->end;
}

static int compare_name(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Checks that the tensors cover all bytes behind the header, each byte once. */
static ph_status check_cover(const struct ph__safetensors *file)
{
    uint64_t end = 0;
    qsort(file->entries, file->num_entries, sizeof *file->entries, compare_begin);
    for (size_t i = 0; i < file->num_entries; i++) {
        const struct entry *entry = &file->entries[i];
        if (entry->begin < end)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' overlaps another", file->path, entry->name);
        if (entry->begin > end)
            return ph_fail(
                PH_ERROR_CHECKPOINT, "%s: unused bytes before tensor '%s'", file->path, entry->name);
        end = entry->end;
    }
    if (end != file->data_bytes)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: unused bytes after the last tensor", file->path);
    return PH_OK;
}

/* Gives each tensor its checksum, where the metadata has them. The entries are in the order of the file. */
static ph_status set_checksums(struct ph__safetensors *file)
{
    const char *digits = ph__safetensors_metadata(file, PH_SAFETENSORS_CHECKSUMS);
    if (digits == NULL)
        return PH_OK;
    const size_t wanted = file->num_entries * PH_CHECKSUM_DIGITS;
    if (strlen(digits) != wanted || strspn(digits, "0123456789abcdef") != wanted)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: " METADATA " '" PH_SAFETENSORS_CHECKSUMS "' is not %d digits for each of %zu tensors",
            file->path, PH_CHECKSUM_DIGITS, file->num_entries);
    for (size_t i = 0; i < file->num_entries; i++)
        file->entries[i].checksum = digits + i * PH_CHECKSUM_DIGITS;
    return PH_OK;
}

static ph_status parse_header(struct ph__safetensors *file)
{
    const size_t size = ph__json_size(file->header);
    file->entries = calloc(size + 1, sizeof *file->entries);
    if (file->entries == NULL)
        return ph__out_of_memory("the header of %s", file->path);
    struct ph__json_member member = {0};
    while (ph__json_next_member(file->header, &member)) {
        if (strcmp(member.key, METADATA) == 0) {
            file->metadata = member.value;
            PH_TRY(check_metadata(file));
            continue;
        }
        PH_TRY(parse_entry(file, member.key, member.value, &file->entries[file->num_entries]));
        file->num_entries++;
    }
    PH_TRY(check_cover(file));
    PH_TRY(set_checksums(file));
    qsort(file->entries, file->num_entries, sizeof *file->entries, compare_name);
    return PH_OK;
}

static ph_status open_and_check(struct ph__safetensors *file, bool is_whole)
{
    uint64_t file_bytes = 0, length = 0;
    PH_TRY(open_file(file, &file_bytes));
    PH_TRY(read_prefix(file, file_bytes, &length));
    PH_TRY(read_header(file, length, is_whole));
    if (is_whole)
        return parse_header(file);
    file->metadata = file->header;
    return check_metadata(file);
}

static ph_status open_path(const char *path, bool is_whole, struct ph__safetensors **file_out)
{
    struct ph__safetensors *file = calloc(1, sizeof *file);
    if (file == NULL)
        return ph__out_of_memory("cannot open %s", path);
    file->descriptor = -1;
    file->path = ph__arena_strdup(&file->arena, path);
    const ph_status status = file->path == NULL ? PH_ERROR_MEMORY : open_and_check(file, is_whole);
    if (status != PH_OK) {
        ph__safetensors_close(file);
        return status;
    }
    *file_out = file;
    return PH_OK;
}

ph_status ph__safetensors_open(const char *path, struct ph__safetensors **file_out)
{
    return open_path(path, true, file_out);
}

ph_status ph__safetensors_open_metadata(const char *path, struct ph__safetensors **file_out)
{
    return open_path(path, false, file_out);
}

void ph__safetensors_close(struct ph__safetensors *file)
{
    if (file == NULL)
        return;
    free(file->entries);
    if (file->header != NULL)
        ph__json_destroy(file->header);
    if (file->descriptor >= 0)
        close(file->descriptor);
    ph__arena_fini(&file->arena);
    free(file);
}

uint64_t ph__safetensors_bytes(const struct ph__safetensors *file)
{
    return file->data_begin + file->data_bytes;
}

/* ---- the seal ---- */

bool ph__safetensors_is_sealed(const struct ph__safetensors *file)
{
    return file->is_sealed;
}

ph_status ph__safetensors_check_seal(
    const struct ph__safetensors *file, const struct ph__meanwhile *meanwhile)
{
    if (!file->is_sealed)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the header does not begin with a seal (\"" PH_SEAL_KEY
            "\"): another program or an older version wrote the file, or it is damaged",
            file->path);
    return ph__seal_check_file(file->descriptor, PREFIX_BYTES + strlen(PH_SAFETENSORS_SEAL_START), file->path,
        PH_ERROR_CHECKPOINT, meanwhile);
}

ph_status ph__safetensors_read_seal(const char *path, char seal_out[PH_SEAL_DIGITS + 1])
{
    struct ph__safetensors file = {.path = path, .descriptor = -1};
    char start[sizeof PH_SAFETENSORS_SEAL_START - 1 + PH_SEAL_DIGITS + 2];
    uint64_t file_bytes = 0, length = 0;
    ph_status status = open_file(&file, &file_bytes);
    if (status == PH_OK)
        status = read_prefix(&file, file_bytes, &length);
    if (status == PH_OK && length >= sizeof start)
        status = read_at(&file, PREFIX_BYTES, start, sizeof start);
    if (status == PH_OK && !(length >= sizeof start && begins_with_seal(start, sizeof start)))
        status = ph_fail(PH_ERROR_CHECKPOINT, "%s: the file has no seal", path);
    if (status == PH_OK)
        snprintf(
            seal_out, PH_SEAL_DIGITS + 1, "%.*s", PH_SEAL_DIGITS, start + strlen(PH_SAFETENSORS_SEAL_START));
    if (file.descriptor >= 0)
        close(file.descriptor);
    return status;
}

/* ---- tensors ---- */

size_t ph__safetensors_num_tensors(const struct ph__safetensors *file)
{
    return file->num_entries;
}

struct ph_tensor ph__safetensors_tensor(const struct ph__safetensors *file, size_t index)
{
    const struct entry *entry = &file->entries[index];
    return (struct ph_tensor){.name = entry->name, .dtype = entry->dtype, .shape = entry->shape};
}

bool ph__safetensors_checksum(const struct ph__safetensors *file, size_t index, uint64_t *checksum_out)
{
    char digits[PH_CHECKSUM_DIGITS + 1] = "";
    const char *text = file->entries[index].checksum;
    if (text == NULL)
        return false;
    memcpy(digits, text, PH_CHECKSUM_DIGITS);
    *checksum_out = strtoull(digits, NULL, 16);
    return true;
}

size_t ph__safetensors_find(const struct ph__safetensors *file, const char *name)
{
    const struct entry key = {.name = name};
    if (file->num_entries == 0)
        return 0;
    const struct entry *entry =
        bsearch(&key, file->entries, file->num_entries, sizeof *file->entries, compare_name);
    return entry != NULL ? (size_t)(entry - file->entries) : file->num_entries;
}

ph_status ph__safetensors_read(const struct ph__safetensors *file, size_t index, void *data)
{
    const struct entry *entry = &file->entries[index];
    return ph__safetensors_read_range(file, index, 0, (size_t)(entry->end - entry->begin), data);
}

ph_status ph__safetensors_read_range(
    const struct ph__safetensors *file, size_t index, uint64_t first, size_t size, void *data)
{
    const struct entry *entry = &file->entries[index];
    assert(first <= entry->end - entry->begin && size <= entry->end - entry->begin - first);
    return read_at(file, file->data_begin + entry->begin + first, data, size);
}

const char *ph__safetensors_metadata(const struct ph__safetensors *file, const char *key)
{
    return file->metadata != NULL ? ph__json_as_text(ph__json_get(file->metadata, key), NULL) : NULL;
}

bool ph__safetensors_next_metadata(const struct ph__safetensors *file, struct ph__json_member *member)
{
    return ph__json_next_member(file->metadata, member);
}
