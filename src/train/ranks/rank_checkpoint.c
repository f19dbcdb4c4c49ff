#include "train/ranks/rank_checkpoint.h"

#include "base/file/directory.h"
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "comm/collective/comm.h"
#include "plan/plan_units.h"
#include "shard/tower/tower_cone.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_names.h"

enum { WORD_BITS = 64 };

/* ---- tensors that this rank writes ---- */

/* Returns the table of a slot, embedding.user for "slot.s:embedding.user"; other names as they are. */
static const char *table_of(const char *tensor)
{
    const char *colon = strchr(tensor, ':');
    return strncmp(tensor, "slot.", 5) == 0 && colon != NULL ? colon + 1 : tensor;
}

static bool is_sharded(const struct ph__plan *plan, const char *tensor)
{
    const struct ph__plan_table *table = ph__plan_find(plan, table_of(tensor));
    return table != NULL && table->kind != PH_SHARD_DATA_PARALLEL;
}

/* Returns the tower whose layers have the tensor, "tower.user.all.weight" or a slot of it; NULL: none that
 * has a host. */
static const struct ph__plan_tower *tower_of(const struct ph__plan *plan, const char *tensor)
{
    const char *name = ph__tower_name(table_of(tensor));
    for (size_t i = 0; name != NULL && i < plan->num_towers; i++) {
        const size_t length = strlen(plan->towers[i].of.name);
        if (strncmp(name, plan->towers[i].of.name, length) == 0 && name[length] == '.')
            return &plan->towers[i];
    }
    return NULL;
}

/* Returns true for tensors that this rank writes: its shards, those of dense parameters in the first group
 * that has them, and those that it is the first of all ranks to have, of parameters on every rank or on the
 * ranks of a tower's host. */
static bool is_own(const struct ph__ranks *ranks, const char *tensor)
{
    const struct ph__plan_units *units = &ranks->plan->units;
    const struct ph__plan_unit *unit;
    if (ph__plan_units_find(units, table_of(tensor), &unit) != NULL)
        return ranks->rank < units->settings.group_size;
    const struct ph__plan_tower *tower = tower_of(ranks->plan, tensor);
    const size_t first = tower != NULL ? tower->host * ranks->plan->topology.ranks_per_host : 0;
    return ranks->rank == first || is_sharded(ranks->plan, tensor);
}

static void keep_own(const struct ph__ranks *ranks, struct ph__tensor_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (is_own(ranks, list->tensors[i].name))
            list->tensors[count++] = list->tensors[i];
    list->count = count;
}

/* ---- writing ---- */

/* Texts of all ranks, on each of them: (world), in one block of memory, which the first text begins. */
struct descriptions {
    const char **texts;
    char *bytes;
    uint64_t *sizes; /* with their NULs */
};

static void descriptions_fini(struct descriptions *all)
{
    free(all->texts);
    free(all->bytes);
    free(all->sizes);
}

static const char descriptions_name[] = "descriptions of a checkpoint";

static ph_status gather_descriptions(const struct ph__ranks *ranks, const char *own, struct descriptions *all)
{
    size_t total = 0;
    all->sizes = calloc(ranks->world_size, sizeof *all->sizes);
    all->texts = calloc(ranks->world_size, sizeof *all->texts);
    if (all->sizes == NULL || all->texts == NULL)
        return ph__out_of_memory("the description of a checkpoint");
    const uint64_t size = strlen(own) + 1;
    PH_TRY(ph__comm_gather_once(ranks->comm, descriptions_name, &size, sizeof size, all->sizes));
    for (size_t rank = 0; rank < ranks->world_size; rank++)
        total += all->sizes[rank];
    all->bytes = malloc(total);
    if (all->bytes == NULL)
        return ph__out_of_memory("the description of a checkpoint");
    PH_TRY(ph__comm_gather_varied_once(ranks->comm, descriptions_name, own, all->sizes, all->bytes));
    for (size_t rank = 0, at = 0; rank < ranks->world_size; at += all->sizes[rank++])
        all->texts[rank] = all->bytes + at;
    return PH_OK;
}

static ph_status commit(
    struct ph__ranks *ranks, const char *path, const char *description, const char *const *metadata)
{
    struct descriptions all = {0};
    ph_status status = gather_descriptions(ranks, description, &all);
    if (status == PH_OK && ph__ranks_is_first(ranks))
        status = ph__folder_commit(path, ranks->world_size, all.texts, metadata);
    descriptions_fini(&all);
    return ph__ranks_all(ranks, status);
}

/* Begins the folder, in place of an unfinished one or of a file from when the training had one rank. */
static ph_status begin_folder(const char *draft)
{
    PH_TRY(ph__checkpoint_remove(draft));
    return ph__folder_begin(draft);
}

static ph_status write_draft(
    struct ph__ranks *ranks, const char *draft, struct ph__tensor_list *list, const char *const *metadata)
{
    char *description = NULL;
    PH_TRY(ph__ranks_all(ranks, ph__ranks_is_first(ranks) ? begin_folder(draft) : PH_OK));
    keep_own(ranks, list);
    ph_status status = ph__folder_write_part(
        draft, ranks->rank, ranks->world_size, list->count, list->tensors, &description);
    status = ph__ranks_all(ranks, status);
    if (status == PH_OK)
        status = commit(ranks, draft, description, metadata);
    free(description);
    return status;
}

