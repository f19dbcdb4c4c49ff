/* A sweep of phloem sim: one simulation for each combination of some values, and the table, file and page of
 * what came out. */
#ifndef PH_CLI_SIM_SWEEP_H
#define PH_CLI_SIM_SWEEP_H

#include "base/format/text_table.h"
#include "cli/arguments.h"

#define CLI_SIM_MAX_AXES 8

/* A training to simulate. Pointers are borrowed. */
struct cli_sim_case {
    const char *config, *topology, *folder; /* topology NULL: a combination's own */
    size_t world_size;                      /* 0: as many ranks as the topology has room for */
    struct cli_texts sets;
};

/* Figures of a simulated training. NaN: unknown. */
struct cli_sim_figures {
    double num_ranks;
    double samples_per_s, step_seconds;   /* simulated */
    double computed_share, exposed_share; /* of a step: what it computes, and waits for communication */
    double sent_bytes;                    /* of all ranks, a step */
    double rank_bytes;           /* at its peak, of the rank that needs most: beyond the program itself */
    double wall_seconds;         /* of this machine */
    double speed_up, efficiency; /* over the first row of a sweep that differs along `compared` alone */
};

/* A key that is swept. */
struct cli_sim_axis {
    const char *key;
    const char *const *values;
    size_t num_values;
};

/* One combination. */
struct cli_sim_row {
    size_t values[CLI_SIM_MAX_AXES]; /* one an axis: index of its value */
    struct cli_sim_case simulated;
    const char *name; /* "world=8 topology=star8" */
    bool is_done;     /* it has figures */
    ph_status status;
    const char *failure; /* NULL: none */
    struct cli_sim_figures figures;
};

struct cli_sim_sweep { /* zero-initialised: no axes */
    struct ph__arena arena;
    const struct cli_sim_case *base; /* what the values are added to */
    const char *profile;             /* where times come from, as the page says it; borrowed */
    struct cli_sim_axis axes[CLI_SIM_MAX_AXES];
    size_t num_axes;
    size_t compared; /* the axis of speed-ups: world, or topology, or the first */
    size_t drawn;    /* the axis of the plots: world, or the first whose values are numbers, or the first */
    struct cli_sim_row *rows; /* (num_rows) the last axis changes fastest */
    size_t num_rows;
};

/* Parses "KEY=V1,V2" texts, and checks every combination as far as its config, its topology and its number of
 * ranks tell. `base` is what the values are added to; borrowed. PH_ERROR_USAGE: a text is malformed or names
 * a key that cannot be swept; PH_ERROR_CONFIG: a value or key that no config has. Call fini also after a
 * failure. */
ph_status cli_sim_sweep_init(
    struct cli_sim_sweep *sweep, const struct cli_sim_case *base, const struct cli_texts *texts);
void cli_sim_sweep_fini(struct cli_sim_sweep *sweep);

typedef ph_status cli_sim_function(
    void *context, const struct cli_sim_case *simulated, struct cli_sim_figures *figures_out);

/* Simulates all combinations, and writes the files of the base's folder after each. A combination that fails
 * does not end the sweep. Fails as the first that has failed otherwise than by its config or for lack of
 * memory, or as the first of all when none is done. */
ph_status cli_sim_sweep_run(
    struct cli_sim_sweep *sweep, cli_sim_function *simulate, void *context, bool is_quiet);

/* Parses a number of ranks. PH_ERROR_USAGE, naming the flag. */
ph_status cli_sim_world_parse(const char *flag, const char *text, size_t *world_size_out);

/* ---- sim_sweep_files.c ---- */

/* Fills the table for people. Call ph__text_table_fini. PH_ERROR_MEMORY. */
ph_status cli_sim_sweep_table(struct cli_sim_sweep *sweep, struct ph__text_table *table_out);

/* Writes sweep.csv and report.html. PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status cli_sim_sweep_write(struct cli_sim_sweep *sweep);

#endif
