#include "serve/repository/repository.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "serve/repository/loader.h"

enum version_state { UNAVAILABLE, LOADING, READY, RELOADING, UNLOADING };
static const char *const state_names[] = {"UNAVAILABLE", "LOADING", "READY", "READY", "UNLOADING"};

struct version {
    uint64_t number;
    enum version_state state;
    uint64_t fingerprint;      /* of the files that were opened last */
    bool is_found, is_wanted;  /* by the last scan; by the policy */
    struct ph__served *served; /* READY, RELOADING: serves; UNLOADING: is still held */
    char reason[300];
    struct version *next; /* ascending numbers */
};

struct model {
    char *name;
    bool is_asked_for; /* to be loaded */
    struct version *versions;
    size_t num_opening;
    bool has_failed; /* since the load began */
    struct model *next;
};

/* A load that somebody waits for. */
struct waiter {
    char *model;
    bool is_scanned; /* its scan is done: the model's opening is what it waits for */
    ph__repository_loaded *loaded;
    void *context;
    struct waiter *next;
};

struct ph__repository {
    struct ph__repository_options options;
    struct ph__loader *loader;
    struct model *models; /* by name */
    struct waiter *waiters;
    size_t num_scans; /* that the loader has been given */
    uint64_t next_scan_ns;
    bool is_settled; /* nothing of the first scan is left to do */
};

/* ---- the table ---- */

static struct model *find_model(const struct ph__repository *repository, struct ph__bytes name)
{
    struct model *model = repository->models;
    while (model != NULL && !ph__bytes_are(name, model->name))
        model = model->next;
    return model;
}

static struct version *find_version(const struct model *model, uint64_t number)
{
    struct version *version = model->versions;
    while (version != NULL && version->number != number)
        version = version->next;
    return version;
}

