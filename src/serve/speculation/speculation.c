#include "serve/speculation/speculation.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/option/option.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/thread/clock.h"

enum {
    AT_ONCE = 16,         /* pairs of a user that are computed together: the worker stops behind them */
    MOST_PAIRS = 8192,    /* that are chosen together */
    SAMPLED_USERS = 1024, /* among whom similar ones are sought */
};
#define TICKS_OF_LIFE 8 /* as many times in a row's life means of similar users are made */
#define LEAST_PRICE 1e-3
#define MOST_PRICE 1e3
#define SAVED_SHARE .25 /* of a row's life for which an unused budget is kept */
#define HALF_LIVES 4    /* in which the predictor's rates forget half */

/* ---- settings ---- */

#define KEY(member) struct ph_speculation_settings, member

static const struct ph__option options[] = {
    PH_PATH_KEY("teacher", KEY(teacher), "",
        "Run folder of the foundation model, with the encoder that phloem encode fits. Empty: no "
        "speculation."),
    PH_TEXT_KEY("user", KEY(user), "user", "Column of a request that names the user."),
    PH_TEXT_KEY("item", KEY(item), "item", "Column of a request that names the item."),
    PH_NUMBER_KEY(
        "seconds", KEY(seconds), "21600", 1, 1e7, "Seconds for which what was computed of a pair is used."),
    PH_NUMBER_KEY("rows_per_second", KEY(rows_per_second), "100", 0, 1e9,
        "Pairs that the foundation model may compute a second."),
    PH_INTEGER_KEY("cache_bytes", KEY(cache_bytes), "268435456", 4096, 9e15, "Bytes of the cache of pairs."),
    PH_INTEGER_KEY("max_users", KEY(max_users), "100000", 1, 1e9,
        "Users whose last slate is remembered, with the foundation model's columns."),
    PH_INTEGER_KEY("num_neighbours", KEY(num_neighbours), "8", 0, 64,
        "Similar users, by the foundation model's embedding of the user column, whose mean stands in for a "
        "user of whom no pair is known. 0: none do."),
    PH_PATH_KEY("feature_log", KEY(feature_log), "",
        "File to which what was served of pairs is appended. Empty: none."),
};

#define TABLE(section_name, help_text)                                      \
    {                                                                       \
        .section = (section_name), .help = (help_text), .options = options, \
        .num_options = sizeof options / sizeof *options,                    \
        .settings_size = sizeof(struct ph_speculation_settings),            \
    }

const struct ph__option_table ph__speculation_options = TABLE("serve.model.speculation",
    "Keys of a foundation model that computes ahead what a served model reads of pairs.");
const struct ph__option_table ph__speculation_file_options =
    TABLE("speculation", "Keys of a foundation model that computes ahead what the model reads of pairs.");

/* ---- state ---- */

/* Kept by the predictor beside each user. */
struct profile {
    uint32_t mean_birth; /* mean of those of the pairs; 0: there is no mean */
    bool has_embedding;
    float numbers[]; /* mean (dim), embedding of length 1 (embedding_dim) */
};

struct ph__speculation {
    struct ph_speculation_settings settings;
    struct ph__arena arena; /* of texts and columns */
    struct ph__name_index columns;
    size_t dim;
    struct ph__pair_cache cache;
    _Atomic uint64_t teacher_rows, teacher_ns, reloads, foreign_rows;
    pthread_t owner;
    bool has_owner;
    /* the worker's */
    struct ph__pair_teacher teacher;
    struct ph__pair_predictor *predictor;
    size_t embedding_dim;                                /* 0: users have none */
    double allowance, price, last_work, next_neighbours; /* price: asks that a row must be worth */
    struct ph__pair *pairs;                              /* (MOST_PAIRS) */
    float *numbers;                                      /* (AT_ONCE, dim) */
};

const struct ph_speculation_settings *ph__speculation_settings(const struct ph__speculation *speculation)
{
    return &speculation->settings;
}

