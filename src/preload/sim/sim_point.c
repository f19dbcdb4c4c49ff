/* Messages between two ranks, and requests. */
#include <limits.h>
#include <string.h>

#include "preload/sim/sim_mpi.h"

static struct ph__request request_of(
    const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const size_t bytes = (size_t)count * ph__sim_type(type)->extent;
    struct ph__request request = {.is_nobody = peer == MPI_PROC_NULL,
        .peer = PH_RUN_ANY,
        .tag = tag == MPI_ANY_TAG ? PH_RUN_ANY : tag,
        .context = comm->context,
        .runs = {(char *)(uintptr_t)data, bytes, bytes, bytes},
        .communicator = comm};
    if (request.is_nobody || peer == MPI_ANY_SOURCE)
        return request;
    if (peer < 0 || peer >= comm->size || count < 0)
        ph__process_fail(2, "rank %u names rank %d of a communicator of %d, and %d items",
            ph__process()->rank, peer, comm->size, count);
    if (bytes > INT_MAX)
        ph__process_fail(2, "messages of 2 GiB and more are not simulated (rank %u)", ph__process()->rank);
    request.peer = comm->ranks[peer];
    return request;
}

static int32_t start(struct ph__request request, bool is_send, bool is_synchronous)
{
    request.is_send = is_send;
    request.is_synchronous = is_synchronous;
    const int32_t number = ph__request_add(&request);
    ph__request_start(number);
    return number;
}

static void fill_status(
    MPI_Status *status, const struct ph__sim_comm *comm, const struct ph__run_result *result)
{
    if (status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE)
        return;
    int source = 0;
    while (result->source != PH_RUN_ANY && comm->ranks[source] != result->source)
        source++;
    memset(status, 0, sizeof *status);
    status->MPI_SOURCE = result->source == PH_RUN_ANY ? MPI_PROC_NULL : source;
    status->MPI_TAG = result->tag == PH_RUN_ANY ? MPI_ANY_TAG : result->tag;
    status->PH_STATUS_BYTES = (__typeof(status->PH_STATUS_BYTES))result->bytes;
}

