/* The repository: which models and versions there are, which of them serve, and why others do not.
 *
 *  version       is                          event -> next
 *  UNAVAILABLE   not served                  wanted -> LOADING
 *  LOADING       being opened                opened -> READY, failed -> UNAVAILABLE with the reason
 *  READY         serving                     changed on disk -> RELOADING, not wanted -> UNLOADING
 *  RELOADING     serving, a new one opens    opened -> READY with the new one, failed -> READY with the old
 *  UNLOADING     not found any more          its last request is done -> UNAVAILABLE, wanted -> LOADING
 *
 * A new version is published by one pointer when it is ready; requests stay with the version that they began
 * with. An older version goes when a newer one serves: a failed load leaves the old one serving. Folders are
 * read by the loader alone. One thread: the one that drives the server. */
#ifndef PH_SERVE_REPOSITORY_H
#define PH_SERVE_REPOSITORY_H

#include "base/log.h"
#include "serve/repository/served.h"
#include "serve/wire/oip_calls.h"

struct ph__repository;

struct ph__repository_options {
    const char *path; /* borrowed until destroy, as are all pointers */
    enum ph_model_control control;
    uint64_t poll_ms;
    const char *load; /* EXPLICIT: models loaded at the start */
    const struct ph_served_settings *settings;
    struct ph__scheduler *scheduler;
    size_t num_workers;
    bool loads_in_background; /* false: ph__repository_run loads, and waits; a measure of what that costs */
    struct ph__log *log;      /* NULL: none */
    void (*ready)(void *context); /* called by another thread: call ph__repository_run soon */
    void *context;
};

/* Creates a repository, and begins to load. PH_ERROR_DATA when there is no such folder. */
ph_status ph__repository_create(
    const struct ph__repository_options *options, struct ph__repository **repository_out);
/* Closes all versions, which nobody holds. NULL is fine. */
void ph__repository_destroy(struct ph__repository *repository);

/* Does what is due, and gives the milliseconds until it must be called again; -1: when `ready` is called. */
int ph__repository_run(struct ph__repository *repository);

/* Tells whether all that was asked for at the start is loaded, or has failed. */
bool ph__repository_is_settled(const struct ph__repository *repository);

/* Finds a version that serves, and holds it; version "": the highest. NOT_FOUND: there is no such model or
 * version; UNAVAILABLE: it is there, but does not serve. */
enum ph__oip_code ph__repository_find(struct ph__repository *repository, struct ph__bytes model,
    struct ph__bytes version, struct ph__served **served_out);
void ph__repository_release(struct ph__repository *repository, struct ph__served *served);

/* Calls `visit` for each version that serves, by model and version. */
void ph__repository_visit(struct ph__repository *repository,
    void (*visit)(void *context, struct ph__served *served), void *context);

/* Lists versions that serve of a model, or all (name ""), in the arena. NOT_FOUND: there is no such model. */
enum ph__oip_code ph__repository_versions(struct ph__repository *repository, struct ph__bytes model,
    struct ph__arena *arena, struct ph__list *versions_out); /* struct ph__bytes */

ph_status ph__repository_index(const struct ph__repository *repository, bool is_ready_only,
    struct ph__arena *arena, struct ph__list *entries_out); /* struct ph__oip_index_entry */

/* ---- control ---- */

/* Called when a load is over; the code's text is recorded. */
typedef void ph__repository_loaded(void *context, enum ph__oip_code code);

/* Loads a model's versions as its policy says, and those again that have changed on disk. config: as
 * ph__served_settings_apply takes it, which goes before MODEL/serve.yaml until the next load; empty: none.
 * UNSUPPORTED unless control is EXPLICIT; INVALID: such a config cannot be. `loaded` is called once, not
 * before the function returns, unless that is not OK. */
enum ph__oip_code ph__repository_load(struct ph__repository *repository, struct ph__bytes model,
    struct ph__bytes config, ph__repository_loaded *loaded, void *context);
/* Forgets the context of loads in progress: its owner has gone. */
void ph__repository_forget(struct ph__repository *repository, const void *context);
enum ph__oip_code ph__repository_unload(struct ph__repository *repository, struct ph__bytes model);

#endif
