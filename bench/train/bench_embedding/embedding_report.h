/* The measurements of one case of embedding tables, and their report. */
#ifndef PH_BENCH_EMBEDDING_REPORT_H
#define PH_BENCH_EMBEDDING_REPORT_H

#include <stdbool.h>

#include "figures.h"
#include "floor.h"
#include "lookup_step.h"

enum { EMBEDDING_MAX_ROUNDS = 25, EMBEDDING_TEAMS = LOOKUP_MAX_BACKENDS };

#define EMBEDDING_GATHER_FORMULA \
    "table rows read, in bytes / seconds of the lookup, against gather of the case's rows"
#define EMBEDDING_UPDATE_FORMULA                                                                        \
    "table rows and their optimizer slots, read + written, in bytes / seconds of backward and update, " \
    "against "                                                                                          \
    "update of the case's distinct rows"

/* Measurements of one team of threads, by round. */
struct embedding_team {
    size_t threads;
    double forward[EMBEDDING_MAX_ROUNDS], update[EMBEDDING_MAX_ROUNDS]; /* seconds a step */
    double of_gather[EMBEDDING_MAX_ROUNDS], of_update[EMBEDDING_MAX_ROUNDS];
    double forward_of_floor[EMBEDDING_MAX_ROUNDS], update_of_floor[EMBEDDING_MAX_ROUNDS];
    double their_forward[EMBEDDING_MAX_ROUNDS], their_update[EMBEDDING_MAX_ROUNDS]; /* NAN without the peer */
    double seconds[LOOKUP_OPERATORS][EMBEDDING_MAX_ROUNDS];
    double of_floor[LOOKUP_OPERATORS][EMBEDDING_MAX_ROUNDS];
    const char *placement[EMBEDDING_MAX_ROUNDS];
    struct lookup_profile latest[LOOKUP_OPERATORS];
    struct bench_rates rates; /* of the last round */
    char peer[128];
};

struct embedding_run {
    const char *name; /* "dim64.pool20" */
    const struct dlrm_case *of;
    const char *optimizer;
    bool has_forward;  /* true: reports the forward pass, which is the same for all optimizers */
    const char *sweep; /* the varied quantity; NULL: this is a case of its own */
    double at;
    size_t rounds, num_teams;
    struct embedding_team teams[EMBEDDING_TEAMS];
};

void embedding_print_heads(void);
void embedding_report(struct ph__json *figures, const struct embedding_run *run);

#endif
