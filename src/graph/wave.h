/* Waves: small neighbours in an entry that do not depend on each other run side by side, a node a task.
 *
 * Otherwise a node is cut over the whole team, and the team waits until it is done: a node that is too small
 * to be cut leaves all threads but one idle. In a wave each thread takes a node and runs it whole, with a
 * backend whose team is that thread. Results do not depend on the cut, so a wave changes none.
 *
 * Dependence is a matter of memory alone: two nodes stay in order where one writes what the other reads or
 * writes. That covers values, their aliases, tokens, scalars, parameters with their slots, states, dimensions
 * that an operator decides, and above all the bytes that values share by the memory plan, which assumes that
 * nodes run one after the other. Nodes that call the library for products, which serves one thread at a time,
 * take no part.
 *
 * All members of a wave run, even where one fails: the error is then that of the first one in the entry's
 * order. */
#ifndef PH_GRAPH_WAVE_H
#define PH_GRAPH_WAVE_H

#include "graph/executor.h"

/* Fills workspace->wave_ends for its plan and capacities: by node, the end of the wave that begins with it,
 * which is the next node where there is no wave. */
void ph__wave_plan(struct ph_workspace *workspace);

/* Creates the crew: a backend for each thread of the team, to run a node by itself. *crew_out is NULL for a
 * team of one. */
ph_status ph__wave_crew_create(const struct ph_backend *backend, struct ph__wave_crew **crew_out);
void ph__wave_crew_destroy(struct ph__wave_crew *crew);

/* Runs the nodes [first, end), which are a wave. */
ph_status ph__wave_run(struct ph_workspace *workspace, size_t first, size_t end);

#endif
