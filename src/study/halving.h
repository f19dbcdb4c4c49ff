/* Successive halving: who is trained for how long (Jamieson, Talwalkar: "Non-stochastic best arm identification and
 * hyperparameter optimization", AISTATS 2016, section 3; rungs as in Li et al.: "Hyperband", JMLR 18, 2018). */
#ifndef PH_STUDY_HALVING_H
#define PH_STUDY_HALVING_H

#include <stddef.h>
#include <stdint.h>

#define PH_MAX_RUNGS 64

struct ph__rung {
    size_t num_candidates; /* the best of the rung before */
    int64_t epochs;        /* that they have been trained for at its end, from the beginning */
};

/* Rung 0 is everybody for min_epochs. From rung to rung the candidates are divided by eta (rounded down, at least one), and
 * the epochs multiplied by it, up to max_epochs, where the last rung ends. So the epochs of a rung do not hang on how many
 * candidates there are. num_candidates, min_epochs, max_epochs >= 1, eta >= 2. Returns how many rungs there are. */
size_t ph__halving_rungs(size_t num_candidates, int64_t eta, int64_t min_epochs, int64_t max_epochs,
    struct ph__rung rungs_out[PH_MAX_RUNGS]);

#endif
