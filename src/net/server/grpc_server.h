/* A gRPC server: HTTP/2 in clear by prior knowledge, and gRPC's framing of messages (github.com/grpc/grpc,
 * doc/PROTOCOL-HTTP2.md). Calls are unary or streams: a handler gets messages and sends messages, at any
 * time, until it finishes the call.
 *
 * The server has no thread. Its driver polls the server's descriptor among others, for no longer than
 * ph__grpc_server_timeout_ms, and then calls ph__grpc_server_run, which never blocks. Sizes and numbers are
 * limited; a connection that is idle, or takes too long to send a message or to take an answer, is closed.
 * The server itself authenticates nobody. Messages are not compressed: others are refused. One thread at a
 * time. */
#ifndef PH_NET_GRPC_SERVER_H
#define PH_NET_GRPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/memory/buffer.h"
#include "phloem/status.h"

/* ---- calls ---- */

struct ph__grpc_call;

/* Functions that the server calls, from ph__grpc_server_run and destroy. Any but `end` may send and finish.
 */
struct ph__grpc_handler {
    void (*begin)(void *context, struct ph__grpc_call *call); /* the head is there */
    /* A message has come. The handler may take the buffer's memory, and leave it another buffer. */
    void (*message)(void *context, struct ph__grpc_call *call, struct ph__buffer *message);
    void (*half_closed)(void *context, struct ph__grpc_call *call); /* the client sends no more */
    /* The status has been sent, or will never be: was_cancelled. Called for each call that has begun; the
     * call is not valid afterwards. */
    void (*end)(void *context, struct ph__grpc_call *call, bool was_cancelled);
    void *context;
};

/* Describe the call; texts are borrowed until `end`. */
struct ph__bytes ph__grpc_call_path(const struct ph__grpc_call *call);          /* "/service/method" */
struct ph__bytes ph__grpc_call_authorization(const struct ph__grpc_call *call); /* "": none */
uint64_t ph__grpc_call_timeout_ns(const struct ph__grpc_call *call);            /* UINT64_MAX: none */
void **ph__grpc_call_user(struct ph__grpc_call *call); /* the handler's own pointer, NULL at first */

/* Sends a message; the bytes are copied. Nothing is sent after a call is finished. */
void ph__grpc_send(struct ph__grpc_call *call, const void *message, size_t size);
/* Finishes the call with a status; the text is for people. Later calls do nothing. */
void ph__grpc_finish(struct ph__grpc_call *call, unsigned status, const char *text);

/* ---- the server ---- */

/* All but handler that are 0 have a default. */
struct ph__grpc_options {
    const char *address;                    /* "host:port" as of socket.h; NULL: a free port of 127.0.0.1 */
    const struct ph__grpc_handler *handler; /* borrowed until destroy */
    struct ph__log *log;                    /* borrowed until destroy; NULL: none */
    size_t max_connections;                 /* 0: 256 */
    size_t max_message_bytes;               /* larger ones finish the call with status 8; 0: 4 MiB */
    uint32_t client_timeout_ms; /* for a client to send a message, or to take an answer; 0: 10 s */
    uint32_t idle_timeout_ms;   /* of a connection without calls; 0: client_timeout_ms */
};

struct ph__grpc_server;

/* Starts a server. PH_ERROR_CONFIG for an invalid address, PH_ERROR_PEER when it cannot be listened at,
 * naming it. */
ph_status ph__grpc_server_create(const struct ph__grpc_options *options, struct ph__grpc_server **server_out);
void ph__grpc_server_destroy(struct ph__grpc_server *server); /* NULL is fine; ends all connections */

const char *ph__grpc_server_address(const struct ph__grpc_server *server); /* with the real port */

/* Accepts no more connections, and tells clients to make no more calls. */
void ph__grpc_server_drain(struct ph__grpc_server *server);
size_t ph__grpc_server_num_calls(const struct ph__grpc_server *server); /* that have not ended */

/* Do what those of http_server.h do. */
int ph__grpc_server_descriptor(const struct ph__grpc_server *server);
int ph__grpc_server_timeout_ms(const struct ph__grpc_server *server);
ph_status ph__grpc_server_run(struct ph__grpc_server *server);

#endif
