/* Shared by the nodes of exchanges between ranks: starts and waits, rows on the wire, and numbers of each
 * rank.
 *
 * One node starts an exchange and gives its ticket. On the way back, of vectors (vector_gradient_exchange.c)
 * and of partial sums inside a host (host_gradients.c), another node waits for the gradient of one own
 * lookup. */
#ifndef PH_SHARD_EXCHANGE_NODES_H
#define PH_SHARD_EXCHANGE_NODES_H

#include "comm/wire/wire_format.h"
#include "graph/op.h"
#include "op/operator.h"
#include "shard/sharding.h"

/* Starts an exchange; ticket: the host scalar by which other nodes wait. */
ph_status ph__start_node_run(const struct ph__sharding *sharding, const struct ph__comm_call *named,
    const struct ph__exchange *list, const struct ph__operand *ticket);

/* Cost nodes that compute nothing: one that reads its inputs, one that writes its output, and one that
 * assembles its output, once. */
void ph__sent_cost(const struct ph__call *call, struct ph__cost *cost_out);
void ph__written_cost(const struct ph__call *call, struct ph__cost *cost_out);
void ph__moved_cost(const struct ph__call *call, struct ph__cost *cost_out);

/* ---- the way back ---- */

/* Outputs of a start on the way back: the sent bytes (with the type of the value that was in flight), the
 * ticket, the received bytes where numbers travel in fewer bytes, and then the gradients of the own lookups,
 * in flight. */
enum { PH_BACK_SENT, PH_BACK_TICKET, PH_BACK_RECEIVED, PH_BACK_GRADIENTS };

/* Inputs of the wait for one gradient: the gradient (none on a rank without lookups), then the start's other
 * outputs. */
enum {
    PH_BACK_WAIT_GRADIENT,
    PH_BACK_WAIT_TICKET,
    PH_BACK_WAIT_SENT,
    PH_BACK_WAIT_RECEIVED,
    PH_BACK_WAIT_INPUTS
};

ph_status ph__back_wait_infer(struct ph__infer *infer);
/* Waits for the gradient. unpack: converts the received bytes; numbers sent as they are came to their place
 * directly. */
ph_status ph__back_wait_run(
    struct ph__call *call, const struct ph__sharding *sharding, void (*unpack)(const struct ph__call *call));

/* A wait for one of the gradients that node `start` has in flight. */
struct ph__back_wait {
    const struct ph__op *start, *wait;
    const void *attributes;
    size_t attributes_size;
    bool has_lookup;
    size_t lookup; /* index of start's gradient, where has_lookup */
    const char *what;
};
/* Adds the wait. sent: start's output PH_BACK_SENT. PH_ERROR_BUG, which sticks to the builder, when it is
 * another value. */
ph_value ph__back_wait_emit(struct ph_builder *builder, const struct ph__back_wait *wait, ph_value sent);

/* ---- rows into the wire format and back (comm/wire/wire_format.h) ----
 *
 * All threads of a backend's team pack. A row has the same bits on every thread. */

/* Convert numbers, numbers_out: (rows, columns) without gaps. */
void ph__pack_rows(const struct ph_backend *backend, enum ph_wire_format wire, size_t rows, size_t columns,
    const ph_real *numbers, void *bytes_out);
void ph__unpack_rows(const struct ph_backend *backend, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out);

/* ---- numbers that every rank gathers from all ranks ----
 *
 * For operators, which call it within their run. */

size_t ph__gather_numbers_bytes(const struct ph__sharding *sharding, size_t count); /* scratch */
/* Gathers own (count) into all_out (world_size, count), which lies in scratch. All ranks call it, with the
 * same count, and wait for each other. */
ph_status ph__gather_numbers(const struct ph__sharding *sharding, const struct ph__comm_call *named,
    size_t count, const double *own, double *scratch, const double **all_out);

#endif
