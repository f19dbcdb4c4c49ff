/* Structs of executors and workspaces: a program bound to memory. */
#ifndef PH_GRAPH_EXECUTOR_H
#define PH_GRAPH_EXECUTOR_H

#include "base/trace.h"
#include "graph/graph.h"

/* Sums of the profiler for one node. */
struct ph__node_profile {
    uint64_t num_calls;
    uint64_t time_ns;
    struct ph__cost cost;
};

/* Time of a node that is watched in every run. */
struct ph__node_watch {
    size_t group; /* 0: not watched */
    uint64_t time_ns;
};

struct ph_executor {
    const struct ph_program *program;
    const struct ph_backend *backend;
    struct ph_parameter **parameters; /* by declaration */
    struct ph__state_array **states;  /* by state declaration */
    bool is_profiling;
    struct ph__node_profile *profile; /* by node */
    struct ph__node_watch *watches;   /* by node; NULL: none is watched */
    struct ph__trace *trace;          /* NULL: none */
    ph_status (*poll)(void *context); /* called between two nodes; NULL: no poll */
    void *poll_context;
    uint64_t polled_ns; /* time of the last poll */
};

struct ph__wave_crew;
struct ph__writer;

struct ph_workspace {
    struct ph_executor *executor;
    struct ph__memory_plan plan;
    void *memory;
    void *numbers; /* the same memory; where numbers are absent, as much apart, which has the same places */
    size_t memory_bytes;
    uint64_t capacities[PH_MAX_SYMBOLS];
    uint64_t extents[PH_MAX_SYMBOLS];
    uint64_t num_growths;
    double *scalars;                                  /* by value */
    struct ph__operand *values;                       /* by value: place of its data */
    struct ph__operand operands[2 * PH_MAX_OPERANDS]; /* operands of the running call */
    uint64_t *versions;         /* by node: 1 + the versions that a kept result was made from; 0: never */
    uint32_t *wave_ends;        /* by node (graph/wave.h) */
    struct ph__wave_crew *crew; /* NULL: nodes run one after the other */
    struct ph__run run;
    bool is_bound;
};

/* Fills in a node's call with these values of the symbols, for the executor's backend. */
void ph__workspace_call(struct ph_workspace *workspace, size_t node, uint64_t *extents,
    struct ph__operand operands[2 * PH_MAX_OPERANDS], struct ph__call *call_out);
/* Runs a node of the bound batch, on the thread of that number of the executor's team. Threads may do so at
 * once with operands and a backend of their own, for nodes that form a wave. */
ph_status ph__workspace_run_node(struct ph_workspace *workspace, size_t node,
    const struct ph_backend *backend, struct ph__operand operands[2 * PH_MAX_OPERANDS], size_t thread);

/* Call the function that ph__executor_poll was given; start or stop polling in the team's tasks. */
ph_status ph__executor_poll_now(struct ph_executor *executor);
void ph__executor_poll_tasks(struct ph_executor *executor, bool is_on);

/* Runs a call, or simulates it. */
static inline ph_status ph__call_run(struct ph__call *call)
{
    const struct ph__simulator *simulator = call->backend->simulator;
    return simulator != NULL ? simulator->run(simulator, call) : call->node->op->run(call);
}

/* Watches, from now on, the nodes to which the function gives a group above 0. PH_ERROR_MEMORY. */
ph_status ph__executor_watch(
    struct ph_executor *executor, size_t (*group_of)(const struct ph__graph *, const struct ph__node *));
/* Returns the time of the group's nodes so far; 0: there are none. */
uint64_t ph__executor_watched_ns(const struct ph_executor *executor, size_t group);
/* Runs a node's call, profiled and watched where the executor does that. */
ph_status ph__executor_call(struct ph_executor *executor, size_t node, size_t thread, struct ph__call *call);
/* Writes the table of ph_executor_write_profile. */
ph_status ph__profile_write(const struct ph_executor *executor, struct ph__writer *writer);
void ph__profile_clear(struct ph_executor *executor);

#endif
