#include "serve/repository/repository_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"

/* ---- the table ---- */

static struct ph__listed_model *add_model(struct ph__repository *repository, const char *name)
{
    struct ph__listed_model *model = calloc(1, sizeof *model), **place = &repository->models;
    if (model == NULL || (model->name = strdup(name)) == NULL) {
        free(model);
        return NULL;
    }
    while (*place != NULL && strcmp((*place)->name, name) < 0)
        place = &(*place)->next;
    model->next = *place;
    *place = model;
    return model;
}

static struct ph__listed_version *add_version(struct ph__listed_model *model, uint64_t number)
{
    struct ph__listed_version *version = calloc(1, sizeof *version), **place = &model->versions;
    if (version == NULL)
        return NULL;
    version->number = number;
    while (*place != NULL && (*place)->number < number)
        place = &(*place)->next;
    version->next = *place;
    *place = version;
    return version;
}

static void set_reason(struct ph__listed_version *version, const char *reason)
{
    snprintf(version->reason, sizeof version->reason, "%s", reason);
}

/* ---- retiring ---- */

/* Marks versions UNAVAILABLE whose last request is done. */
static void forget_served(struct ph__repository *repository, const struct ph__served *served)
{
    for (struct ph__listed_model *model = repository->models; model != NULL; model = model->next)
        for (struct ph__listed_version *version = model->versions; version != NULL; version = version->next)
            if (version->served == served) {
                version->served = NULL;
                version->state = PH_UNAVAILABLE;
            }
}

void ph__repository_release(struct ph__repository *repository, struct ph__served *served)
{
    if (--served->num_holders > 0)
        return;
    forget_served(repository, served);
    served->loaded_by->kind = PH_LOAD_CLOSE; /* no allocation can fail now */
    ph__loader_give(repository->loader, served->loaded_by);
}

static void retire(struct ph__repository *repository, struct ph__listed_version *version, const char *reason)
{
    struct ph__served *served = version->served;
    PH_LOG(repository->options.log, PH_LOG_INFO, "model_unloading", ph__log_text("model", served->model),
        ph__log_count("version", version->number), ph__log_text("reason", reason));
    version->state = PH_UNLOADING;
    version->fingerprint = 0;
    set_reason(version, reason);
    ph__repository_release(repository, served);
}

/* Retires versions that are not wanted, once one that is wanted serves, or none is wanted. */
static void retire_unwanted(struct ph__repository *repository, struct ph__listed_model *model)
{
    bool has_wanted = false, has_serving = false;
    for (const struct ph__listed_version *version = model->versions; version != NULL;
         version = version->next) {
        has_wanted |= version->is_wanted;
        has_serving |= version->is_wanted && ph__listed_serves(version);
    }
    for (struct ph__listed_version *version = model->versions; version != NULL; version = version->next)
        if (version->state == PH_READY && !version->is_wanted && (has_serving || !has_wanted))
            retire(repository, version, version->is_found ? "another version is served" : "unloaded");
}

/* ---- opening ---- */

/* Begins to look at a model, or at all (NULL). config: that a load brings; NULL: no load. Returns the scan's
 * number; 0 without memory. */
static uint64_t begin_scan(
    struct ph__repository *repository, const char *model, const struct ph__bytes *config)
{
    struct ph__load_job *job = ph__load_job_create(PH_LOAD_SCAN);
    if (job == NULL)
        return 0;
    if (config != NULL)
        job->config = config->size > 0 ? strndup(config->bytes, config->size) : strdup("");
    if ((model != NULL && (job->model = ph__arena_strdup(&job->arena, model)) == NULL) ||
        (config != NULL && job->config == NULL)) {
        ph__load_job_destroy(job);
        return 0;
    }
    job->scan = ++repository->scans_begun;
    ph__loader_give(repository->loader, job);
    return repository->scans_begun;
}