struct ph__pair_cache *ph__speculation_cache(struct ph__speculation *speculation)
{
    return &speculation->cache;
}

const struct ph__name_index *ph__speculation_columns(const struct ph__speculation *speculation)
{
    return &speculation->columns;
}

void ph__speculation_figures(
    const struct ph__speculation *speculation, struct ph__speculation_figures *figures_out)
{
    const struct ph__row_cache_counts counts = ph__row_cache_counts(speculation->cache.rows);
    *figures_out = (struct ph__speculation_figures){
        .stale = counts.num_stale,
        .teacher_rows = atomic_load(&speculation->teacher_rows),
        .teacher_ns = atomic_load(&speculation->teacher_ns),
        .num_rows = counts.num_rows,
        .capacity = counts.capacity,
        .written = counts.num_written,
        .replaced = counts.num_replaced,
        .never_read = counts.num_never_read,
        .reloads = atomic_load(&speculation->reloads),
        .foreign_rows = atomic_load(&speculation->foreign_rows),
    };
    for (size_t rung = 0; rung < PH_NUM_RUNGS; rung++)
        figures_out->rungs[rung] = atomic_load(&speculation->cache.found[rung]);
}

/* ---- what was asked ---- */

static struct profile *profile_of(const struct ph__speculation *speculation, size_t index)
{
    return ph__pair_predictor_user(speculation->predictor, index).profile;
}

/* Keeps the teacher's embedding of a user, of length 1, where it has one. */
static ph_status keep_embedding(
    struct ph__speculation *speculation, struct profile *profile, const struct ph_cell *user)
{
    float *embedding = profile->numbers + speculation->dim;
    double square = 0;
    if (profile->has_embedding || speculation->embedding_dim == 0)
        return PH_OK;
    PH_TRY(ph_session_embed(speculation->teacher.session, speculation->settings.user, 1, user, embedding));
    for (size_t i = 0; i < speculation->embedding_dim; i++)
        square += (double)(embedding[i] * embedding[i]);
    for (size_t i = 0; i < speculation->embedding_dim; i++)
        embedding[i] /= square > 0 ? (float)sqrt(square) : 1;
    profile->has_embedding = true;
    return PH_OK;
}

/* Takes a slate: rows [first, end) of a request. */
static ph_status take_slate(
    struct ph__speculation *speculation, double now, const struct ph__asked *asked, size_t first, size_t end)
{
    struct ph__rows *rows = ph__pair_teacher_rows(&speculation->teacher);
    const struct ph__slate slate = {
        asked->users[first], end - first, asked->items + first, asked->scores + first, rows};
    rows->num_rows = 0;
    ph_status status = ph__pair_teacher_take(&speculation->teacher, asked->request, first, slate.count);
    if (status == PH_OK)
        status = ph__pair_predictor_asked(speculation->predictor, now, &slate);
    rows->num_rows = 0;
    PH_TRY(status);
    const size_t index = ph__pair_predictor_find(speculation->predictor, slate.user);
    return keep_embedding(speculation, profile_of(speculation, index), &asked->user_cells[first]);
}

ph_status ph__speculation_asked(
    struct ph__speculation *speculation, double now, const struct ph__asked *asked)
{
    for (size_t first = 0, end; first < asked->count; first = end) {
        end = ph__pair_cache_end_of_user(asked->users, first, asked->count);
        PH_TRY(take_slate(speculation, now, asked, first, end));
    }
    return PH_OK;
}

/* ---- means ---- */

