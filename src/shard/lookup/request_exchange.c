#include "shard/lookup/request_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"

/* Words before the lengths sent to a rank: numbers about this rank's samples, the same for all ranks. */
enum { HEADER_SAMPLES, HEADER_IDS, HEADER_IDS_HIGH, HEADER_WORDS };

/* An array that grows. */
struct buffer {
    void *items;
    size_t capacity; /* in items of the size that reserve is given */
};

struct ph__request_buffers {
    struct buffer sent_lengths, sent_ids, sent_weights;  /* rank by rank, stream by stream */
    struct buffer lengths, ids, weights;                 /* as received */
    struct buffer sent_counts, counts;                   /* ids to, and from, each rank */
    struct buffer sent_streams;                          /* ids to each stream of each rank */
    struct buffer messages;                              /* to all ranks, then from all */
    struct buffer offsets, ordered_ids, ordered_weights; /* in the order of lookups */
};

ph_status ph__request_buffers_create(struct ph__request_buffers **buffers_out)
{
    *buffers_out = calloc(1, sizeof **buffers_out);
    return *buffers_out != NULL ? PH_OK : ph__out_of_memory("requests");
}

void ph__request_buffers_destroy(struct ph__request_buffers *buffers)
{
    if (buffers == NULL)
        return;
    struct buffer *all[] = {&buffers->sent_lengths, &buffers->sent_ids, &buffers->sent_weights,
        &buffers->lengths, &buffers->ids, &buffers->weights, &buffers->sent_counts, &buffers->counts,
        &buffers->sent_streams, &buffers->messages, &buffers->offsets, &buffers->ordered_ids,
        &buffers->ordered_weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->items);
    free(buffers);
}

static ph_status reserve(struct buffer *buffer, size_t count, size_t size)
{
    return ph__array_reserve(&buffer->items, &buffer->capacity, count + 1, size);
}

/* ---- own requests ---- */

/* Places for the next ids. */
struct asked {
    uint32_t *lengths, *ids;
    ph_real *weights; /* NULL: no weights are sent */
    size_t *streams;  /* number of ids of each stream */
    size_t num_ids;
};

static void put_header(const struct ph_batch *batch, struct asked *asked)
{
    asked->lengths[HEADER_SAMPLES] = (uint32_t)batch->num_samples;
    asked->lengths[HEADER_IDS] = (uint32_t)batch->num_ids;
    asked->lengths[HEADER_IDS_HIGH] = (uint32_t)((uint64_t)batch->num_ids >> 32);
    asked->lengths += HEADER_WORDS;
}

/* Fails, naming the feature's first id that is outside its table. */
static ph_status bad_id(
    const struct ph_batch *batch, const struct ph__stream *stream, const uint32_t *offsets)
{
    size_t sample = 0, p = offsets[0];
    while ((uint64_t)batch->ids[p] < stream->whole_rows)
        p++;
    while (offsets[sample + 1] <= p)
        sample++;
    return ph_fail(PH_ERROR_DATA, "feature '%s', sample %llu: id %lld is outside its table of %llu rows",
        stream->name, (unsigned long long)(batch->first_sample + sample), (long long)batch->ids[p],
        (unsigned long long)stream->whole_rows);
}

/* Asks for all ids of a feature. Returns true when an id is outside its table. */
static bool ask_all(const struct ph_batch *batch, const struct ph__stream *stream, const uint32_t *offsets,
    struct asked *asked)
{
    const size_t first = offsets[0], count = offsets[batch->num_samples] - first;
    const int64_t *ids = batch->ids + first;
    uint32_t *target = asked->ids + asked->num_ids;
    bool is_bad = false;
    for (size_t i = 0; i < count; i++) {
        is_bad |= (uint64_t)ids[i] >= stream->whole_rows;
        target[i] = (uint32_t)ids[i];
    }
    for (size_t i = 0; asked->weights != NULL && i < count; i++)
        asked->weights[asked->num_ids + i] = batch->id_weights != NULL ? batch->id_weights[first + i] : 1;
    for (size_t b = 0; b < batch->num_samples; b++)
        asked->lengths[b] = offsets[b + 1] - offsets[b];
    asked->num_ids += count;
    return is_bad;
}

/* Asks for a feature's ids that lie in some rows. Every id is written; the next one overwrites an id that
 * lies elsewhere. Returns true when an id is outside its table. */
