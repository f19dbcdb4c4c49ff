/* Connections of the probe, and what goes over them. A host that others measure runs an agent
 * (probe_agent.h). A client of an agent proves the secret, then asks for one thing after another:
 *
 *     client -> agent   HELLO
 *     agent -> client   CHALLENGE  the agent's proof
 *     client -> agent   PROOF
 *     agent -> client   WELCOME    version, the agent's id
 *
 *     client -> agent   ASK        measure the way from you to another agent           agent -> client ANSWER
 *     client -> agent   ECHO       bytes, which come back                              agent -> client  ECHO
 *     client -> agent   SEND       a number of bytes, which follow behind the message  agent -> client
 * ARRIVED
 *
 * A controller asks, and agents send to each other. A message is 6 bytes of head, u32 size of the body and
 * u16 kind, and the body (net/wire.h): its struct's numbers, then its bytes or its text. A side without a
 * secret proves an empty one, known to all. Messages after the proofs carry no tag: an attacker who can
 * change packets on their way can change what is measured anyway.
 *
 * Errors are PH_ERROR_PEER naming the peer, or those of a signal. One thread at a time for each link. */
#ifndef PH_COMM_PROBE_LINK_H
#define PH_COMM_PROBE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "net/authenticate.h"
#include "net/link/socket_address.h"
#include "net/wire.h"

#define PH_NETPROBE_MAX_BODY 1024
#define PH_NETPROBE_NUM_MARKS 16
#define PH_NETPROBE_MAX_ECHOES 1000000
#define PH_NETPROBE_MAX_TRANSFER_BYTES ((uint64_t)1 << 40)

enum ph__netprobe_kind {
    PH_NETPROBE_HELLO = 1,
    PH_NETPROBE_CHALLENGE,
    PH_NETPROBE_PROOF,
    PH_NETPROBE_WELCOME,
    PH_NETPROBE_ASK,
    PH_NETPROBE_ANSWER,
    PH_NETPROBE_ECHO,
    PH_NETPROBE_SEND,
    PH_NETPROBE_ARRIVED,
    PH_NETPROBE_NUM_KINDS
};

/* Bodies. probe_link.c has a table of what each consists of. */

/* HELLO has a nonce, PROOF has a proof, and CHALLENGE has both; the rest are zeros, or ignored. */
struct ph__netprobe_proof {
    unsigned char nonce[PH_NONCE_BYTES], proof[PH_PROOF_BYTES];
};

struct ph__netprobe_welcome {
    uint64_t version, id; /* id: random, the agent's own */
};

/* A request to measure the way to another agent. */
struct ph__netprobe_ask {
    uint64_t id;          /* of the agent there */
    uint64_t num_echoes;  /* 0: latency is not measured */
    uint64_t bytes;       /* of the first transfer; 0: bandwidth is not measured */
    uint64_t max_bytes;   /* of all transfers */
    uint64_t least_ns;    /* transfers grow until one lasts as long */
    uint64_t num_retries; /* most transfers after one that is long enough, but not steady */
    uint64_t limit_ms;    /* the agent gives up then */
    char address[PH_ADDRESS_BYTES];
};

/* Arrival of the first `bytes` bytes of a transfer, in nanoseconds after its SEND. */
struct ph__netprobe_mark {
    uint64_t bytes, ns;
};

struct ph__netprobe_answer {
    /* The last transfer at each sixteenth of it. Zeros: none was made. */
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
    uint64_t latency_ns; /* one way; 0: not measured */
    uint64_t begin_ns;   /* from the request to the last transfer */
    uint64_t sent_bytes; /* by all transfers */
    char error[400];     /* "": none */
};

struct ph__netprobe_echo {
    unsigned char bytes[58]; /* 64 with the head */
};

struct ph__netprobe_send {
    uint64_t bytes;
};

struct ph__netprobe_arrived {
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
};

/* Write a body, and read it: numbers are at most INT64_MAX, and marks ascend. */
void ph__netprobe_put(struct ph__wire_writer *writer, enum ph__netprobe_kind kind, const void *message);
ph_status ph__netprobe_get(enum ph__netprobe_kind kind, const void *bytes, size_t size, void *message_out);

/* ---- links ---- */

struct ph__netprobe_link {
    int socket;                      /* non-blocking; the link does not close it */
    int watched;                     /* a connection that ends waits when it becomes readable; -1: none */
    uint64_t deadline_ns;            /* of everything below, on ph__clock_ns() */
    const volatile int *stop_signal; /* ends waits, too; NULL: none */
    char peer[PH_ADDRESS_BYTES];     /* named in errors */
};

struct ph__netprobe_body {
    enum ph__netprobe_kind kind;
    size_t size;
    unsigned char bytes[PH_NETPROBE_MAX_BODY];
};

/* Sends `size` bytes. */
ph_status ph__netprobe_write(const struct ph__netprobe_link *link, const void *bytes, size_t size);
/* Reads at least one byte, and at most `capacity`. */
ph_status ph__netprobe_read_some(
    const struct ph__netprobe_link *link, void *bytes, size_t capacity, size_t *size_out);

ph_status ph__netprobe_say(
    const struct ph__netprobe_link *link, enum ph__netprobe_kind kind, const void *message);
/* Receive a message of any kind, and one of this kind. */
ph_status ph__netprobe_hear(const struct ph__netprobe_link *link, struct ph__netprobe_body *body_out);
ph_status ph__netprobe_expect(
    const struct ph__netprobe_link *link, enum ph__netprobe_kind kind, void *message_out);

/* Exchange the proofs, as the client and as the agent. The agent's id tells agents apart: an address may lead
 * to another host's agent. secret NULL: none. */
ph_status ph__netprobe_greet(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t *id_out);
ph_status ph__netprobe_admit(
    const struct ph__netprobe_link *link, const struct ph__secret *secret, uint64_t id);

#endif
