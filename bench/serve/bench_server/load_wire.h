/* Connections of a load: HTTP/1.1 with a request at a time on each, or HTTP/2 with several. A connection that
 * is lost fails its requests, and is opened anew by the next one. */
#ifndef PH_BENCH_LOAD_WIRE_H
#define PH_BENCH_LOAD_WIRE_H

#include "load.h"

struct load_connection;

/* A request in flight, or a place for one. */
struct load_client {
    struct load_connection *connection;
    const struct load_body *body;
    double due_s; /* when it was to be sent */
    uint64_t sent_ns;
    bool is_busy;
    struct load_client *next; /* free */
    /* gRPC */
    size_t body_sent;
    int status;               /* of the trailers; -1: none yet */
    struct ph__buffer answer; /* messages with their prefixes */
};

/* Called with a request's code, 0: answered, and its answer or error: bytes (size), and a NUL. */
typedef void load_answered(
    void *context, struct load_client *client, int code, const char *bytes, size_t size);

struct load_wire {
    const struct load_options *options;
    load_answered *answered;
    void *context;
    int epoll;
    struct load_connection *connections;
    size_t num_connections;
};

/* Opens connections for clients (options->num_clients); ends the program when that fails. */
void load_wire_open(struct load_wire *wire, struct load_client *clients);
void load_wire_close(struct load_wire *wire);

void load_wire_send(struct load_wire *wire, struct load_client *client); /* its body */
void load_wire_poll(struct load_wire *wire);                             /* takes answers; does not wait */

#endif