static bool ask_some(const struct ph_batch *batch, const struct ph__stream *stream, const uint32_t *offsets,
    struct asked *asked)
{
    bool is_bad = false;
    size_t next = asked->num_ids;
    for (size_t b = 0; b < batch->num_samples; b++) {
        const size_t before = next;
        for (size_t p = offsets[b]; p < offsets[b + 1]; p++) {
            const uint64_t id = (uint64_t)batch->ids[p], from = id - stream->first_row;
            is_bad |= id >= stream->whole_rows;
            asked->ids[next] = (uint32_t)from;
            if (asked->weights != NULL)
                asked->weights[next] = batch->id_weights != NULL ? batch->id_weights[p] : 1;
            next += from < stream->num_rows;
        }
        asked->lengths[b] = (uint32_t)(next - before);
    }
    asked->num_ids = next;
    return is_bad;
}

static ph_status ask_stream(
    const struct ph_batch *batch, const struct ph__stream *stream, struct asked *asked)
{
    const uint32_t *offsets = batch->offsets + stream->feature * batch->num_samples;
    const size_t begin = asked->num_ids;
    const bool is_whole = stream->num_rows == stream->whole_rows;
    if ((is_whole ? ask_all : ask_some)(batch, stream, offsets, asked))
        return bad_id(batch, stream, offsets);
    asked->lengths += batch->num_samples;
    *asked->streams++ = asked->num_ids - begin;
    return PH_OK;
}

/* Bounds the ids that are sent: all of a feature's ids for each of its streams. */
static size_t most_ids(const struct ph__sharding *sharding, const struct ph_batch *batch)
{
    size_t count = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        for (size_t s = 0; s < sharding->streams[rank].count; s++) {
            const uint32_t *offsets =
                batch->offsets + sharding->streams[rank].items[s].feature * batch->num_samples;
            count += offsets[batch->num_samples] - offsets[0];
        }
    return count;
}

static size_t num_streams_of_all(const struct ph__sharding *sharding)
{
    size_t count = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        count += sharding->streams[rank].count;
    return count;
}

static ph_status ask(struct ph__sharding *sharding, const struct ph_batch *batch)
{
    struct ph__request_buffers *buffers = sharding->requests;
    const size_t most = most_ids(sharding, batch);
    const size_t num_streams = num_streams_of_all(sharding), num_lengths = num_streams * batch->num_samples;
    PH_TRY(
        reserve(&buffers->sent_lengths, num_lengths + HEADER_WORDS * sharding->world_size, sizeof(uint32_t)));
    PH_TRY(reserve(&buffers->sent_ids, most, sizeof(uint32_t)));
    PH_TRY(reserve(&buffers->sent_counts, sharding->world_size, sizeof(size_t)));
    PH_TRY(reserve(&buffers->sent_streams, num_streams, sizeof(size_t)));
    if (sharding->has_weights)
        PH_TRY(reserve(&buffers->sent_weights, most, sizeof(ph_real)));
    struct asked asked = {.lengths = buffers->sent_lengths.items,
        .ids = buffers->sent_ids.items,
        .weights = sharding->has_weights ? buffers->sent_weights.items : NULL,
        .streams = buffers->sent_streams.items};
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        const size_t before = asked.num_ids;
        put_header(batch, &asked);
        for (size_t s = 0; s < sharding->streams[rank].count; s++)
            PH_TRY(ask_stream(batch, &sharding->streams[rank].items[s], &asked));
        ((size_t *)buffers->sent_counts.items)[rank] = asked.num_ids - before;
    }
    return PH_OK;
}

/* ---- exchanges ---- */

/* Sends each rank its run of one array, and receives the runs of the others into another; counts are in
 * items. */
static ph_status exchange(struct ph__sharding *sharding, const struct ph__comm_call *call, size_t size,
    struct buffer *sent, const size_t *sent_counts, struct buffer *received, const size_t *counts)
{
    const size_t world_size = sharding->world_size;
    char *from = sent->items, *to = received->items;
    PH_TRY(reserve(&sharding->requests->messages, 2 * world_size, sizeof(struct ph__message)));
    struct ph__message *messages = sharding->requests->messages.items;
    for (size_t rank = 0; rank < world_size; rank++) {
        messages[rank] = (struct ph__message){rank, from, sent_counts[rank] * size};
        messages[world_size + rank] = (struct ph__message){rank, to, counts[rank] * size};
        from += sent_counts[rank] * size;
        to += counts[rank] * size;
    }
    uint64_t ticket;
    const struct ph__exchange list = {messages, messages + world_size, world_size, world_size};
    PH_TRY(ph__comm_exchange_start(sharding->comm, call, &list, &ticket));
    return ph__comm_wait(sharding->comm, ticket);
}

