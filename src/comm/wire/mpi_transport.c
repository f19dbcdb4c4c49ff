/* MPI as a transport: a plugin, which transport_open.c loads.
 *
 * Compiled once against each library's mpi.h, since an MPI_Request is a pointer in one and a number in the
 * other; nothing else here depends on that. Messages travel on a communicator of our own, so that a program
 * may use MPI beside us; a program that has initialised MPI itself also finalizes it.
 *
 * MPI has no way to leave a job in which a rank has failed: MPI_Finalize waits for the dead, and MPI_Abort
 * kills ranks that still have something to report. So after a failure neither is called, and the process ends
 * with its own exit code. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "comm/wire/transport.h"

#define IS_SENT UINT64_MAX /* a request's spare word: no received message has so many bytes */
#define MOST_TEXT 200      /* of MPI's text, to leave room for its subject */

struct job {
    MPI_Comm comm;
    bool is_ours; /* MPI was not initialised before */
    char name[64];
};

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a request fits into a transport's word");

/* Writes why `doing` has failed, in one line, and returns false. */
static bool fail(char error[PH_TRANSPORT_ERROR_BYTES], const char *doing, int code)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    text[strcspn(text, "\n")] = '\0'; /* MPICH goes on with a trace of its own functions */
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "%s: %.*s", doing, MOST_TEXT, text);
    return false;
}

static struct ph__transport_request wrap(MPI_Request request, uint64_t spare)
{
    struct ph__transport_request wrapped = {.spare = spare};
    memcpy(&wrapped.word, &request, sizeof request);
    return wrapped;
}

static bool send_message(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct job *job = context;
    MPI_Request request;
    const int code = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, tag, job->comm, &request);
    if (code != MPI_SUCCESS)
        return fail(error, "MPI_Isend", code);
    *request_out = wrap(request, IS_SENT);
    return true;
}

static bool receive_message(void *context, size_t from, int tag, void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct job *job = context;
    MPI_Request request;
    const int code = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, tag, job->comm, &request);
    if (code != MPI_SUCCESS)
        return fail(error, "MPI_Irecv", code);
    *request_out = wrap(request, bytes);
    return true;
}

/* Writes why a request has failed, and returns false. Open MPI 4 has by then written the whole message, also
 * beyond the end of its memory. */
static bool fail_to_pass(char error[PH_TRANSPORT_ERROR_BYTES], uint64_t wanted_bytes, int code)
{
    int class = MPI_SUCCESS;
    if (MPI_Error_class(code, &class) != MPI_SUCCESS || class != MPI_ERR_TRUNCATE)
        return fail(error, "MPI_Test", code);
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "a message has more than the expected %llu bytes",
        (unsigned long long)wanted_bytes);
    return false;
}

static bool has_length(const MPI_Status *status, uint64_t wanted_bytes, char error[PH_TRANSPORT_ERROR_BYTES])
{
    int bytes = 0;
    const int code = MPI_Get_count(status, MPI_BYTE, &bytes);
    if (code != MPI_SUCCESS)
        return fail(error, "MPI_Get_count", code);
    if ((uint64_t)bytes == wanted_bytes)
        return true;
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "a message has %d bytes instead of the expected %llu", bytes,
        (unsigned long long)wanted_bytes);
    return false;
}

static bool test_request(void *context, struct ph__transport_request *request, bool *is_done_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    (void)context;
    MPI_Request inner;
    MPI_Status status;
    int is_done = 0;
    memcpy(&inner, &request->word, sizeof inner);
    const int code = MPI_Test(&inner, &is_done, &status);
    if (code != MPI_SUCCESS)
        return fail_to_pass(error, request->spare, code);
    if (is_done && request->spare != IS_SENT && !has_length(&status, request->spare, error))
        return false;
    *request = wrap(inner, request->spare);
    *is_done_out = is_done != 0;
    return true;
}

/* Tells Hydra, and other launchers with its simple protocol, that this process is through with MPI: otherwise
 * Hydra kills all ranks with SIGKILL as soon as one has exited, whatever they are doing. Open MPI's mpirun
 * has no such message: it sends SIGTERM a second later, SIGKILL after one more. */
static void sign_off(void)
{
    static const char words[] = "cmd=finalize\n";
    char answer[64];
    const char *descriptor = getenv("PMI_FD");
    if (descriptor == NULL)
        return;
    const int launcher = atoi(descriptor);
    if (write(launcher, words, sizeof words - 1) != (ssize_t)(sizeof words - 1))
        return;
    while (read(launcher, answer, sizeof answer) < 0 && errno == EINTR) {
        /* a signal came first; leaving without the answer would end Hydra's proxy, and with it the other
         * ranks */
    }
}