static ph_status write_folder(
    struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list, const char *const *metadata)
{
    struct ph__arena arena = {0};
    const char *draft = ph__checkpoint_draft(&arena, path);
    ph_status status = draft != NULL ? write_draft(ranks, draft, list, metadata) : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__ranks_all(ranks, ph__ranks_is_first(ranks) ? ph__checkpoint_publish(path) : PH_OK);
    ph__arena_fini(&arena);
    return status;
}

/* Writes a file: in place of a file, which is atomic by itself, or of a folder from a time when there were
 * several ranks. */
static ph_status write_file(const char *path, const struct ph__tensor_list *list, const char *const *metadata)
{
    struct ph__arena arena = {0};
    if (!ph__directory_exists(path))
        return ph__safetensors_write(path, list->count, list->tensors, metadata);
    const char *draft = ph__checkpoint_draft(&arena, path);
    ph_status status = draft != NULL ? ph__safetensors_write(draft, list->count, list->tensors, metadata)
                                     : (ph_status)PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__checkpoint_publish(path);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__rank_checkpoint_write(
    struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list, const char *const *metadata)
{
    return ranks->comm != NULL ? write_folder(ranks, path, list, metadata) : write_file(path, list, metadata);
}

/* ---- reading ---- */

struct reading {
    const struct ph__ranks *ranks;
    const char *path;
    const struct ph__tensor_list *list;
    struct ph__folder *folder; /* NULL: not opened yet */
};

static ph_status open_and_check(void *context, const struct ph__meanwhile *meanwhile)
{
    struct reading *reading = context;
    PH_TRY(ph__folder_open(reading->path, &reading->folder));
    ph__folder_set_meanwhile(reading->folder, meanwhile);
    const ph_status status =
        ph__folder_check_seals(reading->folder, reading->ranks->rank, reading->ranks->world_size);
    ph__folder_set_meanwhile(reading->folder, NULL);
    PH_TRY(status);
    return ph__folder_check_tensors(reading->folder, reading->list->count, reading->list->tensors);
}

static ph_status load(void *context, const struct ph__meanwhile *meanwhile)
{
    const struct reading *reading = context;
    ph__folder_set_meanwhile(reading->folder, meanwhile);
    return ph__folder_load(reading->folder, reading->list->count, reading->list->tensors);
}

/* PH_ERROR_CHECKPOINT when the folder has a tensor that no rank wants: it is of another model, or of another
 * optimizer's slots. All ranks find the same. wanted: zeroed, a bit a tensor. */
static ph_status find_other(const struct ph__ranks *ranks, const char *path, const struct ph__folder *folder,
    const struct ph__tensor_list *list, uint64_t *wanted)
{
    const size_t num_tensors = ph__folder_num_tensors(folder);
    for (size_t i = 0; i < list->count; i++) {
        const size_t tensor = ph__folder_find(folder, list->tensors[i].name);
        wanted[tensor / WORD_BITS] |= (uint64_t)1 << tensor % WORD_BITS;
    }
    PH_TRY(ph__comm_unite_once(ranks->comm, num_tensors / WORD_BITS + 1, wanted));
    for (size_t tensor = 0; tensor < num_tensors; tensor++)
        if ((wanted[tensor / WORD_BITS] >> tensor % WORD_BITS & 1) == 0)
            return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model has no tensor '%s'", path,
                ph__folder_tensor(folder, tensor).name);
    return PH_OK;
}

static ph_status check_no_others(const struct ph__ranks *ranks, const char *path,
    const struct ph__folder *folder, const struct ph__tensor_list *list)
{
    uint64_t *wanted = calloc(ph__folder_num_tensors(folder) / WORD_BITS + 1, sizeof *wanted);
    if (wanted == NULL)
        return ph__out_of_memory("cannot compare tensors of a checkpoint");
    const ph_status status = find_other(ranks, path, folder, list, wanted);
    free(wanted);
    return status;
}

ph_status ph__rank_checkpoint_read(
    struct ph__ranks *ranks, const char *path, const struct ph__tensor_list *list)
{
    struct reading reading = {ranks, path, list, NULL};
    ph_status status = ph__comm_work_by_all(ranks->comm, open_and_check, &reading);
    if (status == PH_OK)
        status = check_no_others(ranks, path, reading.folder, list);
    if (status == PH_OK)
        status = ph__comm_work_by_all(ranks->comm, load, &reading);
    ph__folder_close(reading.folder);
    return status;
}

struct digesting {
    const char *path;
    char *hex_out;
};

static ph_status digest_folder(void *context, const struct ph__meanwhile *meanwhile)
{
    const struct digesting *digesting = context;
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(digesting->path, &folder));
    ph__folder_set_meanwhile(folder, meanwhile);
    const ph_status status = ph__folder_digest(folder, NULL, digesting->hex_out);
    ph__folder_close(folder);
    return status;
}

ph_status ph__rank_checkpoint_digest(struct ph__ranks *ranks, const char *path, char hex_out[65])
{
    struct digesting digesting = {path, hex_out};
    memset(hex_out, 0, 65);
    PH_TRY(ph__comm_work_by_first(ranks->comm, digest_folder, &digesting));
    return ph__comm_broadcast_once(ranks->comm, "digest of the model", 0, hex_out, 65);
}