/* Makes the mean of the pairs that are known of a user's last slate. */
static void make_mean(struct ph__speculation *speculation, double now, size_t index)
{
    const struct ph__pair_user user = ph__pair_predictor_user(speculation->predictor, index);
    struct profile *profile = user.profile;
    float *mean = profile->numbers, *numbers = speculation->numbers;
    double births = 0, count = 0;
    memset(mean, 0, speculation->dim * sizeof *mean);
    for (size_t i = 0; i < user.count; i++) {
        const uint32_t birth =
            ph__pair_cache_read(&speculation->cache, now, user.user, user.items[i], numbers);
        for (size_t k = 0; k < speculation->dim && birth > 0; k++)
            mean[k] += numbers[k];
        births += birth;
        count += birth > 0;
    }
    profile->mean_birth = count > 0 ? (uint32_t)(births / count) : 0;
    if (count == 0)
        return;
    for (size_t k = 0; k < speculation->dim; k++)
        mean[k] /= (float)count;
    ph__pair_cache_put(&speculation->cache, PH_RUNG_user, user.user, 0, profile->mean_birth, mean);
}

struct neighbour {
    const struct profile *profile;
    float likeness;
};

/* Keeps the k most alike, the least alike of them first. */
static size_t keep_neighbour(struct neighbour *nearest, size_t count, size_t most, struct neighbour other)
{
    size_t place = 0;
    if (count == most && other.likeness <= nearest[0].likeness)
        return count;
    const size_t kept = count < most ? count + 1 : most;
    if (count < most)
        memmove(nearest + 1, nearest, count * sizeof *nearest);
    while (place + 1 < kept && nearest[place + 1].likeness < other.likeness) {
        nearest[place] = nearest[place + 1];
        place++;
    }
    nearest[place] = other;
    return kept;
}

/* Makes the mean of similar users for one who has none. */
static void make_near_mean(
    struct ph__speculation *speculation, size_t index, const struct profile *const *known, size_t num_known)
{
    const struct ph__pair_user user = ph__pair_predictor_user(speculation->predictor, index);
    const float *own = ((const struct profile *)user.profile)->numbers + speculation->dim;
    const size_t dim = speculation->dim, most = (size_t)speculation->settings.num_neighbours;
    struct neighbour nearest[64];
    size_t count = 0;
    double births = 0;
    float *mean = speculation->numbers;
    for (size_t i = 0; i < num_known; i++) {
        const float *other = known[i]->numbers + dim;
        float likeness = 0;
        for (size_t k = 0; k < speculation->embedding_dim; k++)
            likeness += own[k] * other[k];
        count = keep_neighbour(nearest, count, most, (struct neighbour){known[i], likeness});
    }
    memset(mean, 0, dim * sizeof *mean);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < dim; k++)
            mean[k] += nearest[i].profile->numbers[k] / (float)count;
        births += nearest[i].profile->mean_birth;
    }
    if (count > 0)
        ph__pair_cache_put(
            &speculation->cache, PH_RUNG_near, user.user, 0, (uint32_t)(births / (double)count), mean);
}

static bool has_mean(const struct ph__speculation *speculation, double now, const struct profile *profile)
{
    return profile->has_embedding && profile->mean_birth >= ph__pair_cache_oldest(&speculation->cache, now);
}

/* Makes means of similar users for all users who have none of their own. */
static void make_near_means(
    struct ph__speculation *speculation, double now, bool (*must_go_on)(void *context), void *context)
{
    const size_t num_users = ph__pair_predictor_num_users(speculation->predictor);
    const struct profile *known[SAMPLED_USERS];
    size_t num_known = 0, num_seen = 0;
    for (size_t i = 0; i < num_users; i++) {
        const struct profile *profile = profile_of(speculation, i);
        if (!has_mean(speculation, now, profile))
            continue;
        const struct ph__rng_key key = {.stream = num_seen++}; /* a sample without favour */
        const size_t place = num_known < SAMPLED_USERS
                                 ? num_known++
                                 : (size_t)(ph__rng_uniform(&key, 0, 0) * (double)num_seen);
        if (place < SAMPLED_USERS)
            known[place] = profile;
    }
    for (size_t i = 0; i < num_users && (must_go_on == NULL || must_go_on(context)); i++) {
        const struct profile *profile = profile_of(speculation, i);
        if (profile->has_embedding && !has_mean(speculation, now, profile))
            make_near_mean(speculation, i, known, num_known);
    }
}

