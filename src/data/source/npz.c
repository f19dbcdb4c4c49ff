#include "data/source/npz.h"

#include <string.h>
#include <unistd.h>

#include "base/file/file.h"

#define END_BYTES 22 /* end record, without its comment */
#define MAX_COMMENT_BYTES 65535
#define END64_LOCATOR_BYTES 20
#define END64_BYTES 56
#define ENTRY_BYTES 46
#define LOCAL_BYTES 30
#define MAX_DIRECTORY_BYTES ((uint64_t)16 << 20)
#define UNKNOWN_32 0xffffffffu /* the value is in a Zip64 record */

struct archive {
    const char *path;
    int descriptor;
    uint64_t num_bytes;
    struct ph__arena *arena;
    uint64_t directory_byte, directory_bytes, num_entries;
};

static ph_status fail(const struct archive *archive, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s: %s", archive->path, problem);
}

/* Reads a little-endian number at any address. */
static uint64_t number_at(const unsigned char *bytes, size_t size)
{
    uint64_t number = 0;
    for (size_t i = size; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

static bool has_signature(const unsigned char *bytes, unsigned char third, unsigned char fourth)
{
    return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == third && bytes[3] == fourth;
}

/* ---- the directory's place ---- */

/* Reads the Zip64 end record, which the locator in front of the end record points to. */
static ph_status find_directory64(struct archive *archive, const unsigned char *locator)
{
    unsigned char end[END64_BYTES];
    uint64_t at = number_at(locator + 8, 8);
    if (archive->num_bytes < END64_BYTES || at > archive->num_bytes - END64_BYTES)
        return fail(archive, "the archive's Zip64 end lies outside the file");
    PH_TRY(ph__file_read_at(archive->descriptor, archive->path, at, end, sizeof end));
    if (!has_signature(end, 6, 6))
        return fail(archive, "the archive's Zip64 end is damaged");
    archive->num_entries = number_at(end + 32, 8);
    archive->directory_bytes = number_at(end + 40, 8);
    archive->directory_byte = number_at(end + 48, 8);
    return PH_OK;
}

/* Returns the end record, or NULL: the last signature whose comment reaches to the file's end. */
static const unsigned char *find_end(const unsigned char *tail, size_t size)
{
    for (size_t at = size - END_BYTES + 1; at-- > 0;)
        if (has_signature(tail + at, 5, 6) && number_at(tail + at + 20, 2) == size - at - END_BYTES)
            return tail + at;
    return NULL;
}

static ph_status find_directory(struct archive *archive)
{
    uint64_t most = END64_LOCATOR_BYTES + END_BYTES + MAX_COMMENT_BYTES;
    size_t size = (size_t)(archive->num_bytes < most ? archive->num_bytes : most);
    if (size < END_BYTES)
        return fail(archive, "not a .npz archive");
    unsigned char *tail = ph__arena_alloc(archive->arena, size);
    if (tail == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__file_read_at(archive->descriptor, archive->path, archive->num_bytes - size, tail, size));
    const unsigned char *end = find_end(tail, size);
    if (end == NULL)
        return fail(archive, "not a .npz archive, or cut off");
    archive->num_entries = number_at(end + 10, 2);
    archive->directory_bytes = number_at(end + 12, 4);
    archive->directory_byte = number_at(end + 16, 4);
    if (end - tail >= END64_LOCATOR_BYTES && has_signature(end - END64_LOCATOR_BYTES, 6, 7))
        PH_TRY(find_directory64(archive, end - END64_LOCATOR_BYTES));
    if (archive->directory_bytes > MAX_DIRECTORY_BYTES || archive->directory_bytes > archive->num_bytes ||
        archive->directory_byte > archive->num_bytes - archive->directory_bytes)
        return fail(archive, "the archive's directory lies outside the file");
    if (archive->num_entries > archive->directory_bytes / ENTRY_BYTES)
        return fail(archive, "the archive's directory has fewer members than it says");
    return PH_OK;
}

/* ---- members ---- */

/* Reads the sizes and the place that did not fit in 32 bits from the entry's extra fields, in their order
 * there. */
static ph_status read_extra(
    const struct archive *archive, const unsigned char *extra, size_t size, uint64_t *const numbers[3])
{
    bool is_wanted = *numbers[0] == UNKNOWN_32 || *numbers[1] == UNKNOWN_32 || *numbers[2] == UNKNOWN_32;
    for (size_t at = 0; is_wanted && at + 4 <= size;) {
        size_t field_bytes = number_at(extra + at + 2, 2), next = at + 4;
        if (field_bytes > size - next)
            break;
        at = next + field_bytes;
        if (number_at(extra + next - 4, 2) != 1)
            continue;
        for (size_t i = 0; i < 3; i++) {
            if (*numbers[i] != UNKNOWN_32)
                continue;
            if (next + 8 > at)
                return fail(archive, "a Zip64 field of the archive's directory is too short");
            *numbers[i] = number_at(extra + next, 8);
            next += 8;
        }
        return PH_OK;
    }
    return is_wanted ? fail(archive, "the archive's directory lacks a Zip64 field") : PH_OK;
}

/* Finds the member's bytes behind its local header, whose name and extra fields may have other sizes than the
 * directory's. */
static ph_status find_data(const struct archive *archive, uint64_t local_byte, struct ph__npz_member *member)
{
    unsigned char local[LOCAL_BYTES];
    if (archive->num_bytes < LOCAL_BYTES || local_byte > archive->num_bytes - LOCAL_BYTES)
        return ph_fail(PH_ERROR_DATA, "%s:%s: the member lies outside the file", archive->path, member->name);
    PH_TRY(ph__file_read_at(archive->descriptor, archive->path, local_byte, local, sizeof local));
    if (!has_signature(local, 3, 4))
        return ph_fail(PH_ERROR_DATA, "%s:%s: the member's header is damaged", archive->path, member->name);
    member->data_byte = local_byte + LOCAL_BYTES + number_at(local + 26, 2) + number_at(local + 28, 2);
    if (member->data_byte > archive->num_bytes ||
        member->num_packed_bytes > archive->num_bytes - member->data_byte)
        return ph_fail(PH_ERROR_DATA, "%s:%s: the member lies outside the file", archive->path, member->name);
    return PH_OK;
}

static ph_status check_method(
    const struct archive *archive, const unsigned char *entry, struct ph__npz_member *member)
{
    uint64_t method = number_at(entry + 10, 2);
    if ((number_at(entry + 8, 2) & 1) != 0)
        return ph_fail(PH_ERROR_DATA, "%s:%s: the member is encrypted, which is not supported", archive->path,
            member->name);
    if (method != 0 && method != 8)
        return ph_fail(PH_ERROR_DATA, "%s:%s: compression method %d is not supported: use stored or deflate",
            archive->path, member->name, (int)method);
    member->is_deflated = method == 8;
    if (!member->is_deflated && member->num_packed_bytes != member->num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s:%s: the member is stored, but its two sizes differ", archive->path,
            member->name);
    return PH_OK;
}

/* Copies a member's name without ".npy". */
static const char *copy_name(struct ph__arena *arena, const unsigned char *name, size_t length)
{
    if (length > 4 && memcmp(name + length - 4, ".npy", 4) == 0)
        length -= 4;
    return ph__arena_printf(arena, "%.*s", (int)length, (const char *)name);
}

/* Reads the entry of the directory at *cursor, and moves *cursor past it. */
static ph_status read_entry(const struct archive *archive, const unsigned char **cursor,
    const unsigned char *end, struct ph__npz_member *member)
{
    const unsigned char *entry = *cursor;
    if (end - entry < ENTRY_BYTES || !has_signature(entry, 1, 2))
        return fail(archive, "the archive's directory is damaged");
    size_t name_bytes = number_at(entry + 28, 2), extra_bytes = number_at(entry + 30, 2);
    size_t rest_bytes = name_bytes + extra_bytes + number_at(entry + 32, 2);
    if ((size_t)(end - entry) - ENTRY_BYTES < rest_bytes)
        return fail(archive, "the archive's directory is cut off");
    uint64_t local_byte = number_at(entry + 42, 4);
    *cursor = entry + ENTRY_BYTES + rest_bytes;
    *member = (struct ph__npz_member){
        .name = copy_name(archive->arena, entry + ENTRY_BYTES, name_bytes),
        .crc = (uint32_t)number_at(entry + 16, 4),
        .num_packed_bytes = number_at(entry + 20, 4),
        .num_bytes = number_at(entry + 24, 4),
    };
    if (member->name == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(read_extra(archive, entry + ENTRY_BYTES + name_bytes, extra_bytes,
        (uint64_t *const[]){&member->num_bytes, &member->num_packed_bytes, &local_byte}));
    PH_TRY(check_method(archive, entry, member));
    return find_data(archive, local_byte, member);
}

static ph_status read_directory(struct archive *archive, struct ph__npz *npz)
{
    PH_TRY(find_directory(archive));
    size_t size = (size_t)archive->directory_bytes, count = (size_t)archive->num_entries;
    unsigned char *directory = ph__arena_alloc(archive->arena, size);
    npz->members = ph__arena_alloc_array(archive->arena, count, sizeof *npz->members);
    if (directory == NULL || npz->members == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__file_read_at(archive->descriptor, archive->path, archive->directory_byte, directory, size));
    const unsigned char *cursor = directory;
    for (size_t i = 0; i < count; i++)
        PH_TRY(read_entry(archive, &cursor, directory + size, &npz->members[i]));
    npz->num_members = count;
    return cursor == directory + size
               ? PH_OK
               : fail(archive, "the archive's directory has more members than it says");
}

ph_status ph__npz_read(struct ph__arena *arena, const char *path, struct ph__npz *npz_out)
{
    struct archive archive = {.path = path, .arena = arena};
    *npz_out = (struct ph__npz){0};
    PH_TRY(ph__file_open(path, &archive.descriptor, &archive.num_bytes));
    ph_status status = read_directory(&archive, npz_out);
    close(archive.descriptor);
    return status;
}

const struct ph__npz_member *ph__npz_find(const struct ph__npz *npz, const char *name)
{
    for (size_t i = 0; i < npz->num_members; i++)
        if (strcmp(npz->members[i].name, name) == 0)
            return &npz->members[i];
    return NULL;
}