static void open_version(struct ph__repository *repository, struct ph__listed_model *model,
    struct ph__listed_version *version, const struct ph__found_version *found,
    const struct ph_served_settings *settings)
{
    struct ph__load_job *job = ph__load_job_create(PH_LOAD_OPEN);
    const struct ph__listed_version *newest = ph__listed_newest(model);
    ph_status status = PH_ERROR_MEMORY;
    if (job != NULL) {
        status = ph__served_settings_copy(settings, &job->arena, &job->settings);
        job->former = newest != NULL ? newest->served : NULL;
        job->version = *found;
        job->version.model = ph__arena_strdup(&job->arena, found->model);
        job->version.folder = ph__arena_strdup(&job->arena, found->folder);
    }
    if (status != PH_OK || job->version.model == NULL || job->version.folder == NULL) {
        ph__load_job_destroy(job);
        set_reason(version, ph_error_text());
        return;
    }
    if (version->state == PH_UNLOADING)
        version->served = NULL; /* its holders' alone */
    version->state = version->state == PH_READY ? PH_RELOADING : PH_LOADING;
    version->fingerprint = found->fingerprint;
    model->num_opening++;
    ph__loader_give(repository->loader, job);
}

/* Opens a version that is wanted, unless it serves what is on the disk, or failed with it. */
static void want_version(struct ph__repository *repository, struct ph__listed_model *model,
    struct ph__listed_version *version, const struct ph__found_version *found,
    const struct ph_served_settings *settings)
{
    const bool is_idle = version->state != PH_LOADING && version->state != PH_RELOADING;
    if (found->fingerprint == 0) {
        if (version->state == PH_UNAVAILABLE)
            set_reason(version, found->reason);
    } else if (is_idle && version->fingerprint != found->fingerprint) {
        open_version(repository, model, version, found, settings);
    }
}

static void publish(
    struct ph__repository *repository, struct ph__listed_version *version, struct ph__served *served)
{
    struct ph__served *former = version->served;
    served->num_holders = 1;
    version->served = served;
    version->state = PH_READY;
    set_reason(version, "");
    PH_LOG(repository->options.log, PH_LOG_INFO, "model_ready", ph__log_text("model", served->model),
        ph__log_count("version", version->number), ph__log_number("seconds", (double)served->load_ns * 1e-9),
        ph__log_count("weight_bytes", ph_session_weight_bytes(served->session)));
    if (former != NULL)
        ph__repository_release(repository, former);
}

static void opened(struct ph__repository *repository, struct ph__load_job *job)
{
    struct ph__listed_model *model = ph__listed_model(repository, ph__bytes_of(job->version.model));
    struct ph__listed_version *version = ph__listed_version(model, job->version.version);
    model->num_opening--;
    if (job->status == PH_OK) {
        publish(repository, version, job->served);
    } else {
        version->state = version->state == PH_RELOADING ? PH_READY : PH_UNAVAILABLE;
        set_reason(version, job->error != NULL ? job->error : "out of memory");
        PH_LOG(repository->options.log, PH_LOG_ERROR, "model_failed", ph__log_text("model", model->name),
            ph__log_count("version", version->number), ph__log_text("error", version->reason));
        if (version->state == PH_UNAVAILABLE)
            (void)begin_scan(repository, model->name, NULL); /* another version may take its place */
    }
    if (model->num_opening == 0)
        retire_unwanted(repository, model);
}

/* ---- scans ---- */

struct name_search {
    const char *name;
    bool is_found;
};

static ph_status compare_name(void *context, struct ph__bytes name)
{
    struct name_search *search = context;
    search->is_found |= ph__bytes_are(name, "*") || ph__bytes_are(name, search->name);
    return PH_OK;
}

/* Tells whether a model is loaded without being asked for, or was named for the start. */
static bool is_wanted_model(const struct ph__repository *repository, const char *name)
{
    struct name_search search = {.name = name};
    if (repository->options.control != PH_CONTROL_EXPLICIT)
        return true;
    (void)ph__list_visit(repository->options.load, compare_name, &search);
    return search.is_found;
}

/* Leaves a model as it is, because its settings are wrong, and says so of each of its versions. */
static void refuse_settings(
    struct ph__listed_model *model, const struct ph__found_version *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ph__listed_version *version = ph__listed_version(model, found[i].version);
        if (version == NULL && (version = add_version(model, found[i].version)) != NULL)
            version->is_wanted = model->is_asked_for;
        if (version != NULL)
            set_reason(version, ph_error_text());
    }
}

