/* Frames (net/control_stream.h) between a worker and a hub on their control connection, and their bodies.
 *
 *     worker                      hub
 *     HELLO           ->
 *                     <-          CHALLENGE, if the hub has a secret
 *     PROOF           ->
 *                     <-          WELCOME; with a secret all frames have tags from here on
 *     CREATE, DESTROY ->          ANSWER
 *     STATUS          ->          STATUS_TEXT: JSON (server_status.c)
 *     END_SERVICE     ->          ANSWER; with a service's name alone, over the local socket
 *     JOIN            ->          JOINED
 *     INIT            ->          LAYOUT, when all workers have sent the same INIT; with several hubs
 *                                 only when rank 0 has chosen:
 *                     <-              PARTS, to rank 0, instead of LAYOUT: the hub's parts of checkpoints
 *     FROM            ->              iteration of the parts that the job resumes from, or
 *                                     PH_NO_ITERATION; or rank 0 sends
 *     ANSWER          ->              the error why the job cannot go on, to all hubs, for all workers
 *     LINKED          ->          BEGIN, when all have
 *     ASSIGNED        ->          GO, when all have: rank 0's parameters are there
 *     CHECKPOINT      ->          ANSWER; to several hubs with the worker's iteration, for those
 *                                 without chunks
 *                     <-          SAVED, where several hubs share the keys, to the lead, the lowest rank that
 *                                 is there: a part is on the disk, or will not be (struct ph__saved)
 *     KEEP            ->              to all hubs, when the lead has SAVED of all: parts to keep, and the
 *                                     next iteration to make parts of (struct ph__keep)
 *     LEAVE           ->          ANSWER
 *     ATTACH          ->          ANSWER; from then on the connection is a link to one core thread
 *                                 (net/link/tcp_link.h). It goes to the core thread's address in LAYOUT,
 *                                 or where the control connection goes
 *                     <-          FAILED, at any time: the job is over for this worker
 *
 * An ANSWER that is an error may come instead of any other answer. Every body is checked when it is read:
 * results of get functions keep the limits of phloem/hub.h. Texts are copied, never borrowed. */
#ifndef PH_HUB_PROTOCOL_H
#define PH_HUB_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/layout/layout.h"
#include "hub/layout/spread.h"
#include "net/authenticate.h"
#include "net/control_stream.h"
#include "net/link/socket.h"
#include "net/wire.h"
#include "phloem/hub.h"

enum ph__hub_frame {
    PH_FRAME_HELLO = 1,
    PH_FRAME_CHALLENGE,
    PH_FRAME_PROOF,
    PH_FRAME_WELCOME,
    PH_FRAME_ANSWER,
    PH_FRAME_CREATE,
    PH_FRAME_DESTROY,
    PH_FRAME_JOIN,
    PH_FRAME_JOINED,
    PH_FRAME_INIT,
    PH_FRAME_LAYOUT,
    PH_FRAME_LINKED,
    PH_FRAME_BEGIN,
    PH_FRAME_ASSIGNED,
    PH_FRAME_GO,
    PH_FRAME_CHECKPOINT,
    PH_FRAME_ATTACH,
    PH_FRAME_LEAVE,
    PH_FRAME_FAILED,
    PH_FRAME_STATUS,
    PH_FRAME_STATUS_TEXT,
    PH_FRAME_END_SERVICE,
    PH_FRAME_PARTS,
    PH_FRAME_FROM,
    PH_FRAME_SAVED,
    PH_FRAME_KEEP
};

#define PH_HUB_MAGIC 0x42554850u /* "PHUB" */
#define PH_HUB_MAX_TEXT 1023     /* bytes of an error's text */
#define PH_HUB_MAX_SOCKET_NAME 64
#define PH_HUB_MAX_ITERATION (1ull << 62) /* most that a frame may hold */
#define PH_HUB_MAX_CORES 128              /* threads of a hub */
/* Most messages, each way of a link to a core thread that has all chunks: two pushes of each chunk, new
 * learning rates for them, a pull and an assignment. */
#define PH_HUB_MAX_RING_CAPACITY (8 * PH_LAYOUT_MAX_CHUNKS)

