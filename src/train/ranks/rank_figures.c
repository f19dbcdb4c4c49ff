#include "train/ranks/rank_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_fields.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "base/thread/clock.h"

/* In a larger world, summary.json has the bytes that each rank sends and receives, but not those of each
 * link. */
enum { MOST_RANKS_OF_LINKS = 64 };

#define EXACT ((UINT64_C(1) << 53) - 1) /* integers up to here are doubles */

ph_status ph__rank_figures_init(
    struct ph__rank_figures *figures, const struct ph__ranks *ranks, size_t max_flights)
{
    *figures = (struct ph__rank_figures){0};
    return ranks->comm != NULL ? ph__comm_profile_create(ranks->comm, max_flights, &figures->profile) : PH_OK;
}

void ph__rank_figures_fini(struct ph__rank_figures *figures)
{
    ph__comm_profile_destroy(figures->profile);
    *figures = (struct ph__rank_figures){0};
}

void ph__rank_figures_begin_step(struct ph__rank_figures *figures)
{
    if (figures->profile == NULL)
        return;
    ph__comm_profile_begin(figures->profile);
    figures->begun_ns = ph__clock_ns();
}

void ph__rank_figures_bound(
    struct ph__rank_figures *figures, const int64_t *requested_ids, size_t num_requested_ids)
{
    figures->num_requested_ids += num_requested_ids;
    if (figures->profile == NULL || figures->profile->max_flights == 0)
        return;
    const uint64_t sums[] = {
        figures->ids_checksum, ph__checksum(requested_ids, num_requested_ids * sizeof *requested_ids)};
    figures->ids_checksum = ph__checksum(sums, sizeof sums) & EXACT; /* it travels as a number of JSON */
}

void ph__rank_figures_end_step(struct ph__rank_figures *figures, uint64_t num_samples)
{
    if (figures->profile == NULL)
        return;
    figures->latest_ns = ph__clock_ns() - figures->begun_ns;
    figures->step_ns += figures->latest_ns;
    figures->num_steps++;
    figures->num_samples += num_samples;
    ph__comm_profile_end(figures->profile);
}

/* ---- one rank's figures ---- */

/* Figures of a rank as they travel to the first one. */
struct one_rank {
    uint64_t host, num_steps, num_samples, num_requested_ids, ids_checksum, held_bytes, peak_bytes;
    double train_seconds, step_seconds, exposed_seconds, polling_seconds, reader_wait_seconds;
};

#define ONE(member) offsetof(struct one_rank, member)
static const struct ph__json_field one_fields[] = {
    {"host", PH_JSON_COUNT, ONE(host), 0},
    {"steps", PH_JSON_COUNT, ONE(num_steps), 0},
    {"samples", PH_JSON_COUNT, ONE(num_samples), 0},
    {"requested_ids", PH_JSON_COUNT, ONE(num_requested_ids), 0},
    {"ids_checksum", PH_JSON_COUNT, ONE(ids_checksum), 0},
    {"held_bytes", PH_JSON_COUNT, ONE(held_bytes), 0},
    {"peak_bytes", PH_JSON_COUNT, ONE(peak_bytes), 0},
    {"train_seconds", PH_JSON_NUMBER, ONE(train_seconds), 0},
    {"step_seconds", PH_JSON_NUMBER, ONE(step_seconds), 0},
    {"exposed_seconds", PH_JSON_NUMBER, ONE(exposed_seconds), 0},
    {"polling_seconds", PH_JSON_NUMBER, ONE(polling_seconds), 0},
    {"reader_wait_seconds", PH_JSON_NUMBER, ONE(reader_wait_seconds), 0},
};
enum { NUM_ONE_FIELDS = sizeof one_fields / sizeof *one_fields };

/* All operations with one `what`. */
struct topic {
    const char *what; /* name in the figures' JSON */
    double num_operations, sent_bytes, exposed_seconds;
};

static struct ph__json *topic_json(const struct topic *topic)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_text(object, "what", topic->what);
    ph__json_set_integer(object, "operations", (int64_t)topic->num_operations);
    ph__json_set_integer(object, "sent_bytes", (int64_t)topic->sent_bytes);
    ph__json_set_number(object, "exposed_seconds", topic->exposed_seconds);
    return object;
}