/* Tells whether a version has all its files, and has not failed to open with them. Others take no version's
 * place. */
static bool is_sound(const struct ph__listed_model *model, const struct ph__found_version *found)
{
    const struct ph__listed_version *version = ph__listed_version(model, found->version);
    const bool has_failed =
        version != NULL && version->state == PH_UNAVAILABLE && version->fingerprint == found->fingerprint;
    return found->fingerprint != 0 && !has_failed;
}

static bool has_config(const struct ph__listed_model *model)
{
    return model->config != NULL && model->config[0] != '\0';
}

/* Gives a model the config that its load brings, and makes fingerprints those of files and config. */
static void take_config(struct ph__listed_model *model, struct ph__load_job *job)
{
    struct ph__found_version *found = job->found.items;
    if (job->config != NULL) {
        free(model->config);
        model->config = job->config;
        job->config = NULL;
    }
    for (size_t i = 0; i < job->found.count && has_config(model); i++)
        if (found[i].fingerprint != 0 && strcmp(found[i].model, model->name) == 0)
            found[i].fingerprint ^= ph__hash_name(model->config) << 1; /* odd as before */
}

/* Reads a model's settings: those of serve.yaml, changed by the last load's config. */
static ph_status read_settings(const struct ph__repository *repository, const struct ph__listed_model *model,
    const struct ph__found_version *found, struct ph__arena *arena, struct ph_served_settings *settings)
{
    PH_TRY(ph__served_settings_read(
        repository->options.settings, found->folder, found->version, arena, settings));
    if (!has_config(model))
        return PH_OK;
    return ph__served_settings_apply(model->name, ph__bytes_of(model->config), arena, settings);
}

/* Applies what was found of one model: found (count), ascending. */
static void apply_model(struct ph__repository *repository, struct ph__listed_model *model,
    const struct ph__found_version *found, size_t count, struct ph__arena *arena)
{
    struct ph_served_settings settings = *repository->options.settings;
    uint64_t *sound = ph__arena_alloc_array(arena, count + 1, sizeof *sound);
    size_t num_sound = 0;
    ph_status status = sound != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && count > 0)
        status = read_settings(repository, model, &found[0], arena, &settings);
    if (status != PH_OK) {
        refuse_settings(model, found, count);
        return;
    }
    for (struct ph__listed_version *version = model->versions; version != NULL; version = version->next)
        version->is_found = version->is_wanted = false;
    for (size_t i = 0; i < count; i++)
        if (is_sound(model, &found[i]))
            sound[num_sound++] = found[i].version;
    for (size_t i = 0; i < count; i++) {
        struct ph__listed_version *version = ph__listed_version(model, found[i].version);
        if (version == NULL && (version = add_version(model, found[i].version)) == NULL)
            continue;
        version->is_found = true;
        version->is_wanted =
            model->is_asked_for && ph__served_settings_want(&settings, sound, num_sound, found[i].version);
        if (version->is_wanted)
            want_version(repository, model, version, &found[i], &settings);
    }
    if (model->num_opening == 0)
        retire_unwanted(repository, model);
}

/* Applies a scan; of all models also that some have gone. */
static void scanned(struct ph__repository *repository, struct ph__load_job *job)
{
    const struct ph__found_version *found = job->found.items;
    const size_t count = job->found.count;
    repository->scans_done = job->scan;
    if (job->status != PH_OK)
        PH_LOG(repository->options.log, PH_LOG_ERROR, "scan_failed", ph__log_text("error", job->error));
    for (size_t first = 0, end = 0; first < count; first = end) {
        while (end < count && strcmp(found[end].model, found[first].model) == 0)
            end++;
        struct ph__listed_model *model = ph__listed_model(repository, ph__bytes_of(found[first].model));
        if (model == NULL) {
            model = add_model(repository, found[first].model);
            if (model == NULL)
                continue;
            model->is_asked_for = job->model != NULL || is_wanted_model(repository, model->name);
        }
        take_config(model, job);
        apply_model(repository, model, found + first, end - first, &job->arena);
    }
    for (struct ph__listed_model *model = repository->models; model != NULL && job->status == PH_OK;
         model = model->next) {
        bool is_there = job->model != NULL && strcmp(job->model, model->name) != 0;
        for (size_t i = 0; i < count && !is_there; i++)
            is_there = strcmp(found[i].model, model->name) == 0;
        if (!is_there)
            apply_model(repository, model, NULL, 0, &job->arena);
    }
    for (struct ph__load_waiter *waiter = repository->waiters; waiter != NULL; waiter = waiter->next)
        waiter->is_scanned |= waiter->scan == job->scan;
}