struct ph__hello {
    uint16_t api_version;
    unsigned char nonce[PH_NONCE_BYTES];
};

struct ph__server_challenge {
    unsigned char nonce[PH_NONCE_BYTES];
    unsigned char proof[PH_PROOF_BYTES];
};

struct ph__attach {
    uint64_t token;
    uint16_t core;
};

struct ph__welcome {
    char local_socket[PH_HUB_MAX_SOCKET_NAME + 1]; /* an abstract name of unix(7) */
};

struct ph__answer {
    ph_status status;
    char text[PH_HUB_MAX_TEXT + 1];
};

/* Settings of a service, with copies of what phloem/hub.h borrows. */
struct ph__service_settings {
    char name[PH_HUB_MAX_NAME + 1];
    struct ph_hub_service service; /* name and optimizers point to the copies */
    struct ph_hub_optimizer optimizers[PH_HUB_MAX_OPTIMIZERS];
    struct ph__hub_share share; /* this hub's share of the job's keys */
};

/* Transport of a worker and, for TCP, the reason. A worker and its hub report the same. */
enum ph__way {
    PH_WAY_UNREACHED, /* TCP: the worker cannot reach the hub's local socket */
    PH_WAY_SHARED,    /* shared memory: joined over the local socket */
    PH_WAY_ASKED_FOR, /* TCP, by the worker's options */
    PH_WAY_OTHER_USER,
    PH_WAY_SEVERAL_HUBS,
    PH_WAY_COUNT
};

struct ph__join {
    char name[PH_HUB_MAX_NAME + 1];
    uint64_t nonce;
    uint32_t rank;
    enum ph__way way;
    bool has_own_parameters;
    struct ph__hub_share share;
};

struct ph__joined {
    uint32_t num_workers, depth, num_optimizers;
    bool has_own_parameters; /* true as well where the mode demands it */
};

struct ph__init_key {
    uint64_t num_elements;
    enum ph_dtype dtype;
    uint32_t optimizer;
};

struct ph__job_layout {
    uint32_t chunk_bytes, num_versions, ring_capacity;
    uint16_t num_cores;
    bool is_restored;   /* true: parameters are there already */
    bool is_crowded;    /* true: threads outnumber the processors of the host, also the worker's */
    uint64_t cores_sum; /* a checksum of the chunks' core threads */
    uint64_t token;     /* shown by data connections */
    uint64_t iteration; /* all keys resume from */
    /* (num_cores) Numeric addresses of the hub for data connections, at the control connection's port; "":
     * the control connection's address. */
    char hosts[PH_HUB_MAX_CORES][PH_HOST_BYTES];
};

/* Writers. Bodies have at most PH_HUB_MAX_BODY bytes, except INIT's and LAYOUT's. */
#define PH_HUB_MAX_BODY 4096
void ph__put_hello(struct ph__wire_writer *writer, const struct ph__hello *hello);
void ph__put_server_challenge(struct ph__wire_writer *writer, const struct ph__server_challenge *challenge);
void ph__put_attach(struct ph__wire_writer *writer, const struct ph__attach *attach);
void ph__put_welcome(struct ph__wire_writer *writer, const struct ph__welcome *welcome);
/* Puts any text: cut if it is too long, with '?' for bytes that are not UTF-8 or are control characters. */
void ph__put_answer(struct ph__wire_writer *writer, ph_status status, const char *text);
void ph__put_service(
    struct ph__wire_writer *writer, const struct ph_hub_service *service, const struct ph__hub_share *share);
void ph__put_join(struct ph__wire_writer *writer, const struct ph__join *join);
void ph__put_joined(struct ph__wire_writer *writer, const struct ph__joined *joined);
void ph__put_layout(struct ph__wire_writer *writer, const struct ph__job_layout *layout);
/* Puts the body of STATUS and END_SERVICE. "": all services. */
void ph__put_service_name(struct ph__wire_writer *writer, const char *service);

