/* A training's look at its products every so many steps, and the file that it leaves in the run's folder. Of
 * the rows each look learns; of the weights one in every tenth look, since that takes a hundred times as
 * long. A zero-initialised struct looks at nothing. A resumed training begins anew. */
#ifndef PH_TRAIN_PROBING_H
#define PH_TRAIN_PROBING_H

#include "train/probe/probe.h"

#define PH_PROBE_FILE "probe.safetensors"

struct ph__probing {
    struct ph__probe *probe;
    struct ph_backend *backend;
    uint64_t interval; /* steps */
    uint64_t num_looks;
    bool is_looking; /* at the step in progress */
};

/* Borrows program and backend until fini. PH_ERROR_CONFIG for a program without products of whole weights:
 * mode full spreads them over ranks. PH_ERROR_MEMORY. */
ph_status ph__probing_init(struct ph__probing *probing, uint64_t interval, const struct ph_program *program,
    struct ph_backend *backend);
void ph__probing_fini(struct ph__probing *probing);

uint64_t ph__probing_bytes(const struct ph__probing *probing); /* once it has seen all weights */
double ph__probing_seconds(const struct ph__probing *probing); /* that it has taken */

/* Begin a step, run one of its entries, and end it. */
void ph__probing_begin_step(struct ph__probing *probing, uint64_t step);
ph_status ph__probing_run(struct ph__probing *probing, struct ph_workspace *workspace, const char *entry);
ph_status ph__probing_end_step(struct ph__probing *probing, const struct ph_store *store);

/* Writes the folder's file, if a step has been looked at. */
ph_status ph__probing_write(const struct ph__probing *probing, uint64_t num_steps, const char *folder);

#endif