/* ---- work ---- */

struct freshness {
    const struct ph__speculation *speculation;
    double now;
};

static bool is_fresh(void *context, uint64_t user, uint64_t item)
{
    const struct freshness *freshness = context;
    return ph__pair_cache_read(&freshness->speculation->cache, freshness->now, user, item, NULL) > 0;
}

/* Computes pairs (count <= AT_ONCE) of one user. */
static ph_status compute(
    struct ph__speculation *speculation, double now, const struct ph__pair *pairs, size_t count)
{
    struct ph__rows *rows = ph__pair_teacher_rows(&speculation->teacher);
    const uint64_t begun_ns = ph__clock_ns();
    rows->num_rows = 0;
    for (size_t i = 0; i < count; i++)
        PH_TRY(ph__pair_predictor_row(speculation->predictor, &pairs[i], rows));
    PH_TRY(ph__pair_teacher_run(&speculation->teacher, speculation->numbers));
    for (size_t i = 0; i < count; i++)
        ph__pair_cache_put(&speculation->cache, PH_RUNG_pair, pairs[i].user, pairs[i].item,
            ph__pair_cache_birth(now), speculation->numbers + i * speculation->dim);
    make_mean(speculation, now, ph__pair_predictor_find(speculation->predictor, pairs[0].user));
    atomic_fetch_add(&speculation->teacher_rows, count);
    if (speculation->has_owner && !pthread_equal(speculation->owner, pthread_self()))
        atomic_fetch_add(&speculation->foreign_rows, count);
    atomic_fetch_add(&speculation->teacher_ns, ph__clock_ns() - begun_ns);
    return PH_OK;
}

static size_t end_of_pairs(const struct ph__pair *pairs, size_t first, size_t count)
{
    size_t end = first + 1;
    while (end < count && end - first < AT_ONCE && pairs[end].user == pairs[first].user)
        end++;
    return end;
}

/* Moves the price up while less than half of the allowance is left, and down while there is more: rows are
 * kept for pairs that are worth more than those at hand. */
static void move_price(struct ph__speculation *speculation, double elapsed, double most)
{
    const double lack = 1 - speculation->allowance / (most / 2);
    const double pace = elapsed * TICKS_OF_LIFE / speculation->settings.seconds;
    speculation->price = fmin(fmax(speculation->price * exp(lack * pace), LEAST_PRICE), MOST_PRICE);
}

/* Computes the pairs that are chosen, user by user. */
static ph_status compute_chosen(struct ph__speculation *speculation, double now, size_t count,
    bool (*must_go_on)(void *context), void *context)
{
    for (size_t first = 0, end; first < count && (must_go_on == NULL || must_go_on(context)); first = end) {
        end = end_of_pairs(speculation->pairs, first, count);
        PH_TRY(compute(speculation, now, speculation->pairs + first, end - first));
        speculation->allowance -= (double)(end - first);
    }
    return PH_OK;
}

ph_status ph__speculation_work(
    struct ph__speculation *speculation, double now, bool (*must_go_on)(void *context), void *context)
{
    const struct ph_speculation_settings *settings = &speculation->settings;
    struct freshness freshness = {speculation, now};
    const double elapsed = now - speculation->last_work;
    const double most = fmax(settings->rows_per_second * settings->seconds * SAVED_SHARE, AT_ONCE);
    const double allowance = fmin(speculation->allowance + elapsed * settings->rows_per_second, most);
    speculation->allowance = allowance;
    speculation->last_work = now;
    const struct ph__pair_choice choice = {.now = now,
        .most = (size_t)fmin(allowance, MOST_PAIRS),
        .least = speculation->price,
        .is_fresh = is_fresh,
        .fresh_context = &freshness,
        .must_go_on = must_go_on,
        .context = context};
    const size_t count = ph__pair_predictor_choose(speculation->predictor, &choice, speculation->pairs);
    PH_TRY(compute_chosen(speculation, now, count, must_go_on, context));
    move_price(speculation, elapsed, most);
    if (speculation->embedding_dim > 0 && now >= speculation->next_neighbours) {
        make_near_means(speculation, now, must_go_on, context);
        speculation->next_neighbours = now + settings->seconds / TICKS_OF_LIFE;
    }
    return PH_OK;
}