static struct ph__json *own_json(const struct ph__rank_figures *figures, const struct ph__ranks *ranks)
{
    const struct ph__comm_profile *profile = figures->profile;
    const struct one_rank own = {.host = ph__comm_own_host(ranks->comm),
        .num_steps = figures->num_steps,
        .num_samples = figures->num_samples,
        .num_requested_ids = figures->num_requested_ids,
        .ids_checksum = figures->ids_checksum,
        .held_bytes = figures->held_bytes,
        .peak_bytes = figures->peak_bytes,
        .train_seconds = figures->train_seconds,
        .step_seconds = 1e-9 * (double)figures->step_ns,
        .exposed_seconds = 1e-9 * (double)(profile->waited_ns + profile->polled_ns),
        .polling_seconds = 1e-9 * (double)profile->polled_ns,
        .reader_wait_seconds = figures->reader_wait_seconds};
    struct ph__json *object = ph__json_object();
    struct ph__json *sent = ph__json_array(), *topics = ph__json_array();
    ph__json_set_fields(object, one_fields, NUM_ONE_FIELDS, &own);
    for (size_t rank = 0; rank < profile->world_size; rank++)
        ph__json_append_integer(sent, (int64_t)profile->sent_bytes[rank]);
    for (size_t i = 0; i < profile->num_topics; i++) {
        const struct ph__comm_topic *one = &profile->topics[i];
        const struct topic topic = {
            one->what, (double)one->num_operations, (double)one->sent_bytes, 1e-9 * (double)one->waited_ns};
        ph__json_append(topics, topic_json(&topic));
    }
    ph__json_set(object, "sent", sent);
    ph__json_set(object, "operations", topics);
    return object;
}

/* ---- all ranks' figures, on the first rank ---- */

struct gathering {
    const struct ph__ranks *ranks;
    struct ph__json **texts; /* (world_size) received from each rank */
    struct one_rank *all;    /* (world_size) */
    double *sent, *received; /* (world_size) bytes */
};

static ph_status read_one(void *context, size_t rank, const char *text, size_t size)
{
    struct gathering *gathering = context;
    const size_t world_size = gathering->ranks->world_size;
    PH_TRY(ph__json_parse(text, size, "figures of a rank", PH_ERROR_PEER, &gathering->texts[rank]));
    const struct ph__json *json = gathering->texts[rank], *sent = ph__json_get(json, "sent");
    const char *missing = ph__json_get_fields(json, one_fields, NUM_ONE_FIELDS, &gathering->all[rank]);
    if (missing != NULL || ph__json_size(sent) != world_size)
        return ph_fail(
            PH_ERROR_PEER, "the figures of rank %zu lack '%s'", rank, missing != NULL ? missing : "sent");
    for (size_t to = 0; to < world_size; to++) {
        const double bytes = ph__json_as_number(ph__json_at(sent, to), 0);
        gathering->sent[rank] += bytes;
        gathering->received[to] += bytes;
    }
    return PH_OK;
}

/* ---- figures of all ranks together ---- */

typedef double figure_of(const struct one_rank *rank);

static double step_of(const struct one_rank *rank)
{
    return rank->step_seconds;
}
static double exposed_of(const struct one_rank *rank)
{
    return rank->exposed_seconds;
}
static double computed_of(const struct one_rank *rank)
{
    return rank->step_seconds - rank->exposed_seconds;
}
static double requested_of(const struct one_rank *rank)
{
    return (double)rank->num_requested_ids;
}
static double held_of(const struct one_rank *rank)
{
    return (double)rank->held_bytes;
}

static double sum_of(const struct gathering *gathering, figure_of *figure)
{
    double sum = 0;
    for (size_t rank = 0; rank < gathering->ranks->world_size; rank++)
        sum += figure(&gathering->all[rank]);
    return sum;
}

/* Returns the greatest figure over the mean; NaN when all are 0. */
static double imbalance_of(const struct gathering *gathering, figure_of *figure)
{
    double greatest = 0;
    for (size_t rank = 0; rank < gathering->ranks->world_size; rank++)
        greatest = fmax(greatest, figure(&gathering->all[rank]));
    return greatest / (sum_of(gathering, figure) / (double)gathering->ranks->world_size);
}

static struct ph__json *imbalance_json(const struct gathering *gathering)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_number(object, "compute", imbalance_of(gathering, computed_of));
    ph__json_set_number(object, "requested_ids", imbalance_of(gathering, requested_of));
    ph__json_set_number(object, "held_bytes", imbalance_of(gathering, held_of));
    return object;
}

