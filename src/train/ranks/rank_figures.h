/* Counts the cost of steps for each rank (time, waits for others, bytes between ranks), and gathers it for
 * summary.json.
 *
 * Figures cover the steps that this process has taken: from the end of the wait for a batch until the ranks
 * have agreed on what comes next. Exposed communication is the time in which a rank waited for others with
 * nothing else to do, started what others wait for, or polled for operations in flight while operators ran;
 * the rest of a step is computation. Evaluations and checkpoints do not count. */
#ifndef PH_TRAIN_RANK_FIGURES_H
#define PH_TRAIN_RANK_FIGURES_H

#include "base/format/json.h"
#include "comm/collective/comm.h"
#include "train/ranks/ranks.h"

/* Zero-initialised: the training is alone, and nothing is counted. */
struct ph__rank_figures {
    struct ph__comm_profile *profile;
    uint64_t num_steps, num_samples;
    uint64_t num_requested_ids;   /* looked up by all ranks' samples in this rank's tables */
    uint64_t ids_checksum;        /* of these ids, in their order; with a trace */
    uint64_t begun_ns, latest_ns; /* start of the latest step, and its duration */
    uint64_t step_ns;             /* duration of all steps */

    /* Set by the caller before gathering. */
    double train_seconds, reader_wait_seconds;
    uint64_t held_bytes; /* parameters and slots of this rank */
    uint64_t peak_bytes; /* most anonymous memory that was observed */
};

/* max_flights: operations kept for a trace. PH_ERROR_MEMORY. */
ph_status ph__rank_figures_init(
    struct ph__rank_figures *figures, const struct ph__ranks *ranks, size_t max_flights);
void ph__rank_figures_fini(struct ph__rank_figures *figures);

/* Called at the beginning and the end of a step, and in between each time a batch has been bound, several
 * times in a step that accumulates gradients. */
void ph__rank_figures_begin_step(struct ph__rank_figures *figures);
void ph__rank_figures_bound(
    struct ph__rank_figures *figures, const int64_t *requested_ids, size_t num_requested_ids);
void ph__rank_figures_end_step(struct ph__rank_figures *figures, uint64_t num_samples);

/* Gathers the figures; all ranks call it. On the first one json_out becomes the member "ranks" of
 * summary.json, as docs/PARALLEL.md describes it; on others, and alone, NULL. */
ph_status ph__rank_figures_gather(
    const struct ph__rank_figures *figures, const struct ph__ranks *ranks, struct ph__json **json_out);

#endif