/* ---- another teacher ---- */

static size_t embedding_dim_of(const struct ph__speculation *speculation, const struct ph_session *session)
{
    return speculation->settings.num_neighbours > 0
               ? ph_session_embedding_dim(session, speculation->settings.user)
               : 0;
}

static ph_status check_fits(const struct ph__speculation *speculation, const struct ph__pair_teacher *teacher)
{
    const size_t embedding_dim = embedding_dim_of(speculation, teacher->session);
    if (teacher->encoder.dim != speculation->dim)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the model that stands there now tells %zu numbers of a pair, but served models read %zu; "
            "load them anew to use it",
            speculation->settings.teacher, teacher->encoder.dim, speculation->dim);
    if (embedding_dim != speculation->embedding_dim)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the model that stands there now has embeddings of %zu numbers for '%s', the one before had "
            "%zu; load the served models anew to use it",
            speculation->settings.teacher, embedding_dim, speculation->settings.user,
            speculation->embedding_dim);
    return PH_OK;
}

ph_status ph__speculation_find_teacher(
    const struct ph__speculation *speculation, uint64_t version, struct ph__pair_teacher *teacher_out)
{
    const char *folder = speculation->settings.teacher;
    uint64_t found;
    *teacher_out = (struct ph__pair_teacher){0};
    PH_TRY(ph__pair_teacher_version(folder, &found));
    if (found == version)
        return PH_OK;
    ph_status status = ph__pair_teacher_open(teacher_out, folder);
    if (status == PH_OK)
        status = check_fits(speculation, teacher_out);
    if (status != PH_OK)
        ph__pair_teacher_close(teacher_out);
    return status;
}

bool ph__speculation_take_teacher(struct ph__speculation *speculation, struct ph__pair_teacher *teacher)
{
    const struct ph__pair_teacher former = speculation->teacher;
    speculation->teacher = *teacher;
    *teacher = former;
    const uint64_t version = speculation->teacher.version;
    if (speculation->teacher.session == NULL || version == atomic_load(&speculation->cache.version))
        return false;
    ph__pair_predictor_forget_rows(speculation->predictor);
    for (size_t i = 0; i < ph__pair_predictor_num_users(speculation->predictor); i++)
        *profile_of(speculation, i) = (struct profile){.mean_birth = 0};
    atomic_store(&speculation->cache.version, version);
    atomic_fetch_add(&speculation->reloads, 1);
    return true;
}

void ph__speculation_own(struct ph__speculation *speculation)
{
    speculation->owner = pthread_self();
    speculation->has_owner = true;
}

struct ph__pair_teacher *ph__speculation_teacher(struct ph__speculation *speculation)
{
    return &speculation->teacher;
}

/* ---- forgetting ---- */

void ph__speculation_forget_user(struct ph__speculation *speculation, uint64_t user)
{
    ph__pair_predictor_forget_user(speculation->predictor, user);
    ph__pair_cache_forget_user(&speculation->cache, user);
    speculation->next_neighbours = 0;
}

/* Makes all users' means anew, without the item. */
void ph__speculation_forget_item(struct ph__speculation *speculation, uint64_t item)
{
    ph__pair_predictor_forget_item(speculation->predictor, item);
    ph__pair_cache_forget_item(&speculation->cache, item);
    for (size_t i = 0; i < ph__pair_predictor_num_users(speculation->predictor); i++)
        make_mean(speculation, speculation->last_work, i);
    speculation->next_neighbours = 0;
}

/* ---- life ---- */