/* Counts the tables of each kind. */
static struct ph__json *plan_json(const struct ph__plan *plan)
{
    struct ph__json *object = ph__json_object();
    for (int kind = 0; kind < PH_SHARD_KIND_COUNT; kind++) {
        int64_t count = 0;
        for (size_t i = 0; i < plan->num_tables; i++)
            count += plan->tables[i].kind == (enum ph__shard_kind)kind;
        if (count > 0)
            ph__json_set_integer(object, ph__shard_kind_name((enum ph__shard_kind)kind), count);
    }
    return object;
}

static struct ph__json *rank_json(const struct gathering *gathering, size_t rank)
{
    const struct one_rank *one = &gathering->all[rank];
    const double steps = (double)one->num_steps;
    char checksum[PH_CHECKSUM_DIGITS + 1];
    struct ph__json *object = ph__json_object();
    ph__json_set_integer(object, "rank", (int64_t)rank);
    ph__json_set_integer(object, "host", (int64_t)one->host);
    ph__json_set_number(object, "own_samples_per_s", (double)one->num_samples / one->train_seconds);
    ph__json_set_number(object, "step_seconds", one->step_seconds / steps);
    ph__json_set_number(object, "compute_seconds", computed_of(one) / steps);
    ph__json_set_number(object, "exposed_seconds", one->exposed_seconds / steps);
    ph__json_set_number(object, "polling_seconds", one->polling_seconds / steps);
    ph__json_set_number(object, "reader_wait_seconds", one->reader_wait_seconds / steps);
    ph__json_set_number(object, "requested_ids", (double)one->num_requested_ids / steps);
    ph__checksum_text(one->ids_checksum, checksum);
    ph__json_set_text(object, "ids_checksum", one->ids_checksum != 0 ? checksum : NULL);
    ph__json_set_integer(object, "held_bytes", (int64_t)one->held_bytes);
    ph__json_set_integer(object, "peak_bytes", (int64_t)one->peak_bytes);
    ph__json_set_integer(object, "sent_bytes", (int64_t)gathering->sent[rank]);
    ph__json_set_integer(object, "received_bytes", (int64_t)gathering->received[rank]);
    return object;
}

static struct ph__json *all_ranks_json(const struct gathering *gathering)
{
    struct ph__json *array = ph__json_array();
    for (size_t rank = 0; rank < gathering->ranks->world_size; rank++)
        ph__json_append(array, rank_json(gathering, rank));
    return array;
}

/* Makes a row for each rank, of the bytes that it has sent to each. */
static struct ph__json *links_json(const struct gathering *gathering)
{
    const size_t world_size = gathering->ranks->world_size;
    struct ph__json *rows = ph__json_array();
    for (size_t from = 0; from < world_size; from++) {
        const struct ph__json *sent = ph__json_get(gathering->texts[from], "sent");
        struct ph__json *row = ph__json_array();
        for (size_t to = 0; to < world_size; to++)
            ph__json_append_integer(row, ph__json_as_integer(ph__json_at(sent, to), 0));
        ph__json_append(rows, row);
    }
    return rows;
}

/* ---- operations by topic ---- */

/* Adds the figures to the topic of the same name. Returns the number of topics. */
static size_t add_topic(struct topic *topics, size_t count, const struct ph__json *json)
{
    const char *what = ph__json_as_text(ph__json_get(json, "what"), "");
    size_t at = 0;
    while (at < count && strcmp(topics[at].what, what) != 0)
        at++;
    if (at == count)
        topics[count++] = (struct topic){.what = what};
    topics[at].num_operations += ph__json_as_number(ph__json_get(json, "operations"), 0);
    topics[at].sent_bytes += ph__json_as_number(ph__json_get(json, "sent_bytes"), 0);
    topics[at].exposed_seconds += ph__json_as_number(ph__json_get(json, "exposed_seconds"), 0);
    return count;
}

static int by_exposure(const void *left, const void *right)
{
    const struct topic *a = left, *b = right;
    if (a->exposed_seconds != b->exposed_seconds)
        return a->exposed_seconds < b->exposed_seconds ? 1 : -1;
    return strcmp(a->what, b->what);
}

