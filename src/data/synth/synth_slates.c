#include "data/synth/synth_slates.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/arena.h"
#include "base/memory/key_map.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "data/data_options.h"
#include "data/synth/synth_teacher.h"
#include "data/synth/synth_truth.h"

#define FULL_TURN 6.283185307179586
#define SECONDS_OF_HOUR 3600.
/* hints: features of a user, and as many of an item */
enum { BIAS_PAIRS = 20000, NUM_HINTS = 4, NUM_CONTEXTS = 16 };

#define KEY(member) struct ph__slates_settings, member

static const struct ph__option options[] = {
    PH_INTEGER_KEY("users", KEY(num_users), "2000", 1, 1e8, "Number of users."),
    PH_INTEGER_KEY("items", KEY(num_items), "5000", 1, 1e8, "Number of items."),
    PH_INTEGER_KEY("slate", KEY(slate), "32", 1, 1024, "Items of a request."),
    PH_NUMBER_KEY("hours", KEY(hours), "72", 1e-3, 1e5, "Hours of the stream."),
    PH_NUMBER_KEY("requests", KEY(requests), "18", 1e-3, 1e6, "Requests of a user, on average."),
    PH_NUMBER_KEY("spread", KEY(spread), "1", 0, 5, "Standard deviation of the logarithm of users' rates."),
    PH_NUMBER_KEY("session", KEY(session), "4", 1, 1000, "Requests of a session, on average."),
    PH_NUMBER_KEY("gap_minutes", KEY(gap_minutes), "3", 1e-3, 1e4,
        "Minutes between two requests of a session, on average."),
    PH_NUMBER_KEY("stay", KEY(stay), "0.7", 0, 1,
        "Mean chance of an item to be in the user's next slate as well; it rises with the user's liking."),
    PH_NUMBER_KEY("stay_hours", KEY(stay_hours), "6", 0, 1e5, "Hours after which no item stays."),
    PH_NUMBER_KEY("exponent", KEY(exponent), "1", 0, 8, "Exponent of the items' power law."),
    PH_INTEGER_KEY("latent_dim", KEY(latent_dim), "8", 1, 256, "Length of the hidden vectors."),
    PH_NUMBER_KEY("scale", KEY(scale), "2", 0, 100, "Standard deviation of the true logit."),
    PH_NUMBER_KEY("base_rate", KEY(base_rate), "0.15", 0.001, 0.999, "Share of positive labels."),
    PH_NUMBER_KEY("context_hours", KEY(context_hours), "2", 1e-3, 1e6,
        "Hours that a context lasts, on average: what was true of a pair is no longer true then."),
    PH_NUMBER_KEY("context_share", KEY(context_share), "0.5", 0, 1,
        "Share of the true logit's variance that hangs on the context."),
    PH_INTEGER_KEY("seed", KEY(seed), "1", 0, 9e15, "Seed of all that is drawn at random."),
};

const struct ph__option_table ph__slates_options = {
    .section = "slates",
    .help = "A synthetic stream of requests, each for a slate of items (phloem synth --slates).",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph__slates_settings),
};

struct request {
    double seconds;
    uint32_t user;
};

struct writing {
    const struct ph__slates_settings *settings;
    struct ph__arena arena;
    struct request *requests;
    size_t num_requests, capacity;
    double *users, *items; /* (num_users, K + 1), (num_items, 2 K + 1): the number alone first */
    uint32_t *slates;      /* (num_users, slate) of each user's last request */
    double *slate_seconds; /* (num_users) when that was; -INFINITY: never */
    size_t context;        /* at the moment, until context_end */
    double context_end;
    bool *is_shown; /* (num_items) scratch */
    struct ph__zipf zipf;
    double bias;
    struct ph__key_map pairs;
    struct ph__mass *masses; /* (rows) */
    size_t num_rows, masses_capacity;
    struct ph__rng_sequence random;
};

/* ---- the model ---- */

static size_t dim_of(const struct writing *writing)
{
    return (size_t)writing->settings->latent_dim;
}

