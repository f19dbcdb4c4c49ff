/* Counts what steps cost each rank (time, waits for others, bytes to each other) and gathers that for
 * summary.json.
 *
 * Figures are of the steps that this process has taken: from behind the wait for a batch until the ranks have
 * agreed on what comes next. Exposed communication is the time that a rank waited for others with nothing
 * else to do, that it took to start what they wait for, and that it polled for what was in flight while
 * operators ran; the rest of a step is its computation. Evaluations and checkpoints do not count. */
#ifndef PH_TRAIN_RANK_FIGURES_H
#define PH_TRAIN_RANK_FIGURES_H

#include "base/format/json.h"
#include "comm/collective/comm.h"
#include "train/ranks/ranks.h"

/* Zero-initialised, the training is alone and nothing is counted. */
struct ph__rank_figures {
    struct ph__comm_profile *profile;
    uint64_t num_steps, num_samples;
    uint64_t num_requested_ids;   /* that all ranks' samples have asked this one's tables for */
    uint64_t begun_ns, latest_ns; /* when the latest step began, and how long it took */
    uint64_t step_ns;             /* all of them */

    /* To be set before they are gathered. */
    double train_seconds, reader_wait_seconds;
    uint64_t held_bytes; /* parameters and slots of this rank */
};

/* max_flights: operations that are kept for a trace. PH_ERROR_MEMORY. */
ph_status ph__rank_figures_init(
    struct ph__rank_figures *figures, const struct ph__ranks *ranks, size_t max_flights);
void ph__rank_figures_fini(struct ph__rank_figures *figures);

/* Around a step; and when a batch of it has been bound, of which a step that accumulates gradients has
 * several. */
void ph__rank_figures_begin_step(struct ph__rank_figures *figures);
void ph__rank_figures_bound(struct ph__rank_figures *figures, uint64_t num_requested_ids);
void ph__rank_figures_end_step(struct ph__rank_figures *figures, uint64_t num_samples);

/* All ranks call it. On the first, json_out becomes the member "ranks" of summary.json, as docs/PARALLEL.md
 * describes it; on others, and alone, NULL. */
ph_status ph__rank_figures_gather(
    const struct ph__rank_figures *figures, const struct ph__ranks *ranks, struct ph__json **json_out);

#endif