static ph_status exchange_lengths(struct ph__sharding *sharding, const struct ph_batch *batch)
{
    static const struct ph__comm_call call = {PH_CHANNEL_LENGTHS, "lengths of bags"};
    struct ph__request_buffers *buffers = sharding->requests;
    const size_t own_streams = sharding->streams[sharding->rank].count;
    PH_TRY(reserve(&buffers->counts, 2 * sharding->world_size, sizeof(size_t)));
    const size_t num_lengths = own_streams * sharding->bounds[sharding->world_size];
    PH_TRY(reserve(&buffers->lengths, num_lengths + HEADER_WORDS * sharding->world_size, sizeof(uint32_t)));
    size_t *counts = buffers->counts.items, *sent_counts = counts + sharding->world_size;
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        counts[rank] = HEADER_WORDS + own_streams * ph__sharding_samples(sharding, rank);
        sent_counts[rank] = HEADER_WORDS + sharding->streams[rank].count * batch->num_samples;
    }
    return exchange(
        sharding, &call, sizeof(uint32_t), &buffers->sent_lengths, sent_counts, &buffers->lengths, counts);
}

/* Checks that a rank's batch has the expected samples. Ranks whose batches do not fit fail here or in the
 * exchange, whose message sizes then differ: wrong lengths are never read. */
static ph_status check_header(const struct ph__sharding *sharding, size_t rank, const uint32_t *header)
{
    const size_t expected = ph__sharding_samples(sharding, rank);
    if (header[HEADER_SAMPLES] == expected)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "rank %zu has %u samples of the batch, but rank %zu expects %zu: give all ranks the same data", rank,
        (unsigned)header[HEADER_SAMPLES], sharding->rank, expected);
}

/* Counts the ids received from each rank, by the lengths received, and sums up all ranks' ids. */
static ph_status count_ids(struct ph__sharding *sharding, size_t *num_ids_out, size_t *num_global_ids_out)
{
    struct ph__request_buffers *buffers = sharding->requests;
    const uint32_t *words = buffers->lengths.items;
    size_t *counts = buffers->counts.items, total = 0, global = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        const size_t num_bags =
            sharding->streams[sharding->rank].count * ph__sharding_samples(sharding, rank);
        PH_TRY(check_header(sharding, rank, words));
        global += (size_t)words[HEADER_IDS] | (size_t)words[HEADER_IDS_HIGH] << 32;
        words += HEADER_WORDS;
        counts[rank] = 0;
        for (size_t i = 0; i < num_bags; i++)
            counts[rank] += *words++;
        total += counts[rank];
    }
    *num_ids_out = total;
    *num_global_ids_out = global;
    return total <= UINT32_MAX
               ? PH_OK
               : ph_fail(PH_ERROR_DATA,
                     "the batch asks rank %zu for %zu ids, more than 2^32 - 1: use a smaller batch",
                     sharding->rank, total);
}

static ph_status exchange_ids(struct ph__sharding *sharding, size_t num_ids)
{
    static const struct ph__comm_call ids_call = {PH_CHANNEL_IDS, "ids"},
                                      weights_call = {PH_CHANNEL_ID_WEIGHTS, "weights of ids"};
    struct ph__request_buffers *buffers = sharding->requests;
    const size_t *sent_counts = buffers->sent_counts.items, *counts = buffers->counts.items;
    PH_TRY(reserve(&buffers->ids, num_ids, sizeof(uint32_t)));
    PH_TRY(exchange(
        sharding, &ids_call, sizeof(uint32_t), &buffers->sent_ids, sent_counts, &buffers->ids, counts));
    if (!sharding->has_weights)
        return PH_OK;
    PH_TRY(reserve(&buffers->weights, num_ids, sizeof(ph_real)));
    return exchange(sharding, &weights_call, sizeof(ph_real), &buffers->sent_weights, sent_counts,
        &buffers->weights, counts);
}

/* ---- order ---- */

/* Reorders lengths from (rank, stream, sample) to (stream, rank, sample), and turns them into offsets.
 * order_ids then moves the ids of a rank and stream as one run. */