static double liking(const struct writing *writing, size_t user, size_t item, size_t context)
{
    const size_t dim = dim_of(writing);
    const double angle = FULL_TURN * (double)context / NUM_CONTEXTS, share = writing->settings->context_share;
    const double *u = writing->users + user * (dim + 1), *v = writing->items + item * (2 * dim + 1);
    double sum = 0;
    for (size_t k = 0; k < dim; k++)
        sum += u[1 + k] * (cos(angle) * v[1 + k] + sin(angle) * v[1 + dim + k]);
    return sqrt(share / (double)dim) * sum + sqrt((1 - share) / 2) * (u[0] + v[0]);
}

static double probability(const struct writing *writing, size_t user, size_t item)
{
    return ph__synth_sigmoid(
        writing->bias + writing->settings->scale * liking(writing, user, item, writing->context));
}

static ph_status make_vectors(struct writing *writing)
{
    const struct ph__slates_settings *settings = writing->settings;
    const size_t dim = dim_of(writing), num_users = (size_t)settings->num_users,
                 num_items = (size_t)settings->num_items;
    writing->users = ph__arena_alloc_array(&writing->arena, num_users * (dim + 1), sizeof *writing->users);
    writing->items =
        ph__arena_alloc_array(&writing->arena, num_items * (2 * dim + 1), sizeof *writing->items);
    if (writing->users == NULL || writing->items == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_users * (dim + 1); i++)
        writing->users[i] = ph__rng_next_normal(&writing->random);
    for (size_t i = 0; i < num_items * (2 * dim + 1); i++)
        writing->items[i] = ph__rng_next_normal(&writing->random);
    return PH_OK;
}

static size_t draw_item(struct writing *writing)
{
    return (size_t)ph__zipf_draw(&writing->zipf, &writing->random) - 1;
}

/* Finds the bias by bisection over pairs as slates have them, but for those that stay. */
static ph_status find_bias(struct writing *writing)
{
    const struct ph__slates_settings *settings = writing->settings;
    double *logits = ph__arena_alloc_array(&writing->arena, BIAS_PAIRS, sizeof *logits);
    double low = -100, high = 100;
    if (logits == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < BIAS_PAIRS; i++) {
        const size_t user = (size_t)ph__rng_below(&writing->random, (uint64_t)settings->num_users);
        const size_t context = (size_t)ph__rng_below(&writing->random, NUM_CONTEXTS);
        logits[i] = settings->scale * liking(writing, user, draw_item(writing), context);
    }
    for (int step = 0; step < 60; step++) {
        double sum = 0;
        writing->bias = (low + high) / 2;
        for (size_t i = 0; i < BIAS_PAIRS; i++)
            sum += ph__synth_sigmoid(logits[i] + writing->bias);
        *(sum < BIAS_PAIRS * settings->base_rate ? &low : &high) = writing->bias;
    }
    return PH_OK;
}

/* ---- requests ---- */

static double draw_wait(struct writing *writing, double mean)
{
    return -mean * log(ph__rng_next_uniform(&writing->random));
}

/* Draws a user's sessions: their beginnings are a Poisson process, their lengths geometric. */
static ph_status add_user(struct writing *writing, size_t user)
{
    const struct ph__slates_settings *settings = writing->settings;
    const double end = settings->hours * SECONDS_OF_HOUR;
    const double spread = settings->spread,
                 rate = exp(spread * ph__rng_next_normal(&writing->random) - spread * spread / 2);
    const double between = end * settings->session / (settings->requests * rate);
    for (double begin = draw_wait(writing, between); begin < end; begin += draw_wait(writing, between))
        for (double at = begin; at < end; at += draw_wait(writing, settings->gap_minutes * 60)) {
            PH_TRY(ph__array_reserve((void **)&writing->requests, &writing->capacity,
                writing->num_requests + 1, sizeof *writing->requests));
            writing->requests[writing->num_requests++] = (struct request){at, (uint32_t)user};
            if (ph__rng_next_uniform(&writing->random) < 1 / settings->session)
                break;
        }
    return PH_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct request *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? -1 : 1;
    return left->user < right->user ? -1 : left->user > right->user;
}

