/* The inside of a gRPC server, shared by grpc_call.c (calls: what comes and what is sent, by nghttp2's
 * callbacks) and grpc_connection.c (sockets, and the server). */
#ifndef PH_NET_GRPC_STATE_H
#define PH_NET_GRPC_STATE_H

#include <nghttp2/nghttp2.h>

#include "net/link/socket.h"
#include "net/server/grpc_server.h"

#define PH_GRPC_HEAD_BYTES (16 << 10) /* of a call's names and values */

struct ph__grpc_connection;

struct ph__grpc_call {
    struct ph__grpc_connection *connection;
    int32_t stream;
    bool has_begun;    /* the handler knows the call */
    bool is_finished;  /* its status is to be sent, or has been */
    bool has_answered; /* the response's head has been handed to nghttp2 */
    bool is_grpc;      /* the head says so */
    size_t head_bytes; /* of names and values so far */
    uint64_t timeout_ns;
    uint64_t since_ns;   /* since when a message is awaited, the first one or the one in the making; 0: not */
    uint64_t untaken_ns; /* when the client last took a part of what waits for it; 0: nothing waits */
    struct ph__buffer path, authorization;
    struct ph__buffer in;  /* the message in the making, with its prefix */
    struct ph__buffer out; /* messages with their prefixes; sent up to out_sent */
    size_t out_sent;
    unsigned status;
    struct ph__buffer status_text; /* percent-encoded */
    void *user;
    struct ph__grpc_call *next, *previous; /* in the connection's ring; next of free ones */
};

struct ph__grpc_connection {
    struct ph__grpc_server *server;
    int socket;
    nghttp2_session *session;
    struct ph__grpc_call calls; /* a ring, with this as its end */
    struct ph__buffer out;      /* bytes for the socket; written up to out_written */
    size_t out_written;
    uint64_t since_ns;     /* when the last call ended, or the socket stopped to take bytes */
    bool is_blocked;       /* the socket takes no more bytes now */
    bool is_dirty;         /* nghttp2 has bytes to send */
    bool is_dead;          /* to be closed */
    bool has_said_goodbye; /* takes no further calls */
    struct ph__grpc_connection *next, *previous;
};

struct ph__grpc_server {
    struct ph__grpc_options options;
    char address[PH_ADDRESS_BYTES];
    int listener, descriptor; /* descriptor: epoll */
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *settings;
    struct ph__grpc_connection connections; /* a ring, with this as its end */
    size_t num_connections, num_calls;
    struct ph__grpc_call *free_calls;
    uint64_t next_sweep_ns;
    bool is_draining, has_dirty;
};

/* Asks for the connection to be flushed at the end of the turn. */
static inline void ph__grpc_mark_dirty(struct ph__grpc_connection *connection)
{
    connection->is_dirty = true;
    connection->server->has_dirty = true;
}

/* Sets nghttp2's callbacks for what comes. */
void ph__grpc_set_callbacks(nghttp2_session_callbacks *callbacks);

/* Ends a call and keeps its memory for another one. */
void ph__grpc_end_call(struct ph__grpc_call *call, bool was_cancelled);
void ph__grpc_free_call(struct ph__grpc_call *call);

#endif
