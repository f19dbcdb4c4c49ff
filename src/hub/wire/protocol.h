/* What a worker and a hub say to each other over their control connection: types of frames
 * (net/control_stream.h) and their bodies.
 *
 *     worker                      hub
 *     HELLO           ->
 *                     <-          CHALLENGE, if the hub has a secret
 *     PROOF           ->
 *                     <-          WELCOME; with a secret all frames have tags from here on
 * (net/control_stream.h) CREATE, DESTROY ->          ANSWER STATUS          ->          STATUS_TEXT: JSON
 * (server_status.c) END_SERVICE     ->          ANSWER; of a service's name alone, over the local socket JOIN
 * ->          JOINED INIT            ->          LAYOUT, when all workers have said the same INIT; of several
 * hubs only when rank 0 has chosen:
 *                     <-              PARTS, to rank 0, instead of LAYOUT: the parts of the job's checkpoints
 * that are here FROM            ->              the iteration of the parts that the job goes on from, or
 * PH_NO_ITERATION; or rank 0 says ANSWER          ->              why the job cannot go on, to all hubs: an
 * error that all workers hear LINKED          ->          BEGIN, when all have ASSIGNED        -> GO, when
 * all have: rank 0's parameters are there CHECKPOINT      ->          ANSWER. To several hubs with the
 * worker's iteration, for hubs that have no chunk
 *                     <-          SAVED, to the worker of the lowest rank that is there, where several hubs
 * share the keys: a checkpoint is on the disk, or will not be (struct ph__saved in part_list.h) KEEP -> when
 * it has heard SAVED of all hubs, to all: which parts to keep, and the next iteration to make parts of
 * (struct ph__keep) LEAVE           ->          ANSWER ATTACH          ->          ANSWER; from then on the
 * connection is a link to one core thread (net/link/tcp_link.h). It goes to the address that LAYOUT has for
 * the core thread, or where the control connection goes
 *                     <-          FAILED, at any time: the job is over for this worker
 *
 * An ANSWER that is an error may come instead of any other. Every body is checked when it is read: what comes
 * out of a get function keeps the limits of phloem/hub.h. Texts are borrowed by nobody: they are copied. */
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
#define PH_HUB_MAX_ITERATION (1ull << 62) /* that is told in a frame */
#define PH_HUB_MAX_CORES 128              /* threads of a hub */
/* Of messages, each way of a link to a core thread that has all chunks, each with two pushes, new learning
 * rates for them, a pull and an assignment. */
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

/* A service as it is kept: with copies of what phloem/hub.h borrows. */
struct ph__service_settings {
    char name[PH_HUB_MAX_NAME + 1];
    struct ph_hub_service service; /* name and optimizers point to the copies */
    struct ph_hub_optimizer optimizers[PH_HUB_MAX_OPTIMIZERS];
    struct ph__hub_share share; /* what this hub has of the job's keys */
};

/* How a worker is connected and, where it is TCP, why. A worker and its hub tell the same. */
enum ph__way {
    PH_WAY_UNREACHED, /* TCP: the hub's local socket is not to be reached from where the worker is */
    PH_WAY_SHARED,    /* shared memory: joined over the local socket */
    PH_WAY_ASKED_FOR, /* TCP, as the worker's options say */
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
    bool has_own_parameters; /* also where the mode demands it */
};

struct ph__init_key {
    uint64_t num_elements;
    enum ph_dtype dtype;
    uint32_t optimizer;
};

struct ph__job_layout {
    uint32_t chunk_bytes, num_versions, ring_capacity;
    uint16_t num_cores;
    bool is_restored;   /* parameters are there already */
    bool is_crowded;    /* threads outnumber the processors of the host, which is the worker's, too */
    uint64_t cores_sum; /* a checksum of which core thread has which chunk */
    uint64_t token;     /* what data connections show */
    uint64_t iteration; /* that all keys go on from */
    /* (num_cores) Addresses of the hub, in digits, that data connections go to, at the port of the control
     * connection; "": where that goes. */
    char hosts[PH_HUB_MAX_CORES][PH_HOST_BYTES];
};

/* Writers; the sizes of bodies are bounded by PH_HUB_MAX_BODY but for INIT's and LAYOUT's. */
#define PH_HUB_MAX_BODY 4096
void ph__put_hello(struct ph__wire_writer *writer, const struct ph__hello *hello);
void ph__put_server_challenge(struct ph__wire_writer *writer, const struct ph__server_challenge *challenge);
void ph__put_attach(struct ph__wire_writer *writer, const struct ph__attach *attach);
void ph__put_welcome(struct ph__wire_writer *writer, const struct ph__welcome *welcome);
/* Any text: what is too long is cut, and '?' stands for what is not UTF-8. */
void ph__put_answer(struct ph__wire_writer *writer, ph_status status, const char *text);
void ph__put_service(
    struct ph__wire_writer *writer, const struct ph_hub_service *service, const struct ph__hub_share *share);
