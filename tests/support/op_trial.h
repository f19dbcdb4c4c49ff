/* Operators on trial: runs a small program built around them on every ISA that this machine has, with one
 * thread and with three, and compares its output with values computed by hand or by naive loops. */
#ifndef PH_TEST_OP_TRIAL_H
#define PH_TEST_OP_TRIAL_H

#include "phloem/op.h"
#include "support/test_support.h"

struct op_trial {
    enum ph_mode mode;
    struct ph_batch batch;     /* its dense features are x */
    const ph_real *parameters; /* of all parameters, one after another in the order of declaration */
    size_t num_runs;           /* 0 means 1 */
    /* Adds operators behind x (B,num_dense) and returns the result. */
    ph_value (*build)(struct ph_builder *builder, ph_value x);
    size_t num_expected; /* elements of the result; a scalar has 1 */
    const double *expected;
    double tolerance; /* absolute and relative; 0 means 1e-6 */
    /* Checks more; NULL: nothing more to check. */
    void (*check)(struct ph_workspace *workspace, const struct ph_state *state);
};

void check_trial(const struct op_trial *trial);

/* Asserts that building fails with PH_ERROR_CONFIG and `part` in the error's line. x has 12 columns. */
void assert_refused(ph_value (*build)(struct ph_builder *builder, ph_value x), const char *part);

#endif