static ph_status make_requests(struct writing *writing)
{
    for (size_t user = 0; user < (size_t)writing->settings->num_users; user++)
        PH_TRY(add_user(writing, user));
    qsort(writing->requests, writing->num_requests, sizeof *writing->requests, by_time);
    return PH_OK;
}

/* ---- slates ---- */

/* Draws contexts up to this moment. */
static void move_context(struct writing *writing, double seconds)
{
    while (writing->context_end <= seconds) {
        writing->context = (size_t)ph__rng_below(&writing->random, NUM_CONTEXTS);
        writing->context_end += draw_wait(writing, writing->settings->context_hours * SECONDS_OF_HOUR);
    }
}

/* Replaces the user's slate by that of the request. Items that stay keep their order, in front. */
static void make_slate(struct writing *writing, const struct request *request)
{
    const struct ph__slates_settings *settings = writing->settings;
    const size_t size = (size_t)settings->slate;
    uint32_t *slate = writing->slates + request->user * size;
    double *seconds = &writing->slate_seconds[request->user];
    const bool is_young = request->seconds - *seconds <= settings->stay_hours * SECONDS_OF_HOUR;
    size_t count = 0;
    for (size_t i = 0; i < size && is_young; i++) {
        const double odds = settings->stay / (1 - settings->stay + 1e-12) *
                            exp(liking(writing, request->user, slate[i], writing->context));
        if (ph__rng_next_uniform(&writing->random) < odds / (1 + odds))
            slate[count++] = slate[i];
    }
    for (size_t i = 0; i < count; i++)
        writing->is_shown[slate[i]] = true;
    while (count < size) {
        const size_t item = draw_item(writing);
        if (!writing->is_shown[item])
            slate[count++] = (uint32_t)item;
        writing->is_shown[item] = true;
    }
    for (size_t i = 0; i < size; i++)
        writing->is_shown[slate[i]] = false;
    *seconds = request->seconds;
}

/* Writes hints at a hidden vector: whether each of some pairs of its numbers are positive, as one of four. */
static ph_status write_hints(struct ph__writer *writer, const double *vector, size_t dim)
{
    for (size_t i = 0; i < NUM_HINTS; i++)
        PH_TRY(ph__writer_printf(
            writer, "\t%d", (vector[2 * i % dim] > 0) + 2 * (vector[(2 * i + 1) % dim] > 0)));
    return PH_OK;
}

static ph_status write_row(struct writing *writing, struct ph__writer *writer, size_t number,
    const struct request *request, size_t item)
{
    const size_t dim = dim_of(writing), user = request->user;
    const double truth = probability(writing, user, item);
    const bool label = ph__rng_next_uniform(&writing->random) < truth;
    PH_TRY(ph__array_reserve((void **)&writing->masses, &writing->masses_capacity, writing->num_rows + 1,
        sizeof *writing->masses));
    writing->masses[writing->num_rows] = (struct ph__mass){truth, label};
    PH_TRY(ph__key_map_add(&writing->pairs, ph__hash_bytes((const uint64_t[]){user, item}, 16), 0));
    PH_TRY(ph__writer_printf(writer, "%d\t%zu\t%.9g\t%.3f\t%zu\t%zu\t%zu\t%zu", label, writing->num_rows++,
        truth, request->seconds, number, user, item, writing->context));
    PH_TRY(write_hints(writer, writing->users + user * (dim + 1) + 1, dim));
    PH_TRY(write_hints(writer, writing->items + item * (2 * dim + 1) + 1, dim));
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_requests(struct writing *writing, struct ph__writer *writer)
{
    const size_t size = (size_t)writing->settings->slate;
    PH_TRY(ph__writer_printf(writer, "label\trow\ttruth\ttime\trequest\tuser\titem\tcontext"));
    for (int i = 1; i <= NUM_HINTS; i++)
        PH_TRY(ph__writer_printf(writer, "\tU%d", i));
    for (int i = 1; i <= NUM_HINTS; i++)
        PH_TRY(ph__writer_printf(writer, "\tI%d", i));
    PH_TRY(ph__writer_write(writer, "\n", 1));
    for (size_t number = 0; number < writing->num_requests; number++) {
        const struct request *request = &writing->requests[number];
        move_context(writing, request->seconds);
        make_slate(writing, request);
        for (size_t i = 0; i < size; i++)
            PH_TRY(write_row(writing, writer, number, request, writing->slates[request->user * size + i]));
    }
    return PH_OK;
}

/* ---- the whole ---- */

static ph_status write_schema(const char *data, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "data:\n  format: tsv\n  shuffle: false\n  encoding: hash\n  train: "));
    PH_TRY(ph__config_write_path(writer, data));
    return ph__writer_printf(writer,
        "\n  fields:\n    - {name: label, kind: label}\n    - {name: row, kind: ignore}\n"
        "    - {name: truth, kind: ignore}\n    - {name: time, kind: ignore}\n"
        "    - {name: request, kind: ignore}\n    - {name: \"*\", kind: id}\n");
}

