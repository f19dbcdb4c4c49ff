/* Messages round a ring of the reordered ranks, by each function that sends or receives. */
#include "reordered.h"

#include <stdlib.h>

enum { TAG = 7, BUFFER_BYTES = 65536 };

static int sent, received, left, right;
static MPI_Request request;

/* Starts to receive from the left, with a plain call, what `send` then sends to the right. */
static void expect(void)
{
    received = -1;
    MUST(MPI_Irecv(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &request));
    MUST(PMPI_Barrier(job.oracle)); /* ready sends need a receiver */
}

static void check_received(const MPI_Status *status)
{
    CHECK(received == job.former[left]);
    CHECK(status->MPI_SOURCE == left && status->MPI_TAG == TAG);
}

static void arrive(void)
{
    MPI_Status status;
    MUST(MPI_Wait(&request, &status));
    check_received(&status);
}

#define SEND(name) expect(), MUST(MPI_##name(&sent, 1, MPI_INT, right, TAG, MPI_COMM_WORLD)), arrive()
#define SEND_STARTED(name)                                                     \
    do {                                                                       \
        MPI_Request own;                                                       \
        expect();                                                              \
        MUST(MPI_##name(&sent, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &own)); \
        MUST(MPI_Wait(&own, MPI_STATUS_IGNORE));                               \
        arrive();                                                              \
    } while (0)
#define SEND_PERSISTENT(name)                                                  \
    do {                                                                       \
        MPI_Request own;                                                       \
        expect();                                                              \
        MUST(MPI_##name(&sent, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &own)); \
        MUST(MPI_Start(&own));                                                 \
        MUST(MPI_Wait(&own, MPI_STATUS_IGNORE));                               \
        MUST(MPI_Request_free(&own));                                          \
        arrive();                                                              \
    } while (0)

static void send_in_each_way(void)
{
    SEND(Bsend);
    SEND(Rsend);
    SEND(Send);
    SEND(Ssend);
    SEND_STARTED(Ibsend);
    SEND_STARTED(Irsend);
    SEND_STARTED(Isend);
    SEND_STARTED(Issend);
    SEND_PERSISTENT(Bsend_init);
    SEND_PERSISTENT(Rsend_init);
    SEND_PERSISTENT(Send_init);
    SEND_PERSISTENT(Ssend_init);
#if PH_MPICH
    SEND(Bsend_c);
    SEND(Rsend_c);
    SEND(Send_c);
    SEND(Ssend_c);
    SEND_STARTED(Ibsend_c);
    SEND_STARTED(Irsend_c);
    SEND_STARTED(Isend_c);
    SEND_STARTED(Issend_c);
    SEND_PERSISTENT(Bsend_init_c);
    SEND_PERSISTENT(Rsend_init_c);
    SEND_PERSISTENT(Send_init_c);
    SEND_PERSISTENT(Ssend_init_c);
#endif
}

/* Sends to the right; what follows receives. */
static MPI_Request depart(void)
{
    MPI_Request own;
    received = -1;
    MUST(MPI_Isend(&sent, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, &own));
    return own;
}

#define RECEIVE(call)                            \
    do {                                         \
        MPI_Status status;                       \
        MPI_Request own = depart();              \
        call;                                    \
        check_received(&status);                 \
        MUST(MPI_Wait(&own, MPI_STATUS_IGNORE)); \
    } while (0)

static void receive_persistent(MPI_Request receiving, MPI_Status *status)
{
    MUST(MPI_Start(&receiving));
    MUST(MPI_Wait(&receiving, status));
    MUST(MPI_Request_free(&receiving));
}

/* Receives the message that the status of a probe describes. */
static void receive_probed(MPI_Status *status)
{
    MUST(MPI_Recv(&received, 1, MPI_INT, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD, status));
}

static void receive_in_each_way(void)
{
    int is_there = 0;
    MPI_Message message;
    RECEIVE(MUST(MPI_Recv(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &status)));
    RECEIVE(MUST(MPI_Recv(&received, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status)));
    RECEIVE(MUST(MPI_Irecv(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &request));
            MUST(MPI_Wait(&request, &status)));
    RECEIVE(MUST(MPI_Recv_init(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &request));
            receive_persistent(request, &status));
    RECEIVE(MUST(MPI_Probe(left, TAG, MPI_COMM_WORLD, &status)); receive_probed(&status));
    RECEIVE(while (!is_there) MUST(MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &status));
            receive_probed(&status));
    is_there = 0;
    RECEIVE(MUST(MPI_Mprobe(left, TAG, MPI_COMM_WORLD, &message, &status));
            MUST(MPI_Mrecv(&received, 1, MPI_INT, &message, &status)));
    RECEIVE(while (!is_there) MUST(MPI_Improbe(left, TAG, MPI_COMM_WORLD, &is_there, &message, &status));
            MUST(MPI_Mrecv(&received, 1, MPI_INT, &message, &status)));
#if PH_MPICH
    RECEIVE(MUST(MPI_Recv_c(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &status)));
    RECEIVE(MUST(MPI_Irecv_c(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &request));
            MUST(MPI_Wait(&request, &status)));
    RECEIVE(MUST(MPI_Recv_init_c(&received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &request));
            receive_persistent(request, &status));
#endif
}

#define SENDRECV(name, last) \
    MUST(MPI_##name(&sent, 1, MPI_INT, right, TAG, &received, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, last))
#define SENDRECV_REPLACE(name, last) \
    received = sent;                 \
    MUST(MPI_##name(&received, 1, MPI_INT, right, TAG, left, TAG, MPI_COMM_WORLD, last))

static void send_and_receive(void)
{
    MPI_Status status;
    received = -1;
    SENDRECV(Sendrecv, &status);
    check_received(&status);
    SENDRECV_REPLACE(Sendrecv_replace, &status);
    check_received(&status);
#if PH_MPICH
    SENDRECV(Sendrecv_c, &status);
    check_received(&status);
    SENDRECV_REPLACE(Sendrecv_replace_c, &status);
    check_received(&status);
    SENDRECV(Isendrecv, &request);
    arrive();
    SENDRECV(Isendrecv_c, &request);
    arrive();
    SENDRECV_REPLACE(Isendrecv_replace, &request);
    arrive();
    SENDRECV_REPLACE(Isendrecv_replace_c, &request);
    arrive();
#endif
}

#if PH_MPICH
static void send_in_partitions(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    received = -1;
    MUST(MPI_Psend_init(&sent, 1, 1, MPI_INT, right, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    MUST(MPI_Precv_init(&received, 1, 1, MPI_INT, left, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    MUST(MPI_Startall(2, requests));
    MUST(MPI_Pready(0, requests[0]));
    MUST(MPI_Waitall(2, requests, statuses));
    CHECK(received == job.former[left]);
    MUST(MPI_Request_free(&requests[0]));
    MUST(MPI_Request_free(&requests[1]));
}
#endif

/* Packing needs the world for nothing but the form of its messages. */
static void pack(void)
{
    char buffer[64];
    int position = 0, size = 0, value = -1;
    MUST(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &size));
    MUST(MPI_Pack(&sent, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
    CHECK(size >= position && position > 0);
    position = 0;
    MUST(MPI_Unpack(buffer, sizeof buffer, &position, &value, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(value == sent);
#if PH_MPICH
    MPI_Count at = 0, bytes = 0;
    MUST(MPI_Pack_size_c(1, MPI_INT, MPI_COMM_WORLD, &bytes));
    MUST(MPI_Pack_c(&sent, 1, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD));
    CHECK(bytes >= at && at == position);
    at = 0;
    MUST(MPI_Unpack_c(buffer, sizeof buffer, &at, &value, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(value == sent);
#endif
}

void check_messages(void)
{
    static char buffer[BUFFER_BYTES];
    void *detached;
    int bytes;
    sent = job.former[job.rank];
    left = (job.rank + job.size - 1) % job.size;
    right = (job.rank + 1) % job.size;
    MUST(MPI_Buffer_attach(buffer, sizeof buffer));
    send_in_each_way();
    MUST(MPI_Buffer_detach(&detached, &bytes));
    receive_in_each_way();
    send_and_receive();
#if PH_MPICH
    send_in_partitions();
#endif
    pack();
}
