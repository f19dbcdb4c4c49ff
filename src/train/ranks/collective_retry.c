#include "train/ranks/collective_retry.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "plan/plan_traffic.h"
#include "shard/sharding.h"

#define NUM_KINDS PH_COLLECTIVE_AUTO
#define TURNS 3

/* Replaces numbers (count) by the largest that any rank has. */
static ph_status take_largest(struct ph_comm *comm, size_t count, double *numbers)
{
    const size_t world_size = ph_comm_world_size(comm);
    double *all = calloc(world_size * count, sizeof *all);
    if (all == NULL)
        return ph__out_of_memory("times of %zu ranks", world_size);
    const ph_status status =
        ph__comm_gather_once(comm, "times of sums", numbers, count * sizeof *numbers, all);
    for (size_t i = 0; i < world_size * count && status == PH_OK; i++)
        numbers[i % count] = fmax(numbers[i % count], all[i]);
    free(all);
    return status;
}

/* ---- trials ---- */

/* A sum of zeros, as large as the sum that took long. */
struct trial {
    struct ph_comm *comm;
    enum ph_wire_format wire;
    uint64_t bytes;
    size_t rows, columns;
    ph_real *data;
    double ns[NUM_KINDS]; /* of each collective on the slowest rank; infinity: not possible */
};

static ph_status sum_once(const struct trial *trial)
{
    const struct ph__comm_call call = {PH_CHANNEL_TRIALS, "trials of collectives"};
    uint64_t ticket;
    PH_TRY(ph__comm_all_reduce_start(trial->comm, &call, ph__comm_world(trial->comm), trial->wire,
        trial->rows, trial->columns, trial->data, NULL, &ticket));
    return ph__comm_wait(trial->comm, ticket);
}

/* Takes the shortest of several turns of each collective. */
static ph_status time_kinds(struct trial *trial, const struct ph__collective_settings *settings)
{
    for (enum ph_collective kind = 0; kind < NUM_KINDS; kind++) {
        const struct ph__collective_choice choice = {0, kind};
        trial->ns[kind] = (double)INFINITY;
        if (kind == PH_COLLECTIVE_HIERARCHICAL && !settings->has_groups)
            continue;
        PH_TRY(ph__comm_set_collectives(trial->comm, &choice, 1, NULL));
        for (size_t turn = 0; turn < TURNS; turn++) {
            PH_TRY(ph__comm_barrier(trial->comm));
            const uint64_t since_ns = ph__clock_ns();
            PH_TRY(sum_once(trial));
            trial->ns[kind] = fmin(trial->ns[kind], (double)(ph__clock_ns() - since_ns));
        }
    }
    return take_largest(trial->comm, NUM_KINDS, trial->ns);
}

/* Chooses the fastest for sums of at least half as many bytes. */
static enum ph_collective choose(const struct trial *trial, struct ph__collective_settings *settings)
{
    struct ph__collective_choice choice = {trial->bytes / 2, PH_COLLECTIVE_EXCHANGE};
    for (enum ph_collective kind = 0; kind < NUM_KINDS; kind++)
        if (trial->ns[kind] < trial->ns[choice.kind])
            choice.kind = kind;
    while (settings->num_choices > 1 &&
           settings->choices[settings->num_choices - 1].from_bytes >= choice.from_bytes)
        settings->num_choices--;
    settings->choices[settings->num_choices++] = choice;
    const size_t length = strlen(settings->text);
    snprintf(settings->text + length, sizeof settings->text - length, "; later, from %" PRIu64 " bytes %s",
        choice.from_bytes, ph__collective_name(choice.kind));
    return choice.kind;
}

static void describe(const struct trial *trial, double ns, double expected_ns, enum ph_collective chosen,
    char note_out[PH_COLLECTIVE_NOTE_BYTES])
{
    char size[PH_NUMBER_TEXT_BYTES], tried[128] = "";
    size_t length = 0;
    for (enum ph_collective kind = 0; kind < NUM_KINDS; kind++)
        if (isfinite(trial->ns[kind]))
            length += (size_t)snprintf(tried + length, sizeof tried - length, "%s%s takes %.3f ms",
                kind > 0 ? ", " : "", ph__collective_name(kind), trial->ns[kind] / 1e6);
    snprintf(note_out, PH_COLLECTIVE_NOTE_BYTES,
        "sums of %s took %.3f ms, expected were %.3f ms: %s; %s goes on", ph__bytes_text(trial->bytes, size),
        ns / 1e6, expected_ns / 1e6, tried, ph__collective_name(chosen));
}