/* Closes the transport. After a failure the job's memory stays, since messages may still be on their way. */
static void leave(void *context, bool is_clean)
{
    struct job *job = context;
    if (!is_clean) {
        sign_off();
        return;
    }
    MPI_Comm_free(&job->comm);
    if (job->is_ours)
        MPI_Finalize();
    free(job);
}

/* Returns true when this process may read its own memory in the way in which ranks of a host read each
 * other's. */
static bool may_read_across(void)
{
    char from = 0, to = 0;
    const struct iovec local = {&to, 1}, remote = {&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* Raises Open MPI's TCP limits. A message of up to the eager limit is sent at once. A longer one waits until
 * its receiver has looked, and then its sender again, and both look only between operators: a layer's
 * gradients would travel after backward, not during it. Open MPI's own limits are 64 and 128 KiB; the second
 * may not be below the first. */
static void prepare_tcp(void)
{
    static const char eager[] = "OMPI_MCA_btl_tcp_eager_limit", most[] = "OMPI_MCA_btl_tcp_max_send_size";
    if (getenv(eager) != NULL || getenv(most) != NULL)
        return;
    setenv(eager, "4194304", 0);
    setenv(most, "8388608", 0);
}

/* Returns true when Hydra says that all ranks are on one host. */
static bool is_one_host(void)
{
    const char *ranks = getenv("PMI_SIZE"), *neighbours = getenv("MPI_LOCALNRANKS");
    return ranks != NULL && neighbours != NULL && strcmp(ranks, neighbours) == 0;
}

/* Prepares for containers that forbid ranks to read each other's memory. Open MPI 4 finds out in the middle
 * of a message. UCX, below MPICH, then uses TCP also between ranks of one host, and may hang when it closes
 * the connection (openucx/ucx, issue 8738). */
static void prepare_container(void)
{
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    if (is_one_host())
        setenv("UCX_TLS", "self,sm", 0);
}

/* Sets variables that the libraries read when they are initialised; values that a user has set stay. An idle
 * rank of Open MPI then offers its processor to others, since waiting is polling. */
static void prepare_environment(void)
{
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    prepare_tcp();
    if (!may_read_across())
        prepare_container();
}

/* Writes "Open MPI 4.1.4", "MPICH 4.0.2", or the first line of another library's version. */
static void name_library(char *name_out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "", version[32];
    int length = 0;
    MPI_Get_library_version(text, &length);
    if (sscanf(text, "Open MPI v%31[0-9.]", version) == 1)
        snprintf(name_out, size, "Open MPI %s", version);
    else if (sscanf(text, "MPICH Version: %31s", version) == 1)
        snprintf(name_out, size, "MPICH %s", version);
    else
        snprintf(name_out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

static bool initialise(bool *is_ours_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    int is_initialised = 0, is_finalized = 0, threads = MPI_THREAD_SINGLE;
    MPI_Initialized(&is_initialised);
    MPI_Finalized(&is_finalized);
    if (is_finalized) {
        snprintf(
            error, PH_TRANSPORT_ERROR_BYTES, "this process has finalized MPI already and cannot join again");
        return false;
    }
    if (!is_initialised) {
        prepare_environment();
        const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
        if (code != MPI_SUCCESS)
            return fail(error, "MPI_Init_thread", code);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    *is_ours_out = !is_initialised;
    MPI_Query_thread(&threads);
    if (threads >= MPI_THREAD_FUNNELED)
        return true;
    snprintf(error, PH_TRANSPORT_ERROR_BYTES,
        "MPI supports no threads (MPI_THREAD_SINGLE); it must support MPI_THREAD_FUNNELED");
    return false;
}

/* Makes a communicator of our own, which returns its errors, and fills the table. */
static bool found(struct job *job, struct ph__transport *transport_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    int rank = 0, size = 0, code;
    if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &job->comm)) != MPI_SUCCESS ||
        (code = MPI_Comm_set_errhandler(job->comm, MPI_ERRORS_RETURN)) != MPI_SUCCESS ||
        (code = MPI_Comm_rank(job->comm, &rank)) != MPI_SUCCESS ||
        (code = MPI_Comm_size(job->comm, &size)) != MPI_SUCCESS)
        return fail(error, "a communicator", code);
    name_library(job->name, sizeof job->name);
    *transport_out = (struct ph__transport){
        .context = job,
        .rank = (size_t)rank,
        .world_size = (size_t)size,
        .name = job->name,
        .send = send_message,
        .receive = receive_message,
        .test = test_request,
        .close = leave,
    };
    return true;
}

static bool join(struct ph__transport *transport_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        snprintf(error, PH_TRANSPORT_ERROR_BYTES, "out of memory");
        return false;
    }
    if (initialise(&job->is_ours, error) && found(job, transport_out, error))
        return true;
    free(job);
    return false;
}

extern const struct ph__transport_plugin ph__transport_plugin;
const struct ph__transport_plugin ph__transport_plugin = {PH_TRANSPORT_VERSION, join};