/* ---- loads that somebody waits for ---- */

static enum ph__oip_code outcome(const struct ph__repository *repository, const char *name)
{
    const struct ph__listed_model *model = ph__listed_model(repository, ph__bytes_of(name));
    bool has_serving = false;
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(PH_OIP_INVALID, "failed to load '%s': the repository has no such model", name);
    for (const struct ph__listed_version *version = model->versions; version != NULL;
         version = version->next) {
        has_serving |= version->is_wanted && ph__listed_serves(version);
        if (version->is_wanted && version->reason[0] != '\0')
            return ph__oip_fail(PH_OIP_INVALID, "failed to load '%s', version %" PRIu64 ": %s", name,
                version->number, version->reason);
    }
    return has_serving ? PH_OIP_OK
                       : ph__oip_fail(PH_OIP_INVALID, "failed to load '%s': it has no such version", name);
}

static void free_waiter(struct ph__load_waiter *waiter)
{
    if (waiter != NULL)
        free(waiter->model);
    free(waiter);
}

static void answer_waiters(struct ph__repository *repository)
{
    struct ph__load_waiter **place = &repository->waiters;
    while (*place != NULL) {
        struct ph__load_waiter *waiter = *place;
        const struct ph__listed_model *model = ph__listed_model(repository, ph__bytes_of(waiter->model));
        if (!waiter->is_scanned || (model != NULL && model->num_opening > 0)) {
            place = &waiter->next;
            continue;
        }
        *place = waiter->next;
        if (waiter->context != NULL)
            waiter->loaded(waiter->context, outcome(repository, waiter->model));
        free_waiter(waiter);
    }
}

static enum ph__oip_code check_control(const struct ph__repository *repository)
{
    if (repository->options.control == PH_CONTROL_EXPLICIT)
        return PH_OIP_OK;
    return ph__oip_fail(
        PH_OIP_UNSUPPORTED, "models are loaded and unloaded by clients only with serve.control: explicit");
}

/* Asks for a model, also for versions of it that failed to open. */
static void ask_for(struct ph__listed_model *model)
{
    model->is_asked_for = true;
    for (struct ph__listed_version *version = model->versions; version != NULL; version = version->next)
        if (version->state == PH_UNAVAILABLE)
            version->fingerprint = 0;
}

static ph_status check_config(
    const struct ph__repository *repository, const char *model, struct ph__bytes config)
{
    struct ph_served_settings settings = *repository->options.settings;
    struct ph__arena arena = {0};
    const ph_status status =
        config.size > 0 ? ph__served_settings_apply(model, config, &arena, &settings) : PH_OK;
    ph__arena_fini(&arena);
    return status;
}

/* Begins the scan of a load, and waits for it. */
static ph_status begin_load(
    struct ph__repository *repository, struct ph__load_waiter *waiter, struct ph__bytes config)
{
    if (waiter == NULL || waiter->model == NULL)
        return ph__out_of_memory("a load");
    PH_TRY(check_config(repository, waiter->model, config));
    waiter->scan = begin_scan(repository, waiter->model, &config);
    return waiter->scan != 0 ? PH_OK : ph__out_of_memory("a load");
}

enum ph__oip_code ph__repository_load(struct ph__repository *repository, struct ph__bytes name,
    struct ph__bytes config, ph__repository_loaded *loaded, void *context)
{
    enum ph__oip_code code = check_control(repository);
    if (code != PH_OIP_OK)
        return code;
    struct ph__load_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter != NULL)
        waiter->model = strndup(name.bytes, name.size);
    const ph_status status = begin_load(repository, waiter, config);
    if (status != PH_OK) {
        free_waiter(waiter);
        return ph__oip_code_of(status);
    }
    waiter->loaded = loaded;
    waiter->context = context;
    waiter->next = repository->waiters;
    repository->waiters = waiter;
    struct ph__listed_model *model = ph__listed_model(repository, name);
    if (model != NULL)
        ask_for(model);
    return PH_OIP_OK;
}