static void order_lengths(struct ph__sharding *sharding)
{
    const size_t num_streams = sharding->streams[sharding->rank].count;
    const size_t num_samples = sharding->bounds[sharding->world_size];
    const uint32_t *lengths = sharding->requests->lengths.items;
    uint32_t *offsets = sharding->requests->offsets.items, sum = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        lengths += HEADER_WORDS;
        for (size_t s = 0; s < num_streams; s++) {
            uint32_t *target = offsets + s * num_samples + sharding->bounds[rank];
            const size_t count = ph__sharding_samples(sharding, rank);
            memcpy(target, lengths, count * sizeof *lengths);
            lengths += count;
        }
    }
    for (size_t i = 0; i < num_streams * num_samples; i++) {
        const uint32_t length = offsets[i];
        offsets[i] = sum;
        sum += length;
    }
    offsets[num_streams * num_samples] = sum;
}

static void order_ids(struct ph__sharding *sharding)
{
    struct ph__request_buffers *buffers = sharding->requests;
    const size_t num_samples = sharding->bounds[sharding->world_size];
    const uint32_t *offsets = buffers->offsets.items, *ids = buffers->ids.items;
    const ph_real *weights = buffers->weights.items;
    int64_t *ordered = buffers->ordered_ids.items;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        for (size_t s = 0; s < sharding->streams[sharding->rank].count; s++) {
            const uint32_t *bags = offsets + s * num_samples;
            const size_t first = bags[sharding->bounds[rank]];
            const size_t count = bags[sharding->bounds[rank + 1]] - first;
            for (size_t i = 0; i < count; i++)
                ordered[first + i] = ids[i];
            ids += count;
            if (!sharding->has_weights)
                continue;
            memcpy((ph_real *)buffers->ordered_weights.items + first, weights, count * sizeof *weights);
            weights += count;
        }
}

/* A rank's own part of the work for a batch's requests. */
struct asking {
    struct ph__sharding *sharding;
    const struct ph_batch *batch;
};

static ph_status ask_now(void *context)
{
    const struct asking *asking = context;
    return ask(asking->sharding, asking->batch);
}

static ph_status order_now(void *context)
{
    const struct asking *asking = context;
    order_lengths(asking->sharding);
    order_ids(asking->sharding);
    return PH_OK;
}

ph_status ph__requests_exchange(
    struct ph__sharding *sharding, const struct ph_batch *batch, struct ph__requests *requests_out)
{
    struct ph__request_buffers *buffers = sharding->requests;
    struct asking asking = {sharding, batch};
    const size_t num_samples = batch->num_global_samples > 0 ? batch->num_global_samples : batch->num_samples;
    const size_t num_streams = sharding->streams[sharding->rank].count;
    size_t num_ids, num_global_ids;
    for (size_t rank = 0; rank <= sharding->world_size; rank++)
        sharding->bounds[rank] = ph__sharding_bound(sharding, num_samples, rank);
    PH_TRY(ph__timed_work_run(
        &(struct ph__timed_work){"ask for ids", (double)batch->num_ids, ask_now, &asking}));
    PH_TRY(exchange_lengths(sharding, batch));
    PH_TRY(count_ids(sharding, &num_ids, &num_global_ids));
    PH_TRY(exchange_ids(sharding, num_ids));
    PH_TRY(reserve(&buffers->offsets, num_streams * num_samples + 1, sizeof(uint32_t)));
    PH_TRY(reserve(&buffers->ordered_ids, num_ids, sizeof(int64_t)));
    if (sharding->has_weights)
        PH_TRY(reserve(&buffers->ordered_weights, num_ids, sizeof(ph_real)));
    PH_TRY(
        ph__timed_work_run(&(struct ph__timed_work){"order asked ids", (double)num_ids, order_now, &asking}));
    *requests_out = (struct ph__requests){.num_samples = num_samples,
        .num_global_ids = num_global_ids,
        .num_streams = num_streams,
        .num_ids = num_ids,
        .offsets = buffers->offsets.items,
        .ids = buffers->ordered_ids.items,
        .weights = sharding->has_weights ? buffers->ordered_weights.items : NULL};
    return PH_OK;
}

size_t ph__requests_sent(const struct ph__sharding *sharding, size_t rank, size_t stream)
{
    const size_t *counts = sharding->requests->sent_streams.items;
    for (size_t i = 0; i < rank; i++)
        counts += sharding->streams[i].count;
    return counts[stream];
}

size_t ph__requests_begin(const struct ph__sharding *sharding, size_t stream, size_t rank)
{
    const uint32_t *offsets = sharding->requests->offsets.items;
    offsets += stream * sharding->bounds[sharding->world_size];
    return offsets[sharding->bounds[rank]] - offsets[0];
}