static struct model *add_model(struct ph__repository *repository, const char *name)
{
    struct model *model = calloc(1, sizeof *model), **place = &repository->models;
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

static struct version *add_version(struct model *model, uint64_t number)
{
    struct version *version = calloc(1, sizeof *version), **place = &model->versions;
    if (version == NULL)
        return NULL;
    version->number = number;
    while (*place != NULL && (*place)->number < number)
        place = &(*place)->next;
    version->next = *place;
    *place = version;
    return version;
}

static bool serves(const struct version *version)
{
    return version->state == READY || version->state == RELOADING;
}

static void set_reason(struct version *version, const char *reason)
{
    snprintf(version->reason, sizeof version->reason, "%s", reason);
}

/* ---- retiring ---- */

static void close_later(struct ph__repository *repository, struct ph__served *served)
{
    struct ph__load_job *job = ph__load_job_create(PH_LOAD_CLOSE);
    if (job == NULL) {
        ph__served_close(served);
        return;
    }
    job->served = served;
    ph__loader_give(repository->loader, job);
}

/* Marks versions UNAVAILABLE whose last request is done. */
static void forget_served(struct ph__repository *repository, const struct ph__served *served)
{
    for (struct model *model = repository->models; model != NULL; model = model->next)
        for (struct version *version = model->versions; version != NULL; version = version->next)
            if (version->served == served) {
                version->served = NULL;
                version->state = UNAVAILABLE;
            }
}

void ph__repository_release(struct ph__repository *repository, struct ph__served *served)
{
    if (--served->num_holders > 0)
        return;
    forget_served(repository, served);
    close_later(repository, served);
}

static void retire(struct ph__repository *repository, struct version *version, const char *reason)
{
    struct ph__served *served = version->served;
    PH_LOG(repository->options.log, PH_LOG_INFO, "model_unloading", ph__log_text("model", served->model),
        ph__log_count("version", version->number), ph__log_text("reason", reason));
    version->state = UNLOADING;
    version->fingerprint = 0;
    set_reason(version, reason);
    ph__repository_release(repository, served);
}

/* Retires versions that are not wanted, once one that is wanted serves, or none is wanted. */
static void retire_unwanted(struct ph__repository *repository, struct model *model)
{
    bool has_wanted = false, has_serving = false;
    for (const struct version *version = model->versions; version != NULL; version = version->next) {
        has_wanted |= version->is_wanted;
        has_serving |= version->is_wanted && serves(version);
    }
    for (struct version *version = model->versions; version != NULL; version = version->next)
        if (version->state == READY && !version->is_wanted && (has_serving || !has_wanted))
            retire(repository, version, version->is_found ? "another version is served" : "unloaded");
}

/* ---- opening ---- */

static void open_version(struct ph__repository *repository, struct model *model, struct version *version,
    const struct ph__found_version *found, const struct ph_served_settings *settings)
{
    struct ph__load_job *job = ph__load_job_create(PH_LOAD_OPEN);
    if (job != NULL) {
        job->settings = *settings;
        job->settings.outputs =
            ph__arena_strdup(&job->arena, settings->outputs != NULL ? settings->outputs : "");
        job->version = *found;
        job->version.model = ph__arena_strdup(&job->arena, found->model);
        job->version.folder = ph__arena_strdup(&job->arena, found->folder);
    }
    if (job == NULL || job->version.model == NULL || job->version.folder == NULL ||
        job->settings.outputs == NULL) {
        ph__load_job_destroy(job);
        set_reason(version, ph_error_text());
        return;
    }
    if (version->state == UNLOADING)
        version->served = NULL; /* its holders' alone */
    version->state = version->state == READY ? RELOADING : LOADING;
    version->fingerprint = found->fingerprint;
    model->num_opening++;
    ph__loader_give(repository->loader, job);
}

/* Opens a version that is wanted, unless it serves what is on the disk, or failed with it. */
static void want_version(struct ph__repository *repository, struct model *model, struct version *version,
    const struct ph__found_version *found, const struct ph_served_settings *settings)
{
    const bool is_idle = version->state != LOADING && version->state != RELOADING;
    if (found->fingerprint == 0) {
        if (version->state == UNAVAILABLE)
            set_reason(version, found->reason);
        model->has_failed |= version->state == UNAVAILABLE;
    } else if (is_idle && version->fingerprint != found->fingerprint) {
        open_version(repository, model, version, found, settings);
    }
}

static void publish(struct ph__repository *repository, struct version *version, struct ph__served *served)
{
    struct ph__served *former = version->served;
    served->num_holders = 1;
    version->served = served;
    version->state = READY;
    set_reason(version, "");
    PH_LOG(repository->options.log, PH_LOG_INFO, "model_ready", ph__log_text("model", served->model),
        ph__log_count("version", version->number), ph__log_number("seconds", (double)served->load_ns * 1e-9),
        ph__log_count("weight_bytes", ph_session_weight_bytes(served->session)));
    if (former != NULL)
        ph__repository_release(repository, former);
}

static void opened(struct ph__repository *repository, struct ph__load_job *job)
{
    struct model *model = find_model(repository, ph__bytes_of(job->version.model));
    struct version *version = find_version(model, job->version.version);
    model->num_opening--;
    if (job->status == PH_OK) {
        publish(repository, version, job->served);
        job->served = NULL;
    } else {
        version->state = version->state == RELOADING ? READY : UNAVAILABLE;
        set_reason(version, job->error != NULL ? job->error : "out of memory");
        model->has_failed = true;
        PH_LOG(repository->options.log, PH_LOG_ERROR, "model_failed", ph__log_text("model", model->name),
            ph__log_count("version", version->number), ph__log_text("error", version->reason));
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

static void begin_scan(struct ph__repository *repository, const char *model)
{
    struct ph__load_job *job = ph__load_job_create(PH_LOAD_SCAN);
    if (job == NULL)
        return;
    if (model != NULL && (job->model = ph__arena_strdup(&job->arena, model)) == NULL) {
        ph__load_job_destroy(job);
        return;
    }
    repository->num_scans++;
    ph__loader_give(repository->loader, job);
}

/* Applies what was found of one model: found (count), ascending. */
static void apply_model(struct ph__repository *repository, struct model *model,
    const struct ph__found_version *found, size_t count, struct ph__arena *arena)
{
    struct ph_served_settings settings = *repository->options.settings;
    uint64_t *numbers = ph__arena_alloc_array(arena, count, sizeof *numbers);
    size_t num_whole = 0; /* versions with all their files: a half-copied one takes no other's place */
    ph_status status = numbers != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && count > 0)
        status = ph__served_settings_read(
            repository->options.settings, found[0].folder, found[0].version, arena, &settings);
    for (struct version *version = model->versions; version != NULL; version = version->next)
        version->is_found = version->is_wanted = false;
    for (size_t i = 0; i < count && numbers != NULL; i++)
        if (found[i].fingerprint != 0)
            numbers[num_whole++] = found[i].version;
    for (size_t i = 0; i < count && numbers != NULL; i++) {
        struct version *version = find_version(model, found[i].version);
        if (version == NULL && (version = add_version(model, found[i].version)) == NULL)
            continue;
        version->is_found = true;
        version->is_wanted =
            model->is_asked_for && ph__served_settings_want(&settings, numbers, num_whole, found[i].version);
        if (status != PH_OK) {
            set_reason(version, ph_error_text());
            model->has_failed = true;
        } else if (version->is_wanted) {
            want_version(repository, model, version, &found[i], &settings);
        }
    }
    if (model->num_opening == 0)
        retire_unwanted(repository, model);
}

/* Applies a scan; of all models also that some have gone. */
static void scanned(struct ph__repository *repository, struct ph__load_job *job)
{
    const struct ph__found_version *found = job->found.items;
    const size_t count = job->found.count;
    repository->num_scans--;
    if (job->status != PH_OK)
        PH_LOG(repository->options.log, PH_LOG_ERROR, "scan_failed", ph__log_text("error", job->error));
    for (size_t first = 0, end = 0; first < count; first = end) {
        while (end < count && strcmp(found[end].model, found[first].model) == 0)
            end++;
        struct model *model = find_model(repository, ph__bytes_of(found[first].model));
        if (model == NULL) {
            model = add_model(repository, found[first].model);
            if (model == NULL)
                continue;
            model->is_asked_for = is_wanted_model(repository, model->name);
        }
        apply_model(repository, model, found + first, end - first, &job->arena);
    }
    for (struct model *model = repository->models; model != NULL && job->status == PH_OK;
         model = model->next) {
        bool is_there = job->model != NULL && strcmp(job->model, model->name) != 0;
        for (size_t i = 0; i < count && !is_there; i++)
            is_there = strcmp(found[i].model, model->name) == 0;
        if (!is_there)
            apply_model(repository, model, NULL, 0, &job->arena);
    }
    for (struct waiter *waiter = repository->waiters; waiter != NULL; waiter = waiter->next)
        waiter->is_scanned |= job->model != NULL && strcmp(job->model, waiter->model) == 0;
}

/* ---- loads that somebody waits for ---- */

static enum ph__oip_code outcome(const struct ph__repository *repository, const char *name)
{
    const struct model *model = find_model(repository, ph__bytes_of(name));
    bool has_serving = false;
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(PH_OIP_INVALID, "failed to load '%s': the repository has no such model", name);
    for (const struct version *version = model->versions; version != NULL; version = version->next) {
        has_serving |= version->is_wanted && serves(version);
        if (version->is_wanted && version->reason[0] != '\0')
            return ph__oip_fail(PH_OIP_INVALID, "failed to load '%s', version %" PRIu64 ": %s", name,
                version->number, version->reason);
    }
    return has_serving ? PH_OIP_OK
                       : ph__oip_fail(PH_OIP_INVALID, "failed to load '%s': it has no such version", name);
}

static void answer_waiters(struct ph__repository *repository)
{
    struct waiter **place = &repository->waiters;
    while (*place != NULL) {
        struct waiter *waiter = *place;
        const struct model *model = find_model(repository, ph__bytes_of(waiter->model));
        if (!waiter->is_scanned || (model != NULL && model->num_opening > 0)) {
            place = &waiter->next;
            continue;
        }
        *place = waiter->next;
        if (waiter->context != NULL)
            waiter->loaded(waiter->context, outcome(repository, waiter->model));
        free(waiter->model);
        free(waiter);
    }
}

enum ph__oip_code ph__repository_load(
    struct ph__repository *repository, struct ph__bytes name, ph__repository_loaded *loaded, void *context)
{
    struct waiter *waiter = calloc(1, sizeof *waiter);
    if (repository->options.control != PH_CONTROL_EXPLICIT) {
        free(waiter);
        return ph__oip_fail(PH_OIP_UNSUPPORTED, "models are loaded and unloaded by clients only with "
                                                "serve.control: explicit");
    }
    if (waiter == NULL || (waiter->model = strndup(name.bytes, name.size)) == NULL) {
        free(waiter);
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "out of memory");
    }
    waiter->loaded = loaded;
    waiter->context = context;
    waiter->next = repository->waiters;
    repository->waiters = waiter;
    struct model *model = find_model(repository, name);
    if (model == NULL)
        model = add_model(repository, waiter->model);
    if (model != NULL)
        model->is_asked_for = true;
    begin_scan(repository, waiter->model);
    return PH_OIP_OK;
}

void ph__repository_forget(struct ph__repository *repository, const void *context)
{
    for (struct waiter *waiter = repository->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->context == context)
            waiter->context = NULL;
}

enum ph__oip_code ph__repository_unload(struct ph__repository *repository, struct ph__bytes name)
{
    struct model *model = find_model(repository, name);
    if (repository->options.control != PH_CONTROL_EXPLICIT)
        return ph__oip_fail(PH_OIP_UNSUPPORTED, "models are loaded and unloaded by clients only with "
                                                "serve.control: explicit");
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(PH_OIP_INVALID, "failed to unload '%.*s': the repository has no such model",
            (int)name.size, name.bytes);
    model->is_asked_for = false;
    for (struct version *version = model->versions; version != NULL; version = version->next) {
        version->is_wanted = version->is_found = false;
        if (version->state == READY)
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
        .settings = options->settings,
        .scheduler = options->scheduler,
        .num_workers = options->num_workers,
        .ready = options->ready,
        .context = options->context};
    const ph_status status = ph__loader_create(&loader, &repository->loader);
    if (status != PH_OK) {
        free(repository);
        return status;
    }
    repository->next_scan_ns = ph__clock_ns() + options->poll_ms * 1000000;
    begin_scan(repository, NULL);
    *repository_out = repository;
    return PH_OK;
}

static void destroy_model(struct model *model)
{
    for (struct version *version = model->versions, *next; version != NULL; version = next) {
        next = version->next;
        ph__served_close(version->served);
        free(version);
    }
    free(model->name);
    free(model);
}

void ph__repository_destroy(struct ph__repository *repository)
{
    if (repository == NULL)
        return;
    ph__loader_destroy(repository->loader);
    for (struct model *model = repository->models, *next; model != NULL; model = next) {
        next = model->next;
        destroy_model(model);
    }
    for (struct waiter *waiter = repository->waiters, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        free(waiter->model);
        free(waiter);
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
        ph__load_job_destroy(job);
    }
    answer_waiters(repository);
    if (!repository->is_settled) {
        bool is_busy = repository->num_scans > 0;
        for (const struct model *model = repository->models; model != NULL; model = model->next)
            is_busy |= model->num_opening > 0;
        repository->is_settled = !is_busy;
    }
    if (repository->options.control != PH_CONTROL_POLL)
        return -1;
    if (ph__clock_ms_until(repository->next_scan_ns) == 0 && repository->num_scans == 0) {
        repository->next_scan_ns = ph__clock_ns() + repository->options.poll_ms * 1000000;
        begin_scan(repository, NULL);
    }
    const int left_ms = ph__clock_ms_until(repository->next_scan_ns);
    return left_ms > 0 ? left_ms : 1;
}

bool ph__repository_is_settled(const struct ph__repository *repository)
{
    return repository->is_settled;
}

/* ---- questions ---- */

static const struct version *newest_serving(const struct model *model)
{
    const struct version *newest = NULL;
    for (const struct version *version = model->versions; version != NULL; version = version->next)
        if (serves(version))
            newest = version;
    return newest;
}

enum ph__oip_code ph__repository_find(struct ph__repository *repository, struct ph__bytes name,
    struct ph__bytes version_text, struct ph__served **served_out)
{
    char digits[24];
    const struct model *model = find_model(repository, name);
    if (model == NULL || model->versions == NULL)
        return ph__oip_fail(
            PH_OIP_NOT_FOUND, "the repository has no model '%.*s'", (int)name.size, name.bytes);
    const struct version *version = NULL;
    if (version_text.size > 0 && version_text.size < sizeof digits) {
        memcpy(digits, version_text.bytes, version_text.size);
        digits[version_text.size] = '\0';
        if (strspn(digits, "0123456789") == version_text.size)
            version = find_version(model, strtoull(digits, NULL, 10));
    }
    if (version_text.size > 0 && version == NULL)
        return ph__oip_fail(PH_OIP_NOT_FOUND, "model '%s' has no version '%.*s'", model->name,
            (int)version_text.size, version_text.bytes);
    if (version_text.size == 0)
        version = newest_serving(model);
    if (version == NULL || !serves(version))
        return ph__oip_fail(PH_OIP_UNAVAILABLE, "model '%s' is not ready", model->name);
    version->served->num_holders++;
    *served_out = version->served;
    return PH_OIP_OK;
}

void ph__repository_visit(
    struct ph__repository *repository, void (*visit)(void *context, struct ph__served *served), void *context)
{
    for (const struct model *model = repository->models; model != NULL; model = model->next)
        for (const struct version *version = model->versions; version != NULL; version = version->next)
            if (serves(version))
                visit(context, version->served);
}

enum ph__oip_code ph__repository_versions(struct ph__repository *repository, struct ph__bytes name,
    struct ph__arena *arena, struct ph__list *versions_out)
{
    const struct model *model = find_model(repository, name);
    if (model == NULL)
        return ph__oip_fail(
            PH_OIP_NOT_FOUND, "the repository has no model '%.*s'", (int)name.size, name.bytes);
    for (const struct version *version = model->versions; version != NULL; version = version->next) {
        struct ph__bytes *text = serves(version) ? ph__list_add(versions_out, sizeof *text, arena) : NULL;
        if (text != NULL)
            *text = ph__bytes_of(version->served->version_text);
    }
    return PH_OIP_OK;
}

ph_status ph__repository_index(const struct ph__repository *repository, bool is_ready_only,
    struct ph__arena *arena, struct ph__list *entries_out)
{
    for (const struct model *model = repository->models; model != NULL; model = model->next)
        for (const struct version *version = model->versions; version != NULL; version = version->next) {
            if (is_ready_only && !serves(version))
                continue;
            struct ph__oip_index_entry *entry = ph__list_add(entries_out, sizeof *entry, arena);
            const char *number = ph__arena_printf(arena, "%" PRIu64, version->number);
            if (entry == NULL || number == NULL)
                return PH_ERROR_MEMORY;
            const bool is_silent = version->state == UNAVAILABLE && version->reason[0] == '\0';
            *entry = (struct ph__oip_index_entry){.name = ph__bytes_of(model->name),
                .version = ph__bytes_of(number),
                .state = ph__bytes_of(is_silent ? "" : state_names[version->state]),
                .reason = ph__bytes_of(version->reason)};
        }
    return PH_OK;
}
