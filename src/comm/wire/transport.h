/* Carries messages between the ranks of a job: one table of functions, which a plugin fills.
 *
 * A plugin is a shared object that knows one MPI library and nothing of libphloem: it is compiled from
 * mpi_transport.c, once for each library, and loaded by transport_open.c. Tests fill the same table with
 * queues between threads, and sim/ with simulated messages. So this header includes no other of ours, and
 * errors are text.
 *
 * Messages between two ranks with the same tag arrive in the order in which they were started; other messages
 * have no order. All calls come from one thread (MPI_THREAD_FUNNELED). Only open and close wait. */
#ifndef PH_COMM_TRANSPORT_H
#define PH_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH_TRANSPORT_VERSION 3u
#define PH_TRANSPORT_SYMBOL "ph__transport_plugin" /* const struct ph__transport_plugin */
#define PH_TRANSPORT_MAX_TAG 32767                 /* MPI guarantees no more */
#define PH_TRANSPORT_MAX_BYTES ((size_t)1 << 30)   /* of one message: MPI counts in int */
#define PH_TRANSPORT_ERROR_BYTES 256

/* A message in flight, in the caller's memory; the transport's word identifies it. */
struct ph__transport_request {
    void *word;     /* MPI: the MPI_Request, in as many bytes as it has */
    uint64_t spare; /* for the transport's use */
};

struct ph__transport {
    void *context; /* passed to each function */
    size_t rank, world_size;
    const char *name; /* "Open MPI 4.1.4"; until close */
    const char *host; /* name of the rank's machine, until close; NULL: the system's */

    /* These return false after an error, with one line of text in `error`. The data are borrowed until the
     * request is done; bytes <= PH_TRANSPORT_MAX_BYTES, 0 is a message as well, and a rank may send to
     * itself. */
    bool (*send)(void *context, size_t to, int tag, const void *data, size_t bytes,
        struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES]);
    /* The message must have exactly `bytes` bytes: test fails on another length. */
    bool (*receive)(void *context, size_t from, int tag, void *data, size_t bytes,
        struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES]);
    /* Makes progress; the caller may reuse a request that is done. */
    bool (*test)(void *context, struct ph__transport_request *request, bool *is_done_out,
        char error[PH_TRANSPORT_ERROR_BYTES]);

    /* Called before requests are tested for which the rank does not wait: what has happened by now is then
     * known. NULL: it always is. */
    void (*look)(void *context);
    /* Passes time until a message may be done. NULL: the caller passes it as it likes. */
    void (*idle)(void *context);

    /* is_clean: all ranks have met to close, and nothing is on its way; close may wait for them, without a
     * limit and without learning of deaths. Else close takes no further part in the job: pending requests are
     * given up, and their memory must stay until the process ends. */
    void (*close)(void *context, bool is_clean);
};

struct ph__transport_plugin {
    uint32_t version; /* PH_TRANSPORT_VERSION */
    /* Joins the job that the launcher has made. */
    bool (*open)(struct ph__transport *transport_out, char error[PH_TRANSPORT_ERROR_BYTES]);
};

#endif