static ph_status try_kinds(struct trial *trial, struct ph__collective_settings *settings)
{
    trial->columns = trial->wire == PH_WIRE_INT8 ? PH_DENSE_COLUMNS : 1;
    trial->rows = (size_t)trial->bytes / ph__wire_bytes(trial->wire, 1, trial->columns);
    trial->data = calloc(trial->rows * trial->columns, sizeof *trial->data);
    if (trial->data == NULL)
        return ph__out_of_memory("a sum of %" PRIu64 " bytes", trial->bytes);
    ph__comm_set_counting(trial->comm, false);
    PH_TRY(time_kinds(trial, settings)); /* a failed sum keeps its memory: messages may still arrive */
    ph__comm_set_counting(trial->comm, true);
    free(trial->data);
    return PH_OK;
}

/* ---- steps ---- */

/* Interpolates the predictions, which are for powers of two from 1 KiB on. */
static double predict(const struct ph__collective_settings *settings, double bytes)
{
    const double *ns = settings->predicted_ns;
    size_t i = 0;
    while (i + 2 < PH_COLLECTIVE_SIZES && ldexp(1024, (int)i + 1) <= bytes)
        i++;
    return fmax(0, ns[i] + (bytes / ldexp(1024, (int)i) - 1) * (ns[i + 1] - ns[i]));
}

/* Sets *is_slow_out where the median of the steps is too far above what was expected, on all ranks alike. */
static ph_status compare(struct ph__collective_retry *retry, struct ph_comm *comm,
    const struct ph__collective_settings *settings, double *ns_out, bool *is_slow_out)
{
    PH_TRY(ph__median(retry->ns, PH_COLLECTIVE_RETRY_STEPS, ns_out));
    PH_TRY(take_largest(comm, 1, ns_out));
    if (!retry->has_looked)
        retry->expected_ns = predict(settings, (double)retry->bytes);
    retry->has_looked = true;
    if (retry->expected_ns == 0)
        retry->expected_ns = *ns_out;
    *is_slow_out = *ns_out > PH_COLLECTIVE_RETRY_RATIO * retry->expected_ns;
    return PH_OK;
}

static ph_status look(struct ph__collective_retry *retry, struct ph_comm *comm, enum ph_wire_format wire,
    struct ph__collective_settings *settings, char note_out[PH_COLLECTIVE_NOTE_BYTES])
{
    struct trial trial = {.comm = comm, .wire = wire, .bytes = retry->bytes};
    double ns;
    bool is_slow;
    PH_TRY(compare(retry, comm, settings, &ns, &is_slow));
    if (!is_slow)
        return PH_OK;
    PH_TRY(try_kinds(&trial, settings));
    describe(&trial, ns, retry->expected_ns, choose(&trial, settings), note_out);
    retry->expected_ns = 0;
    return ph__comm_set_collectives(comm, settings->choices, settings->num_choices, NULL);
}

ph_status ph__collective_retry_step(struct ph__collective_retry *retry, struct ph__comm_profile *profile,
    enum ph_wire_format wire, struct ph__collective_settings *settings,
    char note_out[PH_COLLECTIVE_NOTE_BYTES])
{
    struct ph_comm *comm = profile->comm;
    note_out[0] = '\0';
    if (profile->sum_bytes == 0 || ph__comm_is_simulated(comm))
        return PH_OK;
    retry->bytes = profile->sum_bytes;
    retry->ns[retry->num_steps++] = (double)profile->sum_ns;
    profile->sum_bytes = 0;
    if (retry->num_steps < PH_COLLECTIVE_RETRY_STEPS)
        return PH_OK;
    retry->num_steps = 0;
    return look(retry, comm, wire, settings, note_out);
}
