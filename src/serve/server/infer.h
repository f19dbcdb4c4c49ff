/* A request to score, from its bytes to those of the answer. */
#ifndef PH_SERVE_INFER_H
#define PH_SERVE_INFER_H

#include "serve/server/scoring_state.h"

enum ph__infer_wire { PH_WIRE_REST, PH_WIRE_GRPC, PH_WIRE_STREAM };

/* An output that the request gets. */
struct ph__infer_output {
    const struct ph__served_output *of;
    size_t place;   /* in the work's wanted outputs */
    bool is_binary; /* REST */
};

struct ph__infer {
    struct ph__work work;
    struct ph_server *server;
    struct ph__served *served; /* held */
    enum ph__infer_wire wire;
    void *front; /* the exchange or call that it answers; NULL: its client has gone */
    uint64_t arrived_ns, received_ns, answered_ns;
    bool is_traced;
    struct ph__arena arena; /* of all below */
    struct ph__buffer body; /* that the request points into, where the wire does not keep it */
    struct ph__oip_infer_request request;
    struct ph__speculated *speculated; /* what was looked up of pairs; NULL: nothing */
    struct ph__infer_output *outputs;
    size_t num_outputs;
    struct ph__buffer answer, numbers; /* the answer's bytes; numbers as JSON, while it is written */
    size_t json_bytes;                 /* REST: of the answer's JSON; the rest is binary */
    bool has_binary;
    enum ph__infer_packing {
        PH_PACKED_NOT,
        PH_PACKED_GZIP,
        PH_PACKED_DEFLATE
    } packing;                      /* REST: of the answer,
                                    where that pays */
    bool is_collected;              /* done, and seen by the driving thread */
    struct ph__infer *next;         /* free, or done */
    struct ph__infer *next_of_call; /* gRPC: of the same call */
};

/* A call of either wire, to which the own pointer of its exchange, or of its call of gRPC, leads. */
struct ph__call_state {
    struct ph_server *server;
    enum ph__oip_call call;
    uint64_t begun_ns;        /* when the head came; of a stream: the message */
    struct ph__infer *infers; /* that score for it, linked by next_of_call */
    size_t num_infers;        /* gRPC */
    bool has_message, is_half_closed;
    enum ph__oip_code refused; /* REST: before the body came; OK: not */
    char error[PH_WORK_ERROR_BYTES], header_length[24];
    struct ph__oip_request request; /* of the path */
    struct ph__arena arena;
    struct ph__buffer body; /* of the request when it was compressed; of an answer that is none of infer's */
    struct ph__call_state *next; /* not in use */
};

/* Takes one that is not in use; NULL without memory. */
struct ph__call_state *ph__call_state_take(struct ph_server *server);
void ph__call_state_give_back(struct ph__call_state *state);

/* Takes one that is not in use; NULL without memory. arrived_ns: when the request's head came. */
struct ph__infer *ph__infer_take(
    struct ph_server *server, enum ph__infer_wire wire, void *front, uint64_t arrived_ns);
/* Gives it back, when it is not in a queue. */
void ph__infer_give_back(struct ph__infer *infer);

/* Puts a request, whose message has been read, into the queue of its model. timeout_ns: UINT64_MAX: none but
 * the request's own. bytes: of the request. Unless the code is OK nothing was put; a failure is booked for
 * the model where there is one. */
enum ph__oip_code ph__infer_put(
    struct ph__infer *infer, const struct ph__oip_request *model, uint64_t timeout_ns, uint64_t bytes);

/* Writes the answer of a request that was scored. Called by a worker. */
void ph__infer_write(struct ph__infer *infer);

/* Books a request that is done. */
void ph__infer_collect(struct ph__infer *infer);

/* Leaves the times of a request whose answer has been sent, if it is traced. */
void ph__infer_trace(const struct ph__infer *infer);

/* Cancels a request whose client has gone: nobody is answered. */
void ph__infer_abandon(struct ph__infer *infer);

/* Answer a request that is done, or not. In the fronts' files. */
void ph__rest_answer_infer(struct ph__infer *infer);
void ph__grpc_answer_infer(struct ph__infer *infer);

#endif
