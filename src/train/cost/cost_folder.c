#include "train/cost/cost_folder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/json_fields.h"
#include "base/thread/cpu.h"

enum { VERSION = 1, MOST_JSON_BYTES = 1 << 16 };

#define TEXT(name)                                                                                           \
    {                                                                                                        \
#name, PH_JSON_TEXT, offsetof(struct ph__cost_facts, name), sizeof((struct ph__cost_facts *)0)->name \
    }
#define OTHER(name, kind)                                     \
    {                                                         \
#name, kind, offsetof(struct ph__cost_facts, name), 0 \
    }

static const struct ph__json_field fields[] = {TEXT(machine), TEXT(processor), TEXT(isa), TEXT(date),
    OTHER(batch_size, PH_JSON_COUNT), OTHER(labels, PH_JSON_COUNT), OTHER(lookup_share, PH_JSON_NUMBER),
    OTHER(mape, PH_JSON_NUMBER), OTHER(tau, PH_JSON_NUMBER), OTHER(repeat_error, PH_JSON_NUMBER)};
enum { NUM_FIELDS = sizeof fields / sizeof fields[0] };

/* ---- this machine ---- */

ph_status ph__cost_facts_here(struct ph__cost_facts *facts)
{
    struct tm utc;
    enum ph__isa isa;
    const time_t now = time(NULL);
    PH_TRY(ph__cpu_isa(&isa));
    facts->machine[0] = '\0';
    (void)!gethostname(facts->machine, sizeof facts->machine);
    facts->machine[sizeof facts->machine - 1] = '\0';
    ph__cpu_name(facts->processor, sizeof facts->processor);
    snprintf(facts->isa, sizeof facts->isa, "%s", ph__isa_name(isa));
    if (gmtime_r(&now, &utc) != NULL)
        strftime(facts->date, sizeof facts->date, "%Y-%m-%d %H:%M UTC", &utc);
    return PH_OK;
}

/* ---- files ---- */

struct paths {
    struct ph__arena arena;
    const char *json, *model;
};

static ph_status paths_init(struct paths *paths, const char *folder)
{
    *paths = (struct paths){0};
    paths->json = ph__path_join(&paths->arena, folder, "cost.json");
    paths->model = ph__path_join(&paths->arena, folder, "model.safetensors");
    return paths->json != NULL && paths->model != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__cost_save(
    const struct ph__cost_nets *nets, const char *folder, const struct ph__cost_facts *facts)
{
    struct ph__cost_facts complete = *facts;
    struct ph__json *json = ph__json_object();
    struct paths paths;
    complete.batch_size = nets->batch_size;
    complete.lookup_share = nets->lookup_share;
    ph__json_set_integer(json, "version", VERSION);
    ph__json_set_fields(json, fields, NUM_FIELDS, &complete);
    ph_status status = paths_init(&paths, folder);
    if (status == PH_OK)
        status = ph__directory_create(folder);
    if (status == PH_OK)
        status = ph_checkpoint_save(paths.model, nets->store, nets->state, NULL);
    if (status == PH_OK)
        status = ph__json_write(json, paths.json);
    ph__json_destroy(json);
    ph__arena_fini(&paths.arena);
    return status;
}

static ph_status read_json(const char *path, struct ph__cost_facts *facts)
{
    struct ph__json *json = NULL;
    PH_TRY(ph__json_read(path, PH_ERROR_CHECKPOINT, MOST_JSON_BYTES, &json));
    const int64_t version = ph__json_as_integer(ph__json_get(json, "version"), 0);
    const char *wrong = ph__json_get_fields(json, fields, NUM_FIELDS, facts);
    ph__json_destroy(json);
    if (version != VERSION)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: version %lld, this program reads %d", path,
            (long long)version, VERSION);
    return wrong == NULL
               ? PH_OK
               : ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' is missing or of another type", path, wrong);
}

ph_status ph__cost_check_machine(const char *path, const struct ph__cost_facts *facts)
{
    struct ph__cost_facts here = {0};
    PH_TRY(ph__cost_facts_here(&here));
    if (strcmp(facts->processor, here.processor) == 0 && strcmp(facts->isa, here.isa) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "%s: costs were learnt on '%s' (%s), this is '%s' (%s): learn them here, or give %s", path,
        facts->processor, facts->isa, here.processor, here.isa, PH_COST_FOREIGN_FLAG);
}

ph_status ph__cost_load(const char *folder, bool may_be_foreign, struct ph__cost_nets **nets_out,
    struct ph__cost_facts *facts_out)
{
    struct ph__cost_facts facts = {0};
    struct ph__cost_nets *nets = NULL;
    struct paths paths;
    ph_status status = paths_init(&paths, folder);
    if (status == PH_OK)
        status = read_json(paths.json, &facts);
    if (status == PH_OK && !may_be_foreign)
        status = ph__cost_check_machine(paths.json, &facts);
    if (status == PH_OK)
        status = ph__cost_nets_create(0, (size_t)facts.batch_size, &nets);
    if (status == PH_OK)
        status = ph_checkpoint_load(paths.model, nets->store, nets->state);
    ph__arena_fini(&paths.arena);
    if (status != PH_OK) {
        ph__cost_nets_destroy(nets);
        return status;
    }
    nets->lookup_share = facts.lookup_share;
    for (size_t kind = 0; kind < PH_COST_NUM_NETS; kind++)
        nets->is_learnt[kind] = true;
    *nets_out = nets;
    if (facts_out != NULL)
        *facts_out = facts;
    return PH_OK;
}
