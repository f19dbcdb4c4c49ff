/* A scoring server on one processor, under a generator of requests on another. Each answer's scores are
 * compared with those of a session in this process.
 *
 *   rates: requests/s of 1 and 64 rows, REST and gRPC, batching on and off; times of requests; overload
 *   python: a server in Python beside ours
 *   reloads: a model of 1 GB loaded anew under half load, beside quiet times, and a control
 *   pairs: slates of 64 with what a foundation model said of pairs, its worker busy on the server's
 * processor, beside the same model without; then the worker is ended and the foundation model removed under
 * load
 *
 * bench_server [--only rates|python|reloads|pairs] [--reloads N] [--seconds N] [--rounds N] [--quick]
 *              [--peers FOLDER] [--json FILE]
 * bench_server --kills N | --soak SECONDS     kill -9 under load; a long load, with the server's memory
 *
 * Ends with 1 when a request failed or had wrong scores, when clients saw an error of a kill while the server
 * was up, when the soak's memory grew, or when the control shows nothing. Missed bars are printed alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_server/sections.h"
#include "pinned.h"

static char folder[256]; /* for models; removed at the end */

struct wanted {
    const char *only; /* NULL: all sections */
    size_t seconds, reloads, kills, soak_seconds;
};

static bool is_wanted(const struct wanted *wanted, const char *section)
{
    return wanted->only == NULL || strcmp(wanted->only, section) == 0;
}

static void measure(struct setting *setting, const struct wanted *wanted)
{
    printf("scoring server, one worker on one processor: DLRM of %d dense features and %d tables\n",
        SERVE_NUM_DENSE, SERVE_NUM_SPARSE);
    if (wanted->kills > 0)
        survive_kills(setting, wanted->kills);
    if (wanted->soak_seconds > 0)
        survive_soak(setting, wanted->soak_seconds);
    if (wanted->kills > 0 || wanted->soak_seconds > 0)
        return;
    if (is_wanted(wanted, "rates"))
        measure_rates(setting);
    if (is_wanted(wanted, "python"))
        measure_beside_python(setting);
    if (is_wanted(wanted, "reloads"))
        measure_reloads(setting, wanted->reloads);
    if (is_wanted(wanted, "pairs"))
        measure_pairs(setting);
}

static struct wanted read_flags(int argc, char **argv, struct setting *setting)
{
    struct wanted wanted = {.seconds = 2};
    const struct bench_flag flags[] = {{.name = "--seconds", .number = &wanted.seconds},
        {.name = "--only", .word = &wanted.only, .words = "rates|python|reloads|pairs"},
        {.name = "--reloads", .number = &wanted.reloads}, {.name = "--kills", .number = &wanted.kills},
        {.name = "--soak", .number = &wanted.soak_seconds}};
    bench_read_flags(argc, argv, &setting->run, flags, sizeof flags / sizeof *flags);
    if (wanted.reloads > 0)
        wanted.only = "reloads";
    else
        wanted.reloads = setting->run.is_quick ? 1 : 4;
    setting->seconds = setting->run.is_quick ? .4 : (double)wanted.seconds;
    return wanted;
}

static void remove_folder(void)
{
    bench_remove_folder(folder);
}

int main(int argc, char **argv)
{
    struct setting setting = {.run = {.rounds = 3}, .results = ph__json_array(), .folder = folder};
    setvbuf(stdout, NULL, _IOLBF, 0); /* a soak or 50 reloads are watched for an hour */
    const struct wanted wanted = read_flags(argc, argv, &setting);
    struct serve_rows *rows = serve_rows_make();
    setting.rows = rows;
    if (bench_processors(setting.processors, 2) < 2)
        setting.processors[1] = setting.processors[0];
    bench_make_folder("bench_server", folder, sizeof folder);
    atexit(remove_folder);
    bench_stay_on(setting.processors[1]);
    measure(&setting, &wanted);
    bench_finish(setting.results, setting.run.json);
    ph__arena_fini(&setting.arena);
    free(rows);
    return setting.has_failed;
}
