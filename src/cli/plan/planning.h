/* A planning: a job, its ranks and machine, and the plan that is made or read for them. */
#ifndef PH_CLI_PLANNING_H
#define PH_CLI_PLANNING_H

#include "cli/arguments.h"
#include "cli/verb/inspect_source.h"
#include "phloem/comm.h"
#include "plan/search/plan_explain.h"
#include "plan/search/plan_limits.h"
#include "plan/search/plan_tiers.h"
#include "train/config/kept_costs.h"
#include "train/config/table_facts.h"
#include "train/cost/cost_folder.h"
#include "train/ranks/collective_choice.h"
#include "train/ranks/planned_memory.h"

struct cli_plan_request {
    const char *path; /* config or folder */
    const char *out, *page, *plan, *topology, *other_plan;
    const char *cost, *limits, *from, *run; /* of a search */
    struct cli_texts sets;
    int64_t world_size, ranks_per_host, rank_bytes, fast_bytes; /* 0: no flag */
    double move_ms;                                             /* price of a GB that moves */
    bool is_measured, shows_memory, is_searched, may_be_foreign, is_quiet;
};

/* Costs, limits and the plan to start from, of a search; zero-initialised: none. */
struct cli_plan_basis {
    struct ph__cost_nets *nets; /* NULL: the planner's own model */
    struct ph__cost_facts facts;
    struct ph__analytic_cost analytic;
    struct ph__cost_model model;
    struct ph__learnt_costs learnt; /* the model, scaled to what a run has measured */
    struct ph__pricing pricing;
    struct ph__limits_file limits;
    struct ph__plan from;
};

/* The plan, and what it is made of. */
struct cli_planning {
    const struct cli_plan_request *request;
    struct cli_source source;
    const char *topology_path; /* of the flag, else the config's; NULL: none */
    struct ph__topology topology;
    struct ph__table_list list;
    struct ph__plan_step step;
    size_t num_micro_batches;
    const char *given_title;         /* of the column of given figures; NULL: there are none */
    struct ph__plan_machine given;   /* by --measure or the topology; NaN: not known */
    uint64_t share_bytes;            /* a rank's share of memory by the topology, else of this machine's */
    struct ph__plan_machine machine; /* the plan is made for it */
    bool is_limited_by_machine; /* neither flag, config nor topology sets rank_bytes: this machine does */
    struct cli_plan_basis basis;
    struct ph__plan plan, other; /* other: of --compare */
    struct ph__plan_load *loads, *other_loads;
    struct ph__plan_explanation explanation, other_explanation;
    double gb_ms; /* less a step with another GB a rank; NaN: memory does not limit, or the plan is given */
    struct ph__tiers tiers; /* with --fast-memory */
    struct ph__plan_links links;
    struct ph__collective_settings collectives;
    struct ph__memory_report memory;
};

/* Makes or reads the plan, of which loads, explanation and links are known then. comm: the ranks that measure
 * the machine, all of which call it; the first one makes the plan. NULL: nothing is measured. */
ph_status cli_planning_run(
    struct cli_planning *planning, const struct ph__train_job *job, struct ph_comm *comm);
void cli_planning_fini(struct cli_planning *planning);

/* ---- plan_basis.c ---- */

/* Fills the basis for the planning's job and machine. PH_ERROR_CONFIG: costs of other batches. */
ph_status cli_plan_basis_init(struct cli_planning *planning);
void cli_plan_basis_fini(struct cli_plan_basis *basis);
/* Adds bytes to the limits of each rank and, for each of its ranks, of each host. PH_ERROR_MEMORY. */
ph_status cli_plan_limits_add(const struct cli_planning *planning, uint64_t bytes, struct ph__arena *arena,
    struct ph__plan_limits *limits);
/* Searches a plan, and shows how far it is. After SIGINT it ends with the best plan so far. */
ph_status cli_plan_search(struct cli_planning *planning, struct ph__plan *plan_out);

/* ---- plan_print.c ---- */

ph_status cli_plan_print(const void *planning, struct ph__writer *writer);
ph_status cli_plan_print_comparison(const void *planning, struct ph__writer *writer);

#endif
