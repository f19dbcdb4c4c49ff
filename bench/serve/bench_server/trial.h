/* Shared by the sections of the bench: the setting, loads of a server, and figures beside their bars. */
#ifndef PH_BENCH_TRIAL_H
#define PH_BENCH_TRIAL_H

#include "base/memory/arena.h"
#include "bodies.h"
#include "figures.h"
#include "flags.h"
#include "serve_process.h"

struct setting {
    struct bench_run run;
    double seconds;    /* of a load */
    int processors[2]; /* the server's, the generator's, on which this program stays */
    const char *folder;
    const struct serve_rows *rows;
    struct ph__json *results;
    bool has_failed; /* a wrong score, a failed request, or a figure that must not be */
    struct ph__arena arena;
};

/* Requests to a server. */
struct traffic {
    const char *address, *path; /* path NULL: the model's */
    bool is_grpc;
    bool looks_first; /* struct load_options */
    struct bodies bodies;
    uint64_t timeout_us;
    uint64_t seed; /* of the moments of an open loop; 0: another one each time */
};

enum { CLOSED_CLIENTS = 64, OPEN_CLIENTS = 256, SUSTAINED_MS = 5 };

/* Runs a load; rate 0: a closed loop. A request that fails, or has wrong scores, fails the bench. */
struct load_result trial_run(
    struct setting *setting, const struct traffic *traffic, double rate, double seconds);
void trial_judge(struct setting *setting, const struct load_result *result);

/* Return requests a second: in a closed loop; and the highest rate of an open loop, found by halving, at
 * which no queue grows: the median stays within SUSTAINED_MS. */
double trial_throughput(struct setting *setting, const struct traffic *traffic);
double trial_sustained(struct setting *setting, const struct traffic *traffic);

/* An open loop in the background, from when it is warm until it is stopped. */
struct background;
struct background *background_start(const struct traffic *traffic, double rate);
struct load_result background_stop(struct background *background); /* frees it */

/* Values of the rounds. */
struct rounds {
    double values[BENCH_MAX_ROUNDS];
};
double rounds_median(const struct setting *setting, const struct rounds *rounds);

/* A figure, and the bars that it is held against; 0: none. */
struct shown {
    struct bench_figure figure;
    double least, most; /* of the value */
    double least_ratio;
};
bool trial_report(struct setting *setting, const struct shown *shown); /* returns whether it holds its bars */

/* Makes a repository of one model, and returns its path, in the arena. */
const char *trial_repository(struct setting *setting, const char *name, const struct serve_model *model);

/* Returns the folder of a repository's first version, in the arena. */
const char *trial_version(struct setting *setting, const char *repository);

#endif
