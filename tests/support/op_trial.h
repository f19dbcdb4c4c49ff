/* Operators on trial: a small program built around them is run on every ISA that this machine has, with one
 * thread and with three, and its output compared with values worked out by hand or by naive loops. */
#ifndef PH_TEST_OP_TRIAL_H
#define PH_TEST_OP_TRIAL_H

#include "phloem/op.h"
#include "support/test_support.h"

struct op_trial {
    enum ph_mode mode;
    struct ph_batch batch;     /* its dense features are x */
    const ph_real *parameters; /* of all parameters, one behind the other in the order of their declaration */
    size_t num_runs;           /* 0 means 1 */
    /* Adds operators behind x (B,num_dense) and returns the result. */
    ph_value (*build)(struct ph_builder *builder, ph_value x);
    size_t num_expected; /* elements of the result; a scalar has 1 */
    const double *expected;
    double tolerance; /* absolute and relative; 0 means 1e-6 */
    /* Looks further; NULL: nothing more to see. */
    void (*check)(struct ph_workspace *workspace, const struct ph_state *state);
};

void check_trial(const struct op_trial *trial);

/* Building fails with PH_ERROR_CONFIG and this in the error's line. x has 12 columns. */
void assert_refused(ph_value (*build)(struct ph_builder *builder, ph_value x), const char *part);

#endif
