#include "serve/repository/repository_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {"UNAVAILABLE", "LOADING", "READY", "READY", "UNLOADING"};

struct ph__listed_model *ph__listed_model(const struct ph__repository *repository, struct ph__bytes name)
{
    struct ph__listed_model *model = repository->models;
    while (model != NULL && !ph__bytes_are(name, model->name))
        model = model->next;
    return model;
}

struct ph__listed_version *ph__listed_version(const struct ph__listed_model *model, uint64_t number)
{
    struct ph__listed_version *version = model->versions;
    while (version != NULL && version->number != number)
        version = version->next;
    return version;
}

bool ph__listed_serves(const struct ph__listed_version *version)
{
    return version->state == PH_READY || version->state == PH_RELOADING;
}

const struct ph__listed_version *ph__listed_newest(const struct ph__listed_model *model)
{
    const struct ph__listed_version *newest = NULL;
    for (const struct ph__listed_version *version = model->versions; version != NULL; version = version->next)
        if (ph__listed_serves(version))
            newest = version;
    return newest;
}

enum ph__oip_code ph__repository_find(struct ph__repository *repository, struct ph__bytes name,
    struct ph__bytes version_text, struct ph__served **served_out)
{
    char digits[24];
    const struct ph__listed_model *model = ph__listed_model(repository, name);
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(
            PH_OIP_NOT_FOUND, "the repository has no model '%.*s'", (int)name.size, name.bytes);
    const struct ph__listed_version *version = NULL;
    if (version_text.size > 0 && version_text.size < sizeof digits) {
        memcpy(digits, version_text.bytes, version_text.size);
        digits[version_text.size] = '\0';
        if (strspn(digits, "0123456789") == version_text.size)
            version = ph__listed_version(model, strtoull(digits, NULL, 10));
    }
    if (version_text.size > 0 && version == NULL)
        return ph__oip_fail(PH_OIP_NOT_FOUND, "model '%s' has no version '%.*s'", model->name,
            (int)version_text.size, version_text.bytes);
    if (version_text.size == 0)
        version = ph__listed_newest(model);
    if (version == NULL || !ph__listed_serves(version))
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "model '%s' is not ready", model->name);
    version->served->num_holders++;
    *served_out = version->served;
    return PH_OIP_OK;
}

void ph__repository_visit(
    struct ph__repository *repository, void (*visit)(void *context, struct ph__served *served), void *context)
{
    for (const struct ph__listed_model *model = repository->models; model != NULL; model = model->next)
        for (const struct ph__listed_version *version = model->versions; version != NULL;
             version = version->next)
            if (ph__listed_serves(version))
                visit(context, version->served);
}

enum ph__oip_code ph__repository_versions(struct ph__repository *repository, struct ph__bytes name,
    struct ph__arena *arena, struct ph__list *versions_out)
{
    const struct ph__listed_model *model = ph__listed_model(repository, name);
    if (model == NULL)
        return ph__oip_fail(
            PH_OIP_NOT_FOUND, "the repository has no model '%.*s'", (int)name.size, name.bytes);
    for (const struct ph__listed_version *version = model->versions; version != NULL;
         version = version->next) {
        struct ph__bytes *text =
            ph__listed_serves(version) ? ph__list_add(versions_out, sizeof *text, arena) : NULL;
        if (text != NULL)
            *text = ph__bytes_of(version->served->version_text);
    }
    return PH_OIP_OK;
}

ph_status ph__repository_index(const struct ph__repository *repository, bool is_ready_only,
    struct ph__arena *arena, struct ph__list *entries_out)
{
    for (const struct ph__listed_model *model = repository->models; model != NULL; model = model->next)
        for (const struct ph__listed_version *version = model->versions; version != NULL;
             version = version->next) {
            if (is_ready_only && !ph__listed_serves(version))
                continue;
            struct ph__oip_index_entry *entry = ph__list_add(entries_out, sizeof *entry, arena);
            const char *number = ph__arena_printf(arena, "%" PRIu64, version->number);
            if (entry == NULL || number == NULL)
                return PH_ERROR_MEMORY;
            const bool is_silent = version->state == PH_UNAVAILABLE && version->reason[0] == '\0';
            *entry = (struct ph__oip_index_entry){.name = ph__bytes_of(model->name),
                .version = ph__bytes_of(number),
                .state = ph__bytes_of(is_silent ? "" : state_names[version->state]),
                .reason = ph__bytes_of(version->reason)};
        }
    return PH_OK;
}