/* Readers: PH_ERROR_PEER, or PH_ERROR_USAGE for a service with bad settings. */
ph_status ph__get_hello(const void *body, size_t size, struct ph__hello *hello_out);
ph_status ph__get_server_challenge(const void *body, size_t size, struct ph__server_challenge *challenge_out);
ph_status ph__get_proof(const void *body, size_t size, unsigned char proof_out[PH_PROOF_BYTES]);
ph_status ph__get_attach(const void *body, size_t size, struct ph__attach *attach_out);
ph_status ph__get_welcome(const void *body, size_t size, struct ph__welcome *welcome_out);
ph_status ph__get_answer(
    const void *body, size_t size, struct ph__answer *answer_out); /* an error has a text */
ph_status ph__get_failure(const void *body, size_t size, struct ph__answer *answer_out); /* refuses PH_OK */
ph_status ph__get_service(const void *body, size_t size, struct ph__service_settings *settings_out);
ph_status ph__get_join(const void *body, size_t size, struct ph__join *join_out);
ph_status ph__get_joined(const void *body, size_t size, struct ph__joined *joined_out);
ph_status ph__get_service_name(const void *body, size_t size, char service_out[PH_HUB_MAX_NAME + 1]);

/* Ends the reading of a body: PH_ERROR_PEER naming `what` unless the body was read exactly to its end. */
ph_status ph__body_finish(const struct ph__wire_reader *reader, const char *what);

/* INIT is an array of keys; the caller frees those that are read. */
#define PH_HUB_KEY_BYTES 13                                      /* bytes of a key in INIT */
#define PH_HUB_HOST_BYTES (sizeof(uint16_t) + PH_HOST_BYTES - 1) /* most of a core thread in LAYOUT */
#define PH_HUB_MAX_KEYS_BODY (PH_LAYOUT_MAX_KEYS * PH_HUB_KEY_BYTES)
void ph__put_keys(struct ph__wire_writer *writer, const struct ph_hub_key *keys, size_t num_keys);
ph_status ph__get_keys(const void *body, size_t size, struct ph__init_key **keys_out, size_t *num_keys_out);
/* Returns the keys of a layout, which the caller frees. NULL: no memory. */
struct ph__layout_key *ph__layout_keys(const struct ph__init_key *keys, size_t num_keys);
ph_status ph__get_layout(const void *body, size_t size, struct ph__job_layout *layout_out);

/* ---- service_rules.c ---- */

/* Checks the rules of phloem/hub.h for a service: PH_ERROR_USAGE naming what is wrong. */
ph_status ph__service_check(const struct ph_hub_service *service);
ph_status ph__service_check_name(const char *name); /* the name alone */
/* Checks the rules for a service that several hubs share. PH_ERROR_USAGE. */
ph_status ph__service_check_share(const struct ph_hub_service *service, const struct ph__hub_share *share);

/* Copies a service that was checked. Members that its mode or an optimizer's kind does not use become 0. */
void ph__service_copy(const struct ph_hub_service *service, const struct ph__hub_share *share,
    struct ph__service_settings *settings_out);
/* Returns true if two copies are the same service and share, as they are sent and kept in checkpoints. */
bool ph__service_is_same(const struct ph__service_settings *a, const struct ph__service_settings *b);

const char *ph__service_mode_name(enum ph_hub_mode mode); /* "synchronous" ...; static */

/* ---- handshake.c: both sides' proof of a secret, between greeting and welcome (net/authenticate.h) ---- */

/* Makes the hub's answer to a greeting. */
ph_status ph__handshake_challenge(const struct ph__secret *secret, const void *hello, size_t hello_size,
    struct ph__challenge *challenge_out, struct ph__server_challenge *answer_out);

/* Checks the hub's proof in its answer to the worker's greeting, and makes the worker's proof. */
ph_status ph__handshake_prove(const struct ph__secret *secret, const void *hello, size_t hello_size,
    const struct ph__server_challenge *answer, struct ph__challenge *challenge_out,
    unsigned char proof_out[PH_PROOF_BYTES]);

/* Adds tags to all frames of the stream from now on, when both sides have proved the secret. */
ph_status ph__handshake_protect(const struct ph__secret *secret, const struct ph__challenge *challenge,
    enum ph__side self, struct ph__control_stream *stream);

#endif