void ph__put_join(struct ph__wire_writer *writer, const struct ph__join *join);
void ph__put_joined(struct ph__wire_writer *writer, const struct ph__joined *joined);
void ph__put_layout(struct ph__wire_writer *writer, const struct ph__job_layout *layout);
/* STATUS and END_SERVICE. "": all services. */
void ph__put_service_name(struct ph__wire_writer *writer, const char *service);

/* Readers: PH_ERROR_PEER, or PH_ERROR_USAGE for a service that nobody can have. */
ph_status ph__get_hello(const void *body, size_t size, struct ph__hello *hello_out);
ph_status ph__get_server_challenge(const void *body, size_t size, struct ph__server_challenge *challenge_out);
ph_status ph__get_proof(const void *body, size_t size, unsigned char proof_out[PH_PROOF_BYTES]);
ph_status ph__get_attach(const void *body, size_t size, struct ph__attach *attach_out);
ph_status ph__get_welcome(const void *body, size_t size, struct ph__welcome *welcome_out);
ph_status ph__get_answer(
    const void *body, size_t size, struct ph__answer *answer_out); /* an error has a text */
ph_status ph__get_failure(
    const void *body, size_t size, struct ph__answer *answer_out); /* what is no error is refused */
ph_status ph__get_service(const void *body, size_t size, struct ph__service_settings *settings_out);
ph_status ph__get_join(const void *body, size_t size, struct ph__join *join_out);
ph_status ph__get_joined(const void *body, size_t size, struct ph__joined *joined_out);
ph_status ph__get_service_name(const void *body, size_t size, char service_out[PH_HUB_MAX_NAME + 1]);

/* The end of any body: PH_ERROR_PEER, naming what it was, unless it was read whole and had all that was read.
 */
ph_status ph__body_finish(const struct ph__wire_reader *reader, const char *what);

/* INIT is an array of keys, which are read into what the caller frees. */
#define PH_HUB_KEY_BYTES 13                                      /* of a key in INIT */
#define PH_HUB_HOST_BYTES (sizeof(uint16_t) + PH_HOST_BYTES - 1) /* of a core thread in LAYOUT, at most */
#define PH_HUB_MAX_KEYS_BODY (PH_LAYOUT_MAX_KEYS * PH_HUB_KEY_BYTES)
void ph__put_keys(struct ph__wire_writer *writer, const struct ph_hub_key *keys, size_t num_keys);
ph_status ph__get_keys(const void *body, size_t size, struct ph__init_key **keys_out, size_t *num_keys_out);
/* What a layout is made of; the caller frees it. NULL: no memory. */
struct ph__layout_key *ph__layout_keys(const struct ph__init_key *keys, size_t num_keys);
ph_status ph__get_layout(const void *body, size_t size, struct ph__job_layout *layout_out);

/* ---- service_rules.c ---- */

/* What phloem/hub.h says of a service: PH_ERROR_USAGE naming what is wrong. */
ph_status ph__service_check(const struct ph_hub_service *service);
ph_status ph__service_check_name(const char *name); /* of these its name alone */
/* ... and of one that several hubs share. */
ph_status ph__service_check_share(const struct ph_hub_service *service, const struct ph__hub_share *share);

/* Of a service that was checked. What its mode or an optimizer's kind makes no use of becomes 0. */
void ph__service_copy(const struct ph_hub_service *service, const struct ph__hub_share *share,
    struct ph__service_settings *settings_out);
/* Whether two copies are of the same service, in the same share: as they are sent, and kept in checkpoints.
 */
bool ph__service_is_same(const struct ph__service_settings *a, const struct ph__service_settings *b);

const char *ph__service_mode_name(enum ph_hub_mode mode); /* "synchronous" ...; static */

/* ---- handshake.c: the proof of a secret, between greeting and welcome (net/authenticate.h), as both sides
 * do it ---- */

/* The hub has a greeting: makes what it answers. */
ph_status ph__handshake_challenge(const struct ph__secret *secret, const void *hello, size_t hello_size,
    struct ph__challenge *challenge_out, struct ph__server_challenge *answer_out);

/* The worker has the hub's answer to its own greeting: checks the hub's proof and makes its own. */
ph_status ph__handshake_prove(const struct ph__secret *secret, const void *hello, size_t hello_size,
    const struct ph__server_challenge *answer, struct ph__challenge *challenge_out,
    unsigned char proof_out[PH_PROOF_BYTES]);

/* Both have proved what they know: frames of the stream carry tags from now on. */
ph_status ph__handshake_protect(const struct ph__secret *secret, const struct ph__challenge *challenge,
    enum ph__side self, struct ph__control_stream *stream);

#endif
