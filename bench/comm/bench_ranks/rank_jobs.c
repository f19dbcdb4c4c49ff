/* Starts the jobs and measures them: see rank_jobs.h. */
#include "rank_jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank_process.h"

enum { MOST_STEPS = 100 };
static const double turn_seconds = 1;
#define LAUNCHER "bench/comm/launch_ranks.sh"

/* Words before a rank's own command, and its threads. */
enum { MOST_WORDS = 4 };
static const struct start {
    const char *words[MOST_WORDS + 1], *threads;
} starts[] = {
    [JOB_ALONE] = {{NULL}, "2"},
    [JOB_HOST] = {{"sh", LAUNCHER, "host", "2", NULL}, "1"},
    [JOB_LINK] = {{"sh", LAUNCHER, "link", NULL}, "1"},
};

static void find_own_program(char *path_out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path_out, size - 1);
    path_out[length > 0 ? length : 0] = '\0';
}

/* Names the plugins' folder, which is the build's: this program is in FOLDER/bench/comm. */
static void find_plugins(const char *program)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", program);
    for (size_t i = 0; i < 3; i++)
        if (strrchr(folder, '/') != NULL)
            *strrchr(folder, '/') = '\0';
    setenv("PHLOEM_PLUGINS", folder, 0);
}

void job_start(struct peer *job, enum job_place place, const struct job_settings *settings)
{
    char program[4096];
    const struct start *start = &starts[place];
    const char *const rank[] = {program, "--rank-of", settings->model, "--kind", settings->kind, "--wire",
        settings->wire, "--threads", start->threads, settings->tells_operators ? "--operators" : NULL, NULL};
    const char *all[MOST_WORDS + sizeof rank / sizeof *rank];
    size_t count = 0;
    find_own_program(program, sizeof program);
    find_plugins(program);
    while (start->words[count] != NULL) {
        all[count] = start->words[count];
        count++;
    }
    memcpy(all + count, rank, sizeof rank);
    peer_start_own(job, RANK_PROCESS_NAME, all);
}

void job_measure(void *context, double values_out[TURN_VALUES])
{
    struct job_turn *turn = context;
    const char *answer = peer_ask(turn->job, "%s %zu", turn->verb, turn->steps);
    if (answer == NULL || sscanf(answer, "%lf %lf %lf", &values_out[JOB_SECONDS], &values_out[JOB_EXPOSED],
                              &turn->sent_bytes) != 3)
        values_out[JOB_SECONDS] = values_out[JOB_EXPOSED] = (double)NAN;
}

void job_measure_peer(void *context, double values_out[TURN_VALUES])
{
    const struct job_turn *turn = context;
    const char *answer = peer_ask(turn->job, "%s %zu", turn->verb, turn->steps);
    values_out[JOB_SECONDS] = answer != NULL ? strtod(answer, NULL) / (double)turn->steps : (double)NAN;
    values_out[JOB_EXPOSED] = (double)NAN;
}

void job_count_steps(struct job_turn *turn)
{
    double values[TURN_VALUES];
    turn->steps = 1;
    job_measure(turn, values);
    if (values[JOB_SECONDS] * MOST_STEPS < turn_seconds)
        turn->steps = MOST_STEPS;
    else if (values[JOB_SECONDS] < turn_seconds)
        turn->steps = (size_t)(turn_seconds / values[JOB_SECONDS]) + 1;
}
