#include "serve/repository/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/text/utf8.h"
#include "base/thread/parallel.h"
#include "store/store.h"

#define SLICE_BYTES ((size_t)16 << 20)
#define SLICE_PAUSE_NS 1000000

struct ph__loader {
    struct ph__loader_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t has_job;
    struct ph__load_job *jobs, *results; /* first in, first out */
    bool must_end;
    bool has_thread; /* set once */
};

/* ---- jobs ---- */

struct ph__load_job *ph__load_job_create(enum ph__load_kind kind)
{
    struct ph__load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        (void)ph__out_of_memory("a job of the loader");
    else
        job->kind = kind;
    return job;
}

void ph__load_job_destroy(struct ph__load_job *job)
{
    if (job == NULL)
        return;
    ph__served_close(job->served);
    free(job->config);
    ph__arena_fini(&job->arena);
    free(job);
}

static void append(struct ph__load_job **list, struct ph__load_job *job)
{
    while (*list != NULL)
        list = &(*list)->next;
    job->next = NULL;
    *list = job;
}

static struct ph__load_job *take_first(struct ph__load_job **list)
{
    struct ph__load_job *job = *list;
    if (job != NULL)
        *list = job->next;
    return job;
}

struct ph__load_job *ph__loader_take(struct ph__loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    struct ph__load_job *job = take_first(&loader->results);
    pthread_mutex_unlock(&loader->lock);
    return job;
}

/* ---- looking at folders ---- */

static bool add_file(const char *folder, const char *name, struct ph__arena *arena, uint64_t *fingerprint)
{
    struct stat file;
    const char *path = ph__path_join(arena, folder, name);
    if (path == NULL || stat(path, &file) != 0)
        return false;
    const uint64_t facts[] = {*fingerprint, (uint64_t)file.st_size, (uint64_t)file.st_ino,
        (uint64_t)file.st_mtim.tv_sec, (uint64_t)file.st_mtim.tv_nsec};
    *fingerprint = ph__hash_bytes(facts, sizeof facts) | 1;
    return true;
}

/* Tells whether the folder has a run's files. Whether they are whole shows when they are opened. */
static void look_at(struct ph__found_version *version, struct ph__arena *arena)
{
    static const char *const needed[] = {"encoder.json", "model.safetensors"};
    uint64_t fingerprint = 1;
    for (size_t i = 0; i < 2; i++)
        if (!add_file(version->folder, needed[i], arena, &fingerprint)) {
            version->fingerprint = 0;
            version->reason = ph__arena_printf(arena, "%s has no %s", version->folder, needed[i]);
            return;
        }
    (void)add_file(version->folder, "config.yaml", arena, &fingerprint);
    (void)add_file(version->folder, "../serve.yaml", arena, &fingerprint);
    (void)add_file(
        version->folder, "serve.yaml", arena, &fingerprint); /* of a run folder that is the repository */
    version->fingerprint = fingerprint;
}

struct scan {
    struct ph__load_job *job;
    const char *model, *folder;
};

static ph_status add_found(struct scan *scan, uint64_t version, const char *folder)
{
    struct ph__found_version *found = ph__list_add(&scan->job->found, sizeof *found, &scan->job->arena);
    if (found == NULL || folder == NULL || scan->model == NULL)
        return PH_ERROR_MEMORY;
    *found = (struct ph__found_version){.model = scan->model, .folder = folder, .version = version};
    look_at(found, &scan->job->arena);
    return PH_OK;
}

static ph_status visit_version(void *context, const char *name)
{
    struct scan *scan = context;
    int64_t version;
    if (name[0] < '1' || name[0] > '9' || !ph__integer_parse(name, &version))
        return PH_OK;
    const char *folder = ph__path_join(&scan->job->arena, scan->folder, name);
    if (folder != NULL && !ph__directory_exists(folder))
        return PH_OK;
    return add_found(scan, (uint64_t)version, folder);
}

static ph_status visit_model(void *context, const char *name)
{
    struct ph__load_job *job = ((struct scan *)context)->job;
    if (name[0] == '.' || (job->model != NULL && strcmp(job->model, name) != 0))
        return PH_OK;
    struct scan scan = {.job = job,
        .model = ph__arena_strdup(&job->arena, name),
        .folder = ph__path_join(&job->arena, ((struct scan *)context)->folder, name)};
    if (scan.model == NULL || scan.folder == NULL)
        return PH_ERROR_MEMORY;
    return ph__directory_exists(scan.folder) ? ph__directory_visit(scan.folder, visit_version, &scan) : PH_OK;
}

static int by_model_and_version(const void *a, const void *b)
{
    const struct ph__found_version *left = a, *right = b;
    const int order = strcmp(left->model, right->model);
    return order != 0 ? order : (left->version > right->version) - (left->version < right->version);
}

