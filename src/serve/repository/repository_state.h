/* The inside of a repository: its table of models and versions.
 *
 *     repository_state.c      what is found becomes what serves
 *     repository_questions.c  what others ask of the table */
#ifndef PH_SERVE_REPOSITORY_STATE_H
#define PH_SERVE_REPOSITORY_STATE_H

#include "serve/repository/loader.h"
#include "serve/repository/repository.h"

enum ph__listed_state { PH_UNAVAILABLE, PH_LOADING, PH_READY, PH_RELOADING, PH_UNLOADING };

struct ph__listed_version {
    uint64_t number;
    enum ph__listed_state state;
    uint64_t fingerprint;      /* of the files that were opened last */
    bool is_found, is_wanted;  /* by the last scan; by the policy */
    struct ph__served *served; /* READY, RELOADING: serves; UNLOADING: is still held */
    char reason[300];
    struct ph__listed_version *next; /* ascending numbers */
};

struct ph__listed_model {
    char *name;
    char *config;      /* of the last load; "" or NULL: none */
    bool is_asked_for; /* to be loaded */
    struct ph__listed_version *versions;
    size_t num_opening;
    struct ph__listed_model *next;
};

/* A load that somebody waits for. */
struct ph__load_waiter {
    char *model;
    uint64_t scan;   /* number of its scan */
    bool is_scanned; /* that scan is done: the load waits for the model's opening */
    ph__repository_loaded *loaded;
    void *context;
    struct ph__load_waiter *next;
};

struct ph__repository {
    struct ph__repository_options options;
    struct ph__loader *loader;
    struct ph__listed_model *models; /* by name */
    struct ph__load_waiter *waiters;
    uint64_t scans_begun, scans_done;
    uint64_t next_scan_ns;
    bool is_settled; /* nothing of the first scan is left to do */
};

/* Return NULL without one. */
struct ph__listed_model *ph__listed_model(const struct ph__repository *repository, struct ph__bytes name);
struct ph__listed_version *ph__listed_version(const struct ph__listed_model *model, uint64_t number);
const struct ph__listed_version *ph__listed_newest(const struct ph__listed_model *model); /* that serves */
bool ph__listed_serves(const struct ph__listed_version *version);

#endif
