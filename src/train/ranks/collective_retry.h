/* parallel.collective_retry: another collective for a running training whose sums take longer than expected.
 *
 * Each rank notes how long the largest sum of a step over all ranks is in flight. Every
 * PH_COLLECTIVE_RETRY_STEPS steps the ranks agree on the largest of their medians. Where it is more than
 * PH_COLLECTIVE_RETRY_RATIO times what was expected, they sum as many bytes by each collective, and go on
 * with the one whose slowest rank was the fastest, for sums of at least half as many bytes. What is expected
 * is at first the prediction of collective_choice.h, and then, or without one, the median of the steps that
 * follow.
 *
 * Source: PLink (Luo et al., MLSys 2020), which probes, plans and evolves its plan. */
#ifndef PH_TRAIN_COLLECTIVE_RETRY_H
#define PH_TRAIN_COLLECTIVE_RETRY_H

#include "train/ranks/collective_choice.h"

#define PH_COLLECTIVE_RETRY_STEPS 50
#define PH_COLLECTIVE_RETRY_RATIO 1.2
enum { PH_COLLECTIVE_NOTE_BYTES = 320 };

struct ph__collective_retry { /* zero-initialised: nothing is noted */
    double ns[PH_COLLECTIVE_RETRY_STEPS];
    size_t num_steps;
    uint64_t bytes;     /* of the largest sum */
    double expected_ns; /* 0: not known */
    bool has_looked;
};

/* Notes the step that the profile has counted, on all ranks after each step, with nothing in flight. Every so
 * many steps it may set other choices, the same on all ranks, and write a line to note_out, which is empty
 * else. settings: those in use. wire: of the sums. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__collective_retry_step(struct ph__collective_retry *retry, struct ph__comm_profile *profile,
    enum ph_wire_format wire, struct ph__collective_settings *settings,
    char note_out[PH_COLLECTIVE_NOTE_BYTES]);

#endif