/* Lists the models of a repository; a run folder is a repository of one model by its own name. */
static ph_status scan_repository(const struct ph__loader *loader, struct ph__load_job *job)
{
    struct scan scan = {.job = job, .folder = loader->options.repository};
    char *folder = realpath(loader->options.repository, NULL);
    if (folder == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: %s", loader->options.repository, strerror(errno));
    const char *weights = ph__path_join(&job->arena, folder, "model.safetensors");
    const char *name = ph__last_word(folder, '/');
    ph_status status = weights == NULL ? PH_ERROR_MEMORY : PH_OK;
    if (status == PH_OK && !ph__file_exists(weights)) {
        status = ph__directory_visit(loader->options.repository, visit_model, &scan);
    } else if (status == PH_OK && (job->model == NULL || strcmp(job->model, name) == 0)) {
        scan.model = ph__arena_strdup(&job->arena, name);
        status = add_found(&scan, 1, ph__arena_strdup(&job->arena, folder));
    }
    free(folder);
    if (job->found.count > 0)
        qsort(job->found.items, job->found.count, sizeof(struct ph__found_version), by_model_and_version);
    return status;
}

/* ---- opening and closing ---- */

static ph_status open_version(const struct ph__loader *loader, struct ph__load_job *job)
{
    const struct ph__served_options options = {.folder = job->version.folder,
        .model = job->version.model,
        .version = job->version.version,
        .settings = &job->settings,
        .former = job->former,
        .scheduler = loader->options.scheduler,
        .log = loader->options.log,
        .num_workers = loader->options.num_workers};
    PH_TRY(ph__served_open(&options, &job->served));
    job->served->loaded_by = job;
    return PH_OK;
}

/* Gives the memory of a table back slice by slice. The table's content is lost. */
static void give_back(void *memory, size_t size)
{
    const struct timespec pause = {.tv_nsec = SLICE_PAUSE_NS};
    for (size_t at = 0; at + SLICE_BYTES <= size; at += SLICE_BYTES) {
        (void)madvise((char *)memory + at, SLICE_BYTES, MADV_DONTNEED);
        nanosleep(&pause, NULL);
    }
}

static void give_back_tables(const struct ph__served *served)
{
    const struct ph_store *store = served->session->model.store;
    for (size_t i = 0; i < ph__store_num_parameters(store); i++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, i);
        if (parameter->is_table && !ph__parameter_is_shared(parameter))
            give_back(parameter->memory, parameter->bytes);
    }
}

/* ---- the thread ---- */

static void run_job(struct ph__loader *loader, struct ph__load_job *job)
{
    job->status = job->kind == PH_LOAD_SCAN ? scan_repository(loader, job) : open_version(loader, job);
    if (job->status != PH_OK)
        job->error = ph__arena_strdup(&job->arena, ph_error_text());
    pthread_mutex_lock(&loader->lock);
    append(&loader->results, job);
    pthread_mutex_unlock(&loader->lock);
    loader->options.ready(loader->options.context);
}

static void do_job(struct ph__loader *loader, struct ph__load_job *job)
{
    if (job->kind != PH_LOAD_CLOSE) {
        run_job(loader, job);
        return;
    }
    give_back_tables(job->served);
    ph__load_job_destroy(job);
}

static void *run(void *context)
{
    struct ph__loader *loader = context;
    ph__thread_step_back();
    for (;;) {
        pthread_mutex_lock(&loader->lock);
        while (loader->jobs == NULL && !loader->must_end)
            pthread_cond_wait(&loader->has_job, &loader->lock);
        struct ph__load_job *job = loader->must_end ? NULL : take_first(&loader->jobs);
        pthread_mutex_unlock(&loader->lock);
        if (job == NULL)
            return NULL;
        do_job(loader, job);
    }
}

void ph__loader_give(struct ph__loader *loader, struct ph__load_job *job)
{
    if (!loader->has_thread) {
        do_job(loader, job);
        return;
    }
    pthread_mutex_lock(&loader->lock);
    append(&loader->jobs, job);
    pthread_mutex_unlock(&loader->lock);
    pthread_cond_signal(&loader->has_job);
}

ph_status ph__loader_create(const struct ph__loader_options *options, struct ph__loader **loader_out)
{
    struct ph__loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return ph__out_of_memory("a loader");
    loader->options = *options;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->has_job, NULL);
    loader->has_thread = options->is_in_background;
    if (loader->has_thread && ph__thread_start(&loader->thread, run, loader) != 0) {
        free(loader);
        return ph__out_of_memory("the thread of the loader");
    }
    *loader_out = loader;
    return PH_OK;
}

void ph__loader_destroy(struct ph__loader *loader)
{
    struct ph__load_job *job;
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->must_end = true;
    pthread_mutex_unlock(&loader->lock);
    pthread_cond_signal(&loader->has_job);
    if (loader->has_thread)
        pthread_join(loader->thread, NULL);
    while ((job = take_first(&loader->jobs)) != NULL)
        ph__load_job_destroy(job);
    while ((job = take_first(&loader->results)) != NULL)
        ph__load_job_destroy(job);
    pthread_cond_destroy(&loader->has_job);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}
