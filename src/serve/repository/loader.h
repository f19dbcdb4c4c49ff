/* The loader: a thread of the lowest priority that looks at folders, opens models and closes them, so that
 * serving does not notice. Memory of a closed model is given back in slices: one call for gigabytes would
 * stall the page faults of all threads. One thread gives it jobs and takes results. */
#ifndef PH_SERVE_LOADER_H
#define PH_SERVE_LOADER_H

#include "serve/repository/served.h"

enum ph__load_kind {
    PH_LOAD_SCAN,  /* lists models and versions of the repository */
    PH_LOAD_OPEN,  /* opens a version */
    PH_LOAD_CLOSE, /* closes the version that the job has opened; gives no result */
};

/* A version in the repository. */
struct ph__found_version {
    const char *model, *folder; /* folder: the run folder's path */
    uint64_t version;
    uint64_t fingerprint; /* of the files' sizes and times, MODEL/serve.yaml's too; 0: no run folder yet */
    const char *reason;   /* fingerprint 0: what is missing */
};

struct ph__load_job {
    enum ph__load_kind kind;
    struct ph__arena arena; /* of all texts here */
    /* SCAN */
    uint64_t scan;     /* its number, of the caller */
    const char *model; /* the one that is looked at; NULL: all */
    char *config;      /* malloc'ed: that a load brings, "": none; NULL: no load, the model keeps its own */
    struct ph__list found; /* struct ph__found_version, by model, then ascending versions */
    /* OPEN */
    struct ph__found_version version;
    struct ph_served_settings settings;
    const struct ph__served *former; /* whose tables may be shared: given to the loader to be closed after
                                        this job, or not at all; NULL: none */
    struct ph__served *served;       /* opened */
    /* results */
    ph_status status;
    const char *error; /* of a status that is not PH_OK */
    struct ph__load_job *next;
};

struct ph__loader_options {
    const char *repository; /* borrowed until destroy, as are all pointers */
    struct ph__scheduler *scheduler;
    struct ph__log *log; /* NULL: none */
    size_t num_workers;
    bool is_in_background;        /* false: whoever gives a job does it, and waits */
    void (*ready)(void *context); /* called by the loader when there is a result */
    void *context;
};

struct ph__loader;

ph_status ph__loader_create(const struct ph__loader_options *options, struct ph__loader **loader_out);
void ph__loader_destroy(struct ph__loader *loader); /* ends the job in hand, and drops those that wait */

/* Returns a job to be filled; NULL without memory. */
struct ph__load_job *ph__load_job_create(enum ph__load_kind kind);
void ph__load_job_destroy(struct ph__load_job *job); /* closes the version that it has opened */

void ph__loader_give(struct ph__loader *loader, struct ph__load_job *job); /* owned by the loader */
/* Returns the next result, owned by the caller; NULL: none. */
struct ph__load_job *ph__loader_take(struct ph__loader *loader);

#endif