void ph__repository_forget(struct ph__repository *repository, const void *context)
{
    for (struct ph__load_waiter *waiter = repository->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->context == context)
            waiter->context = NULL;
}

enum ph__oip_code ph__repository_unload(struct ph__repository *repository, struct ph__bytes name)
{
    const enum ph__oip_code code = check_control(repository);
    struct ph__listed_model *model = ph__listed_model(repository, name);
    if (code != PH_OIP_OK)
        return code;
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(PH_OIP_INVALID, "failed to unload '%.*s': the repository has no such model",
            (int)name.size, name.bytes);
    model->is_asked_for = false;
    for (struct ph__listed_version *version = model->versions; version != NULL; version = version->next) {
        version->is_wanted = version->is_found = false;
        if (version->state == PH_READY)
            retire(repository, version, "unloaded");
    }
    return PH_OIP_OK;
}

/* ---- life ---- */

ph_status ph__repository_create(
    const struct ph__repository_options *options, struct ph__repository **repository_out)
{
    if (!ph__directory_exists(options->path))
        return ph_fail(PH_ERROR_DATA, "%s: is not a folder", options->path);
    struct ph__repository *repository = calloc(1, sizeof *repository);
    if (repository == NULL)
        return ph__out_of_memory("a repository");
    repository->options = *options;
    const struct ph__loader_options loader = {.repository = options->path,
        .scheduler = options->scheduler,
        .log = options->log,
        .num_workers = options->num_workers,
        .is_in_background = options->loads_in_background,
        .ready = options->ready,
        .context = options->context};
    const ph_status status = ph__loader_create(&loader, &repository->loader);
    if (status != PH_OK) {
        free(repository);
        return status;
    }
    repository->next_scan_ns = ph__clock_ns() + options->poll_ms * 1000000;
    (void)begin_scan(repository, NULL, NULL);
    *repository_out = repository;
    return PH_OK;
}

static void destroy_model(struct ph__listed_model *model)
{
    for (struct ph__listed_version *version = model->versions, *next; version != NULL; version = next) {
        next = version->next;
        ph__load_job_destroy(version->served != NULL ? version->served->loaded_by : NULL);
        free(version);
    }
    free(model->name);
    free(model->config);
    free(model);
}

void ph__repository_destroy(struct ph__repository *repository)
{
    if (repository == NULL)
        return;
    ph__loader_destroy(repository->loader);
    for (struct ph__listed_model *model = repository->models, *next; model != NULL; model = next) {
        next = model->next;
        destroy_model(model);
    }
    for (struct ph__load_waiter *waiter = repository->waiters, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        free_waiter(waiter);
    }
    free(repository);
}

int ph__repository_run(struct ph__repository *repository)
{
    struct ph__load_job *job;
    while ((job = ph__loader_take(repository->loader)) != NULL) {
        if (job->kind == PH_LOAD_SCAN)
            scanned(repository, job);
        else
            opened(repository, job);
        if (job->served == NULL)
            ph__load_job_destroy(job);
    }
    answer_waiters(repository);
    if (!repository->is_settled) {
        bool is_busy = repository->scans_done < repository->scans_begun;
        for (const struct ph__listed_model *model = repository->models; model != NULL; model = model->next)
            is_busy |= model->num_opening > 0;
        repository->is_settled = !is_busy;
    }
    if (repository->options.control != PH_CONTROL_POLL)
        return -1;
    if (ph__clock_ms_until(repository->next_scan_ns) == 0 &&
        repository->scans_done == repository->scans_begun) {
        repository->next_scan_ns = ph__clock_ns() + repository->options.poll_ms * 1000000;
        (void)begin_scan(repository, NULL, NULL);
    }
    const int left_ms = ph__clock_ms_until(repository->next_scan_ns);
    return left_ms > 0 ? left_ms : 1;
}

bool ph__repository_is_settled(const struct ph__repository *repository)
{
    return repository->is_settled;
}
