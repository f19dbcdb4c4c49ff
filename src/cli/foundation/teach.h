/* phloem teach: a teacher scores the examples of streams (teach_score.c), and its scores are joined into a
 * student's stream (verb_teach.c). */
#ifndef PH_CLI_TEACH_H
#define PH_CLI_TEACH_H

#include "cli/foundation/learnt_rows.h"

struct cli_teach_request {
    const char *folder; /* of the teacher; NULL: join */
    const char *join;   /* a log to join; NULL: score */
    const char *out;
    struct cli_texts data; /* files of the streams */
    struct cli_texts keys; /* columns of the key; none: the whole line */
    struct cli_learnt_rows learnt;
    bool is_quiet;
};

/* Scores the examples that the log does not have yet, and prints how many there were. PH_ERROR_DATA naming
 * file and line where the teacher has learnt from one. */
ph_status cli_teach_score(const struct cli_teach_request *request);

#endif