static ph_status name_columns(struct ph__speculation *speculation)
{
    static const char *const extra[PH_EXTRA_FEATURES] = {"fm_pair", "fm_user", "fm_near", "fm_age"};
    for (size_t i = 0; i < speculation->dim; i++) {
        const char *name = ph__arena_printf(&speculation->arena, "fm_%zu", i + 1);
        if (name == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(ph__name_index_add(&speculation->columns, name));
    }
    for (size_t i = 0; i < PH_EXTRA_FEATURES; i++)
        PH_TRY(ph__name_index_add(&speculation->columns, extra[i]));
    return PH_OK;
}

/* Copies a text into the arena; NULL is "". */
static bool keep_text(struct ph__arena *arena, const char **text)
{
    *text = ph__arena_strdup(arena, *text != NULL ? *text : "");
    return *text != NULL;
}

static ph_status copy_settings(
    const struct ph_speculation_settings *settings, struct ph__speculation *speculation)
{
    struct ph_speculation_settings *own = &speculation->settings;
    struct ph__arena *arena = &speculation->arena;
    *own = *settings;
    return keep_text(arena, &own->teacher) && keep_text(arena, &own->user) && keep_text(arena, &own->item) &&
                   keep_text(arena, &own->feature_log)
               ? PH_OK
               : PH_ERROR_MEMORY;
}

static ph_status open_all(struct ph__speculation *speculation, const struct ph__pair_options *predictor)
{
    const struct ph_speculation_settings *settings = &speculation->settings;
    PH_TRY(ph__pair_teacher_open(&speculation->teacher, settings->teacher));
    const size_t dim = speculation->dim = speculation->teacher.encoder.dim;
    if (dim > PH_MAX_PAIR_NUMBERS)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: its encoder makes %zu numbers of a pair; at most %d are served", settings->teacher, dim,
            PH_MAX_PAIR_NUMBERS);
    speculation->embedding_dim = embedding_dim_of(speculation, speculation->teacher.session);
    PH_TRY(ph__pair_cache_open(
        &speculation->cache, settings->cache_bytes, dim, settings->seconds, speculation->teacher.version));
    struct ph__pair_options pairs = predictor != NULL ? *predictor : (struct ph__pair_options){0};
    pairs.seconds = settings->seconds;
    pairs.half_seconds = HALF_LIVES * settings->seconds;
    pairs.most_users = (size_t)settings->max_users;
    pairs.profile_bytes = sizeof(struct profile) + (dim + speculation->embedding_dim) * sizeof(float);
    PH_TRY(ph__pair_predictor_create(&pairs, &speculation->predictor));
    speculation->price = LEAST_PRICE;
    speculation->pairs = calloc(MOST_PAIRS, sizeof *speculation->pairs);
    speculation->numbers = calloc(AT_ONCE * dim, sizeof *speculation->numbers);
    if (speculation->pairs == NULL || speculation->numbers == NULL)
        return ph__out_of_memory("the pairs of a speculation");
    return name_columns(speculation);
}

ph_status ph__speculation_create(const struct ph_speculation_settings *settings,
    const struct ph__pair_options *predictor, struct ph__speculation **speculation_out)
{
    struct ph__speculation *speculation = calloc(1, sizeof *speculation);
    if (speculation == NULL)
        return ph__out_of_memory("a speculation");
    ph_status status = copy_settings(settings, speculation);
    if (status == PH_OK)
        status = open_all(speculation, predictor);
    if (status == PH_OK)
        *speculation_out = speculation;
    else
        ph__speculation_destroy(speculation);
    return status;
}

void ph__speculation_destroy(struct ph__speculation *speculation)
{
    if (speculation == NULL)
        return;
    ph__pair_predictor_destroy(speculation->predictor);
    ph__pair_cache_close(&speculation->cache);
    ph__pair_teacher_close(&speculation->teacher);
    free(speculation->pairs);
    free(speculation->numbers);
    ph__name_index_fini(&speculation->columns);
    ph__arena_fini(&speculation->arena);
    free(speculation);
}
