#include "train/measure/gathered_scores.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

enum { LOGITS, LABELS, MASK, NUM_ARRAYS };

static size_t samples_of(const struct ph_batch *batch, const struct ph_group *world, size_t rank)
{
    return ph__part_start(batch->num_global_samples, rank + 1, world->size) -
           ph__part_start(batch->num_global_samples, rank, world->size);
}

static ph_status reserve(
    struct ph__gathered_scores *gathered, size_t own, size_t all, size_t num_samples, size_t world)
{
    PH_TRY(ph__array_reserve(
        (void **)&gathered->sent, &gathered->sent_capacity, own * NUM_ARRAYS + 1, sizeof *gathered->sent));
    PH_TRY(ph__array_reserve((void **)&gathered->received, &gathered->received_capacity, all * NUM_ARRAYS + 1,
        sizeof *gathered->received));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->logits, &gathered->logits_capacity, all + 1, sizeof *gathered->logits));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->labels, &gathered->labels_capacity, all + 1, sizeof *gathered->labels));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->mask, &gathered->mask_capacity, all + 1, sizeof *gathered->mask));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->bytes, &gathered->bytes_capacity, world, sizeof *gathered->bytes));
    return ph__array_reserve(
        (void **)&gathered->groups, &gathered->groups_capacity, num_samples + 1, sizeof *gathered->groups);
}

static ph_status gather(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch *batch, const void *data, size_t sample_bytes, void *all)
{
    const struct ph_group *world = ph__comm_world(comm);
    for (size_t rank = 0; rank < world->size; rank++)
        gathered->bytes[rank] = samples_of(batch, world, rank) * sample_bytes;
    return (gathered->are_for_first ? ph__comm_collect_once : ph__comm_gather_parts_once)(
        comm, "scores of an evaluation", data, gathered->bytes, all);
}

/* How many samples this rank is to have. */
static size_t num_held(
    const struct ph__gathered_scores *gathered, const struct ph_batch *batch, const struct ph_group *world)
{
    return gathered->are_for_first && world->own > 0 ? 0 : batch->num_global_samples;
}

/* A rank's three arrays, one behind the other. */
static void fill_sent(
    struct ph__gathered_scores *gathered, const struct ph_batch *batch, const ph_real *logits)
{
    const size_t count = batch->num_samples * batch->num_tasks;
    ph_real *mask = gathered->sent + MASK * count;
    if (count == 0)
        return;
    memcpy(gathered->sent + LOGITS * count, logits, count * sizeof *logits);
    memcpy(gathered->sent + LABELS * count, batch->labels, count * sizeof *logits);
    for (size_t i = 0; i < count; i++)
        mask[i] = batch->label_mask != NULL ? batch->label_mask[i] : 1;
}

static void take_apart(
    struct ph__gathered_scores *gathered, const struct ph_batch *batch, const struct ph_group *world)
{
    const ph_real *from = gathered->received;
    size_t at = 0;
    for (size_t rank = 0; rank < world->size; rank++) {
        const size_t count = samples_of(batch, world, rank) * batch->num_tasks;
        memcpy(gathered->logits + at, from + LOGITS * count, count * sizeof *from);
        memcpy(gathered->labels + at, from + LABELS * count, count * sizeof *from);
        memcpy(gathered->mask + at, from + MASK * count, count * sizeof *from);
        from += NUM_ARRAYS * count;
        at += count;
    }
}

ph_status ph__gathered_scores_gather(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch *batch, const ph_real *logits)
{
    const struct ph_group *world = ph__comm_world(comm);
    const size_t num_samples = num_held(gathered, batch, world), num_tasks = batch->num_tasks;
    PH_TRY(
        reserve(gathered, batch->num_samples * num_tasks, num_samples * num_tasks, num_samples, world->size));
    fill_sent(gathered, batch, logits);
    PH_TRY(gather(
        gathered, comm, batch, gathered->sent, NUM_ARRAYS * num_tasks * sizeof(ph_real), gathered->received));
    if (batch->groups != NULL)
        PH_TRY(gather(gathered, comm, batch, batch->groups, sizeof(int64_t), gathered->groups));
    if (num_samples > 0)
        take_apart(gathered, batch, world);
    gathered->batch = (struct ph_batch){.num_samples = num_samples,
        .num_tasks = num_tasks,
        .labels = gathered->labels,
        .label_mask = gathered->mask,
        .groups = batch->groups != NULL ? gathered->groups : NULL};
    return PH_OK;
}

ph_status ph__gathered_scores_replace(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits)
{
    if (comm == NULL)
        return PH_OK;
    PH_TRY(ph__gathered_scores_gather(gathered, comm, *batch, *logits));
    *batch = &gathered->batch;
    *logits = gathered->logits;
    return PH_OK;
}

void ph__gathered_scores_fini(struct ph__gathered_scores *gathered)
{
    void *const all[] = {gathered->logits, gathered->sent, gathered->received, gathered->groups,
        gathered->bytes, gathered->labels, gathered->mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    *gathered = (struct ph__gathered_scores){0};
}
