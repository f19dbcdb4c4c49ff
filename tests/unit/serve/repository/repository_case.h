/* A repository over a folder of run folders, driven by a test until something has come true. */
#ifndef PH_TEST_REPOSITORY_CASE_H
#define PH_TEST_REPOSITORY_CASE_H

#include "unit/serve/repository/repository_folder.h"

#include <semaphore.h>
#include <time.h>

#include "base/thread/clock.h"
#include "serve/repository/repository.h"

enum { DEADLINE_MS = 60000, POLL_MS = 10 };

static char run[512];    /* a run folder, which versions are copies of */
static char folder[512]; /* the repository */
static sem_t ready;      /* posted by the loader */
static struct ph__scheduler *scheduler;
static struct ph__repository *repository;
static struct ph_server_options options;

/* ---- life ---- */

static inline void nothing_done(void *context, struct ph__work *work)
{
    (void)context, (void)work;
}

static inline void no_batch_done(void *context)
{
    (void)context;
}

static inline void post(void *context)
{
    sem_post(context);
}

static inline int make_run(void **state)
{
    (void)state;
    const struct ph__scheduler_options settings = {
        .num_workers = 1, .done = nothing_done, .batch_done = no_batch_done};
    snprintf(run, sizeof run, "%s", make_run_folder("deepfm"));
    assert_int_equal(sem_init(&ready, 0, 0), 0);
    assert_ok(ph__scheduler_create(&settings, &scheduler));
    return 0;
}

static inline int drop_run(void **state)
{
    (void)state;
    ph__scheduler_destroy(scheduler);
    sem_destroy(&ready);
    return 0;
}

static inline int make_repository(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_fresh_folder());
    ph_server_options_init(&options);
    return 0;
}

static inline int drop_repository(void **state)
{
    (void)state;
    ph__repository_destroy(repository);
    repository = NULL;
    return 0;
}

static inline ph_status create(const char *path, enum ph_model_control control, const char *load)
{
    const struct ph__repository_options settings = {.path = path,
        .control = control,
        .poll_ms = POLL_MS,
        .load = load,
        .settings = &options.model,
        .scheduler = scheduler,
        .num_workers = 1,
        .loads_in_background = options.load_in_background,
        .ready = post,
        .context = &ready};
    return ph__repository_create(&settings, &repository);
}

/* Does what is due, and waits for the next result of the loader, or the next look at the folder. */
static inline void turn(void)
{
    const int due_ms = ph__repository_run(repository);
    const long wait_ms = due_ms >= 0 && due_ms < 50 ? due_ms : 50;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)sem_timedwait(&ready, &until);
}

/* Runs the repository until the condition holds. */
#define await(condition)                                                                                   \
    do {                                                                                                   \
        const uint64_t await_until = ph__clock_deadline(DEADLINE_MS);                                      \
        ph__repository_run(repository);                                                                    \
        while (!(condition) && ph__clock_ms_until(await_until) > 0)                                        \
            turn();                                                                                        \
        if (!(condition))                                                                                  \
            fail_msg("%s:%d: %s did not come true in %d ms", __FILE__, __LINE__, #condition, DEADLINE_MS); \
    } while (0)

/* Lets polls go by that change nothing. */
static inline void pass_polls(void)
{
    for (size_t i = 0; i < 20; i++)
        turn();
}

static inline void start(enum ph_model_control control, const char *load)
{
    assert_ok(create(folder, control, load));
    assert_false(ph__repository_is_settled(repository));
    await(ph__repository_is_settled(repository));
}

/* ---- questions ---- */

/* Lists "MODEL/VERSION STATE REASON;" of the index. Static storage. */
static inline const char *list(bool is_ready_only)
{
    static char text[4000];
    struct ph__arena arena = {0};
    struct ph__list entries = {NULL, 0};
    size_t size = 0;
    text[0] = '\0';
    assert_ok(ph__repository_index(repository, is_ready_only, &arena, &entries));
    for (size_t i = 0; i < entries.count; i++) {
        const struct ph__oip_index_entry *entry = (const struct ph__oip_index_entry *)entries.items + i;
        size += (size_t)snprintf(text + size, sizeof text - size, "%.*s/%.*s %.*s %.*s;",
            (int)entry->name.size, entry->name.bytes, (int)entry->version.size, entry->version.bytes,
            (int)entry->state.size, entry->state.bytes, (int)entry->reason.size, entry->reason.bytes);
    }
    ph__arena_fini(&arena);
    return text;
}

static inline bool lists(const char *part)
{
    return strstr(list(false), part) != NULL;
}

/* Tells whether exactly these serve: "a/1;a/2;". */
static inline bool serves(const char *versions)
{
    char text[1000] = "";
    const char *at = list(true);
    for (; *at != '\0'; at = strchr(at, ';') + 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s;", (int)strcspn(at, " "), at);
    return strcmp(text, versions) == 0;
}

static inline struct ph__served *hold(const char *model, const char *version)
{
    struct ph__served *served = NULL;
    assert_int_equal(
        ph__repository_find(repository, ph__bytes_of(model), ph__bytes_of(version), &served), PH_OIP_OK);
    assert_string_equal(served->model, model);
    return served;
}

static inline enum ph__oip_code find(const char *model, const char *version)
{
    struct ph__served *served = NULL;
    const enum ph__oip_code code =
        ph__repository_find(repository, ph__bytes_of(model), ph__bytes_of(version), &served);
    if (code == PH_OIP_OK)
        ph__repository_release(repository, served);
    else
        assert_null(served);
    return code;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_repository, drop_repository)

#endif
