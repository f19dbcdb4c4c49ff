/* Lines of text that a program that serves hands to a session: scored, they are probabilities, and the same
 * ones again. */
#include <string.h>

#include "phloem/serve.h"
#include "support/fuzz_run.h"

#define MAX_ROWS 64

static struct ph_session *open_session(void)
{
    static struct fuzz_run run;
    struct ph_session *session = NULL;
    fuzz_run_init(&run, "wide_deep");
    fuzz_run_train(&run);
    fuzz_require(ph_session_open(run.folder, NULL, &session) == PH_OK);
    return session;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph_session *session;
    if (session == NULL)
        session = open_session();
    float probabilities[MAX_ROWS], again[MAX_ROWS];
    size_t num_rows = 0, same_rows = 0;
    const char *text = (const char *)data;
    if (ph_session_score_text(session, text, size, probabilities, MAX_ROWS, &num_rows) != PH_OK)
        return 0;
    fuzz_require(num_rows <= MAX_ROWS);
    for (size_t i = 0; i < num_rows; i++)
        fuzz_require(probabilities[i] >= 0 && probabilities[i] <= 1);
    fuzz_require(ph_session_score_text(session, text, size, again, MAX_ROWS, &same_rows) == PH_OK);
    fuzz_require(same_rows == num_rows && memcmp(again, probabilities, num_rows * sizeof *again) == 0);
    return 0;
}
