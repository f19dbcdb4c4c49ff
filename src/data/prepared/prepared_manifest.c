#include "data/prepared/prepared_manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json_fields.h"
#include "base/format/seal.h"
#include "base/memory/memory.h"

#define FORMAT "phloem-prepared"
#define VERSION 1
#define MAX_FILE_BYTES ((uint64_t)1 << 30)

#define FIELD(member, what, size)                                  \
    {                                                              \
#member, what, offsetof(struct ph__manifest, member), size \
    }
static const struct ph__json_field fields[] = {
    FIELD(encoder, PH_JSON_TEXT, 65),
    FIELD(num_rows, PH_JSON_COUNT, 0),
    FIELD(num_words, PH_JSON_COUNT, 0),
    FIELD(num_bad_rows, PH_JSON_COUNT, 0),
    FIELD(num_bytes, PH_JSON_COUNT, 0),
};
#undef FIELD

#define FIELD(member, what, size)                                       \
    {                                                                   \
#member, what, offsetof(struct ph__manifest_part, member), size \
    }
static const struct ph__json_field part_fields[] = {
    FIELD(name, PH_JSON_TEXT, PH_PART_NAME_BYTES),
    FIELD(num_rows, PH_JSON_COUNT, 0),
    FIELD(num_words, PH_JSON_COUNT, 0),
    FIELD(num_bytes, PH_JSON_COUNT, 0),
    FIELD(checksum, PH_JSON_TEXT, 17),
};
#undef FIELD

#define NUM_FIELDS (sizeof fields / sizeof *fields)
#define NUM_PART_FIELDS (sizeof part_fields / sizeof *part_fields)

ph_status ph__manifest_write(const struct ph__manifest *manifest, const char *path)
{
    struct ph__json *json = ph__sealed_json_object(), *parts = ph__json_array();
    ph__json_set_text(json, "format", FORMAT);
    ph__json_set_integer(json, "version", VERSION);
    ph__json_set_fields(json, fields, NUM_FIELDS, manifest);
    for (size_t i = 0; i < manifest->num_parts; i++) {
        struct ph__json *part = ph__json_object();
        ph__json_set_fields(part, part_fields, NUM_PART_FIELDS, &manifest->parts[i]);
        ph__json_append(parts, part);
    }
    ph__json_set(json, "parts", parts);
    ph_status status = ph__sealed_json_write(json, path);
    ph__json_destroy(json);
    return status;
}

static ph_status fail_key(const char *path, const char *key)
{
    return ph_fail(PH_ERROR_DATA, "%s: the manifest has no valid '%s'", path, key);
}

static ph_status get_part(const struct ph__json *json, const char *path, struct ph__manifest_part *part)
{
    const char *key = ph__json_get_fields(json, part_fields, NUM_PART_FIELDS, part);
    if (key == NULL && (part->name[0] == '\0' || strchr(part->name, '/') != NULL || part->name[0] == '.'))
        key = "name";
    return key == NULL ? PH_OK : fail_key(path, key);
}

static ph_status get_manifest(const struct ph__json *json, const char *path, struct ph__manifest *manifest)
{
    if (strcmp(ph__json_as_text(ph__json_get(json, "format"), ""), FORMAT) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: not the manifest of prepared data", path);
    int64_t version = ph__json_as_integer(ph__json_get(json, "version"), 0);
    if (version != VERSION)
        return ph_fail(PH_ERROR_DATA,
            "%s: version %" PRId64 " of prepared data is not supported, only version %d; prepare it again: "
            "phloem prepare CONFIG --out FOLDER",
            path, version, VERSION);
    const char *key = ph__json_get_fields(json, fields, NUM_FIELDS, manifest);
    if (key != NULL)
        return fail_key(path, key);
    const struct ph__json *parts = ph__json_get(json, "parts");
    if (!ph__json_is_array(parts))
        return fail_key(path, "parts");
    manifest->parts = calloc(ph__json_size(parts) + 1, sizeof *manifest->parts);
    if (manifest->parts == NULL)
        return ph__out_of_memory("%s: %zu parts", path, ph__json_size(parts));
    for (; manifest->num_parts < ph__json_size(parts); manifest->num_parts++)
        PH_TRY(
            get_part(ph__json_at(parts, manifest->num_parts), path, &manifest->parts[manifest->num_parts]));
    return PH_OK;
}

ph_status ph__manifest_read(const char *path, struct ph__manifest *manifest_out)
{
    struct ph__json *json = NULL;
    struct ph__manifest manifest = {.num_parts = 0};
    if (!ph__file_exists(path))
        return ph_fail(PH_ERROR_DATA,
            "%s: does not exist: the folder has no prepared data, or its preparation is not finished", path);
    ph_status status = ph__sealed_json_read(path, PH_ERROR_DATA, MAX_FILE_BYTES, &json);
    if (status == PH_OK)
        status = get_manifest(json, path, &manifest);
    ph__json_destroy(json);
    if (status != PH_OK) {
        ph__manifest_fini(&manifest);
        return status;
    }
    *manifest_out = manifest;
    return PH_OK;
}

void ph__manifest_fini(struct ph__manifest *manifest)
{
    free(manifest->parts);
    memset(manifest, 0, sizeof *manifest);
}