static void fill_empty_status(MPI_Status *status)
{
    static const struct ph__run_result nothing = {.source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    fill_status(status, NULL, &nothing);
    if (status != MPI_STATUS_IGNORE)
        status->MPI_SOURCE = MPI_ANY_SOURCE;
}

/* ---- blocking ---- */

static int send_and_wait(struct ph__request request, bool is_synchronous)
{
    ph__process_enter();
    request.is_send = true;
    request.is_synchronous = is_synchronous;
    if (!ph__request_send_eagerly(&request)) {
        const int32_t number = start(request, true, is_synchronous);
        (void)ph__request_finish_all(&number, 1);
    }
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Send, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return send_and_wait(request_of(data, count, type, to, tag, comm), false);
}

PH_MPI(Rsend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return send_and_wait(request_of(data, count, type, to, tag, comm), false);
}

PH_MPI(Ssend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return send_and_wait(request_of(data, count, type, to, tag, comm), true);
}

PH_MPI(Recv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    ph__process_enter();
    const int32_t number = start(request_of(data, count, type, from, tag, comm), false, false);
    const struct ph__run_result result = ph__request_finish_all(&number, 1);
    fill_status(status, ph__sim_comm(comm), &result);
    ph__process_leave();
    return MPI_SUCCESS;
}

static int send_and_receive(
    struct ph__request send, struct ph__request receive, const struct ph__sim_comm *comm, MPI_Status *status)
{
    ph__process_enter();
    const int32_t to = start(send, true, false); /* copies what the receive may overwrite */
    const int32_t numbers[] = {to, start(receive, false, false)};
    const struct ph__run_result result = ph__request_finish_all(numbers, 2);
    fill_status(status, comm, &result);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Sendrecv, const void *data, int count, MPI_Datatype type, int to, int tag, void *data_out, int most,
    MPI_Datatype type_out, int from, int tag_out, MPI_Comm comm, MPI_Status *status)
{
    return send_and_receive(request_of(data, count, type, to, tag, comm),
        request_of(data_out, most, type_out, from, tag_out, comm), ph__sim_comm(comm), status);
}

PH_MPI(Sendrecv_replace, void *data, int count, MPI_Datatype type, int to, int tag, int from, int tag_out,
    MPI_Comm comm, MPI_Status *status)
{
    return send_and_receive(request_of(data, count, type, to, tag, comm),
        request_of(data, count, type, from, tag_out, comm), ph__sim_comm(comm), status);
}

static bool probe(int from, int tag, MPI_Comm handle, bool is_test, MPI_Status *status)
{
    const struct ph__request request = request_of(NULL, 0, MPI_BYTE, from, tag, handle);
    struct ph__run_result result = {.is_done = true, .source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    ph__process_enter();
    if (!request.is_nobody) {
        ph__process_ask((struct ph__run_record){.kind = PH_RUN_PROBE,
            .is_test = is_test,
            .peer = request.peer,
            .tag = request.tag,
            .context = request.context});
        result = ph__process()->own->probed;
    }
    if (result.is_done)
        fill_status(status, request.communicator, &result);
    ph__process_leave();
    return result.is_done;
}

PH_MPI(Probe, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    (void)probe(from, tag, comm, false, status);
    return MPI_SUCCESS;
}

PH_MPI(Iprobe, int from, int tag, MPI_Comm comm, int *is_there_out, MPI_Status *status)
{
    *is_there_out = probe(from, tag, comm, true, status);
    return MPI_SUCCESS;
}

PH_MPI(Get_count, const MPI_Status *status, MPI_Datatype type, int *count_out)
{
    const size_t extent = ph__sim_type(type)->extent, bytes = (size_t)status->PH_STATUS_BYTES;
    *count_out = extent == 0 ? 0 : bytes % extent != 0 ? MPI_UNDEFINED : (int)(bytes / extent);
    return MPI_SUCCESS;
}

/* ---- not blocking ---- */

static int start_for(struct ph__request request, bool is_send, bool is_synchronous, MPI_Request *handle_out)
{
    ph__process_enter();
    *handle_out = PH_HANDLE(MPI_Request, start(request, is_send, is_synchronous));
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Isend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
    MPI_Request *request)
{
    return start_for(request_of(data, count, type, to, tag, comm), true, false, request);
}

PH_MPI(Irsend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
    MPI_Request *request)
{
    return start_for(request_of(data, count, type, to, tag, comm), true, false, request);
}

PH_MPI(Issend, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
    MPI_Request *request)
{
    return start_for(request_of(data, count, type, to, tag, comm), true, true, request);
}

PH_MPI(
    Irecv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    return start_for(request_of(data, count, type, from, tag, comm), false, false, request);
}

static int prepare(struct ph__request request, bool is_send, MPI_Request *handle_out)
{
    request.is_send = is_send;
    request.is_persistent = true;
    *handle_out = PH_HANDLE(MPI_Request, ph__request_add(&request));
    return MPI_SUCCESS;
}

PH_MPI(Send_init, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
    MPI_Request *request)
{
    return prepare(request_of(data, count, type, to, tag, comm), true, request);
}

PH_MPI(Recv_init, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
    MPI_Request *request)
{
    return prepare(request_of(data, count, type, from, tag, comm), false, request);
}

/* Returns a handle's request; NULL: it is MPI_REQUEST_NULL. */
static struct ph__request *find(MPI_Request handle)
{
    if (handle == MPI_REQUEST_NULL)
        return NULL;
    struct ph__request *request = ph__request_at((int32_t)PH_HANDLE_NUMBER(handle));
    if (request == NULL)
        ph__process_fail(2, "rank %u uses a request that it does not have", ph__process()->rank);
    return request;
}

PH_MPI(Startall, int count, MPI_Request *handles)
{
    ph__process_enter();
    for (int i = 0; i < count; i++)
        if (find(handles[i]) != NULL)
            ph__request_start((int32_t)PH_HANDLE_NUMBER(handles[i]));
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Start, MPI_Request *handle)
{
    return PMPI_Startall(1, handle);
}

/* Frees a request. The number of one that is under way is not used again, as its message still names it. */
PH_MPI(Request_free, MPI_Request *handle)
{
    const struct ph__request *request = find(*handle);
    if (request != NULL && !request->is_active)
        ph__request_remove((int32_t)PH_HANDLE_NUMBER(*handle));
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/* ---- completing ---- */

/* Requests that are to be completed, and where their results go. */
struct completion {
    int count;
    MPI_Request *handles;
    enum ph__run_mode mode;
    bool is_test;
    int *places_out;      /* of those that are done; NULL: not asked for */
    MPI_Status *statuses; /* in order of places_out; of ALL in that of the handles */
    int num_active, num_done;
};

static struct ph__request *active_at(const struct completion *completion, int i)
{
    struct ph__request *request = find(completion->handles[i]);
    return request != NULL && request->is_active ? request : NULL;
}

static MPI_Status *status_at(const struct completion *completion, int i)
{
    if (completion->statuses == MPI_STATUSES_IGNORE || completion->statuses == MPI_STATUS_IGNORE)
        return MPI_STATUS_IGNORE;
    return &completion->statuses[completion->mode == PH_RUN_ALL ? i : completion->num_done];
}

static void take(struct completion *completion, int i)
{
    const struct ph__request *request = active_at(completion, i);
    struct ph__run_result result;
    if (request == NULL) {
        if (completion->mode == PH_RUN_ALL)
            fill_empty_status(status_at(completion, i));
        return;
    }
    const struct ph__sim_comm *comm = request->communicator;
    const bool is_send = request->is_send, is_persistent = request->is_persistent;
    if (!ph__request_take((int32_t)PH_HANDLE_NUMBER(completion->handles[i]), &result))
        return;
    if (is_send)
        fill_empty_status(status_at(completion, i));
    else
        fill_status(status_at(completion, i), comm, &result);
    if (completion->places_out != NULL)
        completion->places_out[completion->num_done] = i;
    completion->num_done++;
    if (!is_persistent)
        completion->handles[i] = MPI_REQUEST_NULL;
}

/* Asks for the requests that the simulator knows; returns false where a test of all has failed. */
static bool ask(struct completion *completion)
{
    const struct ph__run_result *results = ph__process()->own->results;
    bool is_over = true;
    for (int i = 0; i < completion->count; i++)
        if (active_at(completion, i) != NULL)
            ph__request_watch((int32_t)PH_HANDLE_NUMBER(completion->handles[i]));
    ph__process_ask((struct ph__run_record){
        .kind = PH_RUN_WAIT, .mode = completion->mode, .is_test = completion->is_test});
    for (int i = 0; i < completion->count; i++) {
        const struct ph__request *request = active_at(completion, i);
        if (request != NULL && !request->is_nobody)
            is_over &= results[PH_HANDLE_NUMBER(completion->handles[i])].is_done;
    }
    return is_over || completion->mode != PH_RUN_ALL;
}

static void complete(struct completion *completion)
{
    int nobody = -1;
    ph__process_enter();
    for (int i = completion->count; i-- > 0;) {
        const struct ph__request *request = active_at(completion, i);
        completion->num_active += request != NULL;
        nobody = request != NULL && request->is_nobody ? i : nobody;
    }
    if (nobody >= 0 && completion->mode != PH_RUN_ALL)
        take(completion, nobody); /* done at once: nothing else need be */
    else if (completion->num_active == 0 || ask(completion))
        for (int i = 0; i < completion->count; i++)
            take(completion, i);
    ph__process_leave();
}

PH_MPI(Waitall, int count, MPI_Request *handles, MPI_Status *statuses)
{
    complete(&(struct completion){count, handles, PH_RUN_ALL, false, NULL, statuses, 0, 0});
    return MPI_SUCCESS;
}

PH_MPI(Wait, MPI_Request *handle, MPI_Status *status)
{
    return PMPI_Waitall(1, handle, status);
}

PH_MPI(Testall, int count, MPI_Request *handles, int *is_done_out, MPI_Status *statuses)
{
    struct completion completion = {count, handles, PH_RUN_ALL, true, NULL, statuses, 0, 0};
    complete(&completion);
    *is_done_out = completion.num_done == completion.num_active;
    return MPI_SUCCESS;
}

PH_MPI(Test, MPI_Request *handle, int *is_done_out, MPI_Status *status)
{
    return PMPI_Testall(1, handle, is_done_out, status);
}

PH_MPI(Testany, int count, MPI_Request *handles, int *place_out, int *is_done_out, MPI_Status *status)
{
    struct completion completion = {count, handles, PH_RUN_ONE, true, place_out, status, 0, 0};
    *place_out = MPI_UNDEFINED;
    complete(&completion);
    *is_done_out = completion.num_done > 0 || completion.num_active == 0;
    if (completion.num_active == 0)
        fill_empty_status(status);
    return MPI_SUCCESS;
}

PH_MPI(Waitany, int count, MPI_Request *handles, int *place_out, MPI_Status *status)
{
    struct completion completion = {count, handles, PH_RUN_ONE, false, place_out, status, 0, 0};
    *place_out = MPI_UNDEFINED;
    complete(&completion);
    if (completion.num_active == 0)
        fill_empty_status(status);
    return MPI_SUCCESS;
}

static int complete_some(
    int count, MPI_Request *handles, bool is_test, int *num_out, int *places_out, MPI_Status *statuses)
{
    struct completion completion = {count, handles, PH_RUN_SOME, is_test, places_out, statuses, 0, 0};
    complete(&completion);
    *num_out = completion.num_active > 0 ? completion.num_done : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

PH_MPI(Waitsome, int count, MPI_Request *handles, int *num_out, int *places_out, MPI_Status *statuses)
{
    return complete_some(count, handles, false, num_out, places_out, statuses);
}

PH_MPI(Testsome, int count, MPI_Request *handles, int *num_out, int *places_out, MPI_Status *statuses)
{
    return complete_some(count, handles, true, num_out, places_out, statuses);
}
