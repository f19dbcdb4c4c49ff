#include "study/halving.h"

static size_t divide(size_t num_candidates, int64_t eta)
{
    const size_t left = num_candidates / (size_t)eta;
    return left > 0 ? left : 1;
}

/* At most max_epochs, which epochs are below. */
static int64_t multiply(int64_t epochs, int64_t eta, int64_t max_epochs)
{
    return epochs > max_epochs / eta ? max_epochs : epochs * eta;
}

size_t ph__halving_rungs(size_t num_candidates, int64_t eta, int64_t min_epochs, int64_t max_epochs,
    struct ph__rung rungs_out[PH_MAX_RUNGS])
{
    size_t count = 0;
    struct ph__rung rung = {num_candidates, min_epochs < max_epochs ? min_epochs : max_epochs};
    while (rung.epochs < max_epochs) {
        rungs_out[count++] = rung;
        rung.num_candidates = divide(rung.num_candidates, eta);
        rung.epochs = multiply(rung.epochs, eta, max_epochs);
    }
    rungs_out[count++] = rung;
    return count;
}