static ph_status write_files(struct writing *writing, const char *folder)
{
    const char *data = ph__path_join(&writing->arena, folder, "train.tsv");
    const char *schema = ph__path_join(&writing->arena, folder, "synth.yaml");
    struct ph__writer *writer;
    if (data == NULL || schema == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__directory_create_empty(folder));
    PH_TRY(ph__writer_open(data, &writer));
    PH_TRY(ph__writer_end(writer, write_requests(writing, writer)));
    PH_TRY(ph__writer_open(schema, &writer));
    return ph__writer_end(writer, write_schema(data, writer));
}

static ph_status write_all(struct writing *writing, const char *folder)
{
    const struct ph__slates_settings *settings = writing->settings;
    if (settings->slate > settings->num_items)
        return ph_fail(PH_ERROR_CONFIG, "slates.slate: must be at most slates.items");
    const size_t num_users = (size_t)settings->num_users;
    writing->random = (struct ph__rng_sequence){
        .key = {.seed = (uint64_t)settings->seed, .stream = ph__hash_name("synth.slates")}};
    ph__zipf_init(&writing->zipf, settings->exponent, (uint64_t)settings->num_items);
    writing->slates =
        ph__arena_alloc_array(&writing->arena, num_users * (size_t)settings->slate, sizeof *writing->slates);
    writing->slate_seconds =
        ph__arena_alloc_array(&writing->arena, num_users, sizeof *writing->slate_seconds);
    writing->is_shown =
        ph__arena_alloc_array(&writing->arena, (size_t)settings->num_items, sizeof *writing->is_shown);
    if (writing->slates == NULL || writing->slate_seconds == NULL || writing->is_shown == NULL)
        return PH_ERROR_MEMORY;
    for (size_t user = 0; user < num_users; user++)
        writing->slate_seconds[user] = -INFINITY;
    PH_TRY(make_vectors(writing));
    PH_TRY(find_bias(writing));
    PH_TRY(make_requests(writing));
    return write_files(writing, folder);
}

ph_status ph__slates_write(
    const struct ph__slates_settings *settings, const char *folder, struct ph__slates_figures *figures_out)
{
    struct writing writing = {.settings = settings};
    struct ph_synth_truth truth;
    const ph_status status = write_all(&writing, folder);
    if (status == PH_OK) {
        ph__synth_truth(writing.masses, writing.num_rows, &truth);
        *figures_out = (struct ph__slates_figures){
            writing.num_requests, writing.num_rows, writing.pairs.count, truth.base_rate, truth.ne};
    }
    free(writing.requests);
    free(writing.masses);
    ph__key_map_fini(&writing.pairs);
    ph__arena_fini(&writing.arena);
    return status;
}