/* Lists the topics of all ranks together, the longest exposed first. */
static ph_status operations_json(const struct gathering *gathering, struct ph__json *array)
{
    size_t most = 0, count = 0;
    for (size_t rank = 0; rank < gathering->ranks->world_size; rank++)
        most += ph__json_size(ph__json_get(gathering->texts[rank], "operations"));
    struct topic *topics = calloc(most + 1, sizeof *topics);
    if (topics == NULL)
        return ph__out_of_memory("the figures of ranks");
    for (size_t rank = 0; rank < gathering->ranks->world_size; rank++) {
        const struct ph__json *operations = ph__json_get(gathering->texts[rank], "operations");
        for (size_t i = 0; i < ph__json_size(operations); i++)
            count = add_topic(topics, count, ph__json_at(operations, i));
    }
    qsort(topics, count, sizeof *topics, by_exposure);
    for (size_t i = 0; i < count; i++)
        ph__json_append(array, topic_json(&topics[i]));
    free(topics);
    return PH_OK;
}

/* ---- gathering ---- */

static ph_status all_json(const struct gathering *gathering, struct ph__json *object)
{
    const struct ph__ranks *ranks = gathering->ranks;
    const double rank_steps = (double)gathering->all[0].num_steps * (double)ranks->world_size;
    const double step = sum_of(gathering, step_of), exposed = sum_of(gathering, exposed_of);
    struct ph__json *operations = ph__json_array();
    double sent = 0;
    for (size_t rank = 0; rank < ranks->world_size; rank++)
        sent += gathering->sent[rank];
    ph__json_set_text(object, "transport", ph__comm_transport(ranks->comm));
    ph__json_set_text(object, "collective", ranks->collectives.text);
    ph__json_set_integer(object, "hosts", (int64_t)ph_comm_num_hosts(ranks->comm));
    ph__json_set(object, "plan", plan_json(ranks->plan));
    ph__json_set_integer(object, "measured_steps", (int64_t)gathering->all[0].num_steps);
    ph__json_set_number(object, "step_seconds", step / rank_steps);
    ph__json_set_number(object, "exposed_seconds", exposed / rank_steps);
    ph__json_set_number(object, "exposed_share", exposed / step);
    ph__json_set_integer(object, "sent_bytes", (int64_t)sent);
    ph__json_set(object, "imbalance", imbalance_json(gathering));
    ph__json_set(object, "of_rank", all_ranks_json(gathering));
    if (ranks->world_size <= MOST_RANKS_OF_LINKS)
        ph__json_set(object, "links", links_json(gathering));
    const ph_status status = operations_json(gathering, operations);
    ph__json_set(object, "operations", operations);
    return status;
}

static ph_status gathering_init(struct gathering *gathering, const struct ph__ranks *ranks)
{
    const size_t world_size = ranks->world_size;
    *gathering = (struct gathering){.ranks = ranks,
        .texts = calloc(world_size, sizeof *gathering->texts),
        .all = calloc(world_size, sizeof *gathering->all),
        .sent = calloc(world_size, sizeof *gathering->sent),
        .received = calloc(world_size, sizeof *gathering->received)};
    return gathering->texts != NULL && gathering->all != NULL && gathering->sent != NULL &&
                   gathering->received != NULL
               ? PH_OK
               : ph__out_of_memory("the figures of %zu ranks", world_size);
}

static void gathering_fini(struct gathering *gathering)
{
    for (size_t rank = 0; gathering->texts != NULL && rank < gathering->ranks->world_size; rank++)
        if (gathering->texts[rank] != NULL)
            ph__json_destroy(gathering->texts[rank]);
    free(gathering->texts);
    free(gathering->all);
    free(gathering->sent);
    free(gathering->received);
}

static ph_status gather_text(struct gathering *gathering, const char *text, struct ph__json **json_out)
{
    const struct ph__ranks *ranks = gathering->ranks;
    PH_TRY(ph__comm_read_texts(ranks->comm, "figures of the ranks", text, strlen(text), read_one, gathering));
    if (!ph__ranks_is_first(ranks))
        return PH_OK;
    struct ph__json *object = ph__json_object();
    const ph_status status = all_json(gathering, object);
    if (status == PH_OK)
        *json_out = object;
    else
        ph__json_destroy(object);
    return status;
}

ph_status ph__rank_figures_gather(
    const struct ph__rank_figures *figures, const struct ph__ranks *ranks, struct ph__json **json_out)
{
    struct gathering gathering;
    char *text = NULL;
    *json_out = NULL;
    if (figures->profile == NULL)
        return PH_OK;
    struct ph__json *own = own_json(figures, ranks);
    ph_status status = ph__json_text(own, 0, &text);
    ph__json_destroy(own);
    PH_TRY(status);
    status = gathering_init(&gathering, ranks);
    if (status == PH_OK)
        status = gather_text(&gathering, text, json_out);
    gathering_fini(&gathering);
    free(text);
    return status;
}
