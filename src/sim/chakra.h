/* Writes Chakra execution traces of simulated ranks, which ASTRA-sim replays. FOLDER/rank.<r>.et is a file of
 * protobuf messages, each behind its length (github.com/mlcommons/chakra, schema/protobuf/et_def.proto). The
 * traces cover the first steps of a training: what summary.json counts of them.
 *
 *   COMP_NODE       an operator, a sum of numbers that messages bring, or other work
 *   COMM_SEND_NODE  a message that is sent, from when it is posted to when the rank finds it done
 *   COMM_RECV_NODE  a message that is received, likewise
 *   "wait"          a COMP_NODE without time, in which messages come together
 *
 * num_ops and tensor_size are FLOPs and bytes by the operator's cost rule; for other work, the amount that
 * its time grows by. Both are at least 1, as ASTRA-sim divides by them. ASTRA-sim takes no message without
 * bytes either: such a message is named "empty send" or "empty receive", and has a comm_size of 1.
 *
 * A node's id is its place in the file, from 1 on. It depends on earlier nodes, by data_deps alone: not all
 * readers look at control dependencies.
 *
 *   an operator  on the operator before it, and on the messages that the rank has waited for since
 *   a sum        on the operator before it, and on the messages of its operation that are done
 *   a message    on the operator before it, and on its operation's former stage: messages or a sum
 *
 * So a replay on another network overlaps computing and messages as the program would. An eager send is done
 * at once. Times are whole microseconds from the start of the simulation. The end of a node is rounded as the
 * start of the next one is, so that durations add up. */
#ifndef PH_SIM_CHAKRA_H
#define PH_SIM_CHAKRA_H

#include "sim/mail.h"

struct ph__chakra;
struct ph__chakra_rank; /* a rank's trace; functions on NULL do nothing */

struct ph__chakra_options {
    const char *folder; /* of the traces; created when a rank writes there. Borrowed */
    size_t world_size;
    uint64_t num_steps; /* that are traced, from the first on */
};

/* PH_ERROR_MEMORY. One rank at a time may be in a function. */
ph_status ph__chakra_create(const struct ph__chakra_options *options, struct ph__chakra **chakra_out);
void ph__chakra_destroy(struct ph__chakra *chakra);

/* Writes what is not in the files yet. Fails as the first write that has failed: PH_ERROR_DISK,
 * PH_ERROR_USAGE; PH_ERROR_MEMORY. */
ph_status ph__chakra_finish(struct ph__chakra *chakra);

/* Returns the trace of a rank; NULL of NULL. */
struct ph__chakra_rank *ph__chakra_rank(struct ph__chakra *chakra, size_t rank);

/* Begins a step, or ends it: what is posted or computed between two steps is not traced. */
void ph__chakra_count(struct ph__chakra_rank *rank, bool is_counting);

struct ph__chakra_work {
    const char *name;
    double flops, bytes;
    bool is_sum; /* of numbers that the messages bring which were done last */
};
void ph__chakra_compute(
    struct ph__chakra_rank *rank, const struct ph__chakra_work *work, double begin_ns, double end_ns);

/* Adds a message that is posted, with its number (sim/mail.h); PH_MAIL_DONE: a send that is done. */
void ph__chakra_message(
    struct ph__chakra_rank *rank, bool is_send, const struct ph__letter *letter, uint32_t message);
/* Ends a message, which the rank finds done. */
void ph__chakra_done(struct ph__chakra_rank *rank, bool is_send, uint32_t message, double now_ns);
/* Lets the rank go on with an operation between ranks that is done. */
void ph__chakra_waited(struct ph__chakra_rank *rank, uint32_t channel, double now_ns);

#endif
