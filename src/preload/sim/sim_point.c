/* Messages between two ranks, and requests. */
#include "preload/sim/sim_mpi.h"

/* Requests have handles that neither library uses. */
#define HANDLE_BASE 4096
#define HANDLE(number) ((MPI_Request)(intptr_t)(HANDLE_BASE + (number)))
#define NUMBER(handle) ((int32_t)((intptr_t)(handle)-HANDLE_BASE))

static struct ph__request request_of(
    const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    struct ph__request request = {.peer = peer == MPI_PROC_NULL ? PH_RUN_NOBODY : PH_RUN_ANY,
        .tag = tag == MPI_ANY_TAG ? PH_RUN_ANY : tag,
        .context = comm->context,
        .buffer = {(void *)(uintptr_t)data, count, type},
        .comm = comm};
    if (peer == MPI_PROC_NULL || peer == MPI_ANY_SOURCE)
        return request;
    if (peer < 0 || peer >= comm->size)
        ph__process_fail(
            2, "rank %u names rank %d of a communicator of %d", ph__process()->rank, peer, comm->size);
    request.peer = comm->ranks[peer];
    return request;
}

static void fill_status(
    MPI_Status *status, const struct ph__sim_comm *comm, const struct ph__run_result *result)
{
    if (status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE)
        return;
    int source = 0;
    while (result->source != PH_RUN_ANY && comm->ranks[source] != result->source)
        source++;
    status->MPI_SOURCE = result->source == PH_RUN_ANY ? MPI_PROC_NULL : source;
    status->MPI_TAG = result->tag == PH_RUN_ANY ? MPI_ANY_TAG : result->tag;
    PMPI_Status_set_elements(status, MPI_BYTE, (int)result->bytes);
    PMPI_Status_set_cancelled(status, 0);
}

static void fill_empty_status(MPI_Status *status)
{
    static const struct ph__run_result nothing = {.source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    fill_status(status, NULL, &nothing);
    if (status != MPI_STATUS_IGNORE)
        status->MPI_SOURCE = MPI_ANY_SOURCE;
}

/* ---- blocking ---- */

static int send(struct ph__request request, bool is_synchronous)
{
    ph__process_enter();
    request.is_synchronous = is_synchronous;
    ph__request_send(request);
    return ph__sim_leave();
}

static int begin(struct ph__request request, bool is_send, bool is_synchronous, MPI_Request *handle_out)
{
    ph__process_enter();
    request.is_send = is_send;
    request.is_synchronous = is_synchronous;
    *handle_out = HANDLE(ph__request_begin(request));
    return ph__sim_leave();
}

static int prepare(struct ph__request request, bool is_send, bool is_synchronous, MPI_Request *handle_out)
{
    request.is_send = is_send;
    request.is_synchronous = is_synchronous;
    request.is_persistent = true;
    *handle_out = HANDLE(ph__request_add(request));
    return MPI_SUCCESS;
}

#define SENDS(name, start_name, prepare_name, is_synchronous)                                            \
    PH_MPI(name, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)         \
    {                                                                                                    \
        return send(request_of(data, count, type, to, tag, comm), is_synchronous);                       \
    }                                                                                                    \
    PH_MPI(start_name, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,   \
        MPI_Request *handle_out)                                                                         \
    {                                                                                                    \
        return begin(request_of(data, count, type, to, tag, comm), true, is_synchronous, handle_out);    \
    }                                                                                                    \
    PH_MPI(prepare_name, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
        MPI_Request *handle_out)                                                                         \
    {                                                                                                    \
        return prepare(request_of(data, count, type, to, tag, comm), true, is_synchronous, handle_out);  \
    }
SENDS(Send, Isend, Send_init, false)
SENDS(Rsend, Irsend, Rsend_init, false)
SENDS(Ssend, Issend, Ssend_init, true)

PH_MPI(Irecv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
    MPI_Request *handle_out)
{
    return begin(request_of(data, count, type, from, tag, comm), false, false, handle_out);
}

PH_MPI(Recv_init, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
    MPI_Request *handle_out)
{
    return prepare(request_of(data, count, type, from, tag, comm), false, false, handle_out);
}

/* Receives, and sends before that if there is anything to send, which the receive may overwrite. */
static int receive(struct ph__request request, struct ph__request *sent, MPI_Status *status)
{
    int32_t numbers[2], count = 0;
    ph__process_enter();
    if (sent != NULL) {
        sent->is_send = true;
        numbers[count++] = ph__request_begin(*sent);
    }
    numbers[count++] = ph__request_begin(request);
    const struct ph__run_result result = ph__request_finish_all(numbers, (size_t)count);
    fill_status(status, request.comm, &result);
    return ph__sim_leave();
}

PH_MPI(Recv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    return receive(request_of(data, count, type, from, tag, comm), NULL, status);
}

PH_MPI(Sendrecv, const void *data, int count, MPI_Datatype type, int to, int tag, void *data_out, int most,
    MPI_Datatype type_out, int from, int tag_out, MPI_Comm comm, MPI_Status *status)
{
    struct ph__request sent = request_of(data, count, type, to, tag, comm);
    return receive(request_of(data_out, most, type_out, from, tag_out, comm), &sent, status);
}

PH_MPI(Sendrecv_replace, void *data, int count, MPI_Datatype type, int to, int tag, int from, int tag_out,
    MPI_Comm comm, MPI_Status *status)
{
    struct ph__request sent = request_of(data, count, type, to, tag, comm);
    return receive(request_of(data, count, type, from, tag_out, comm), &sent, status);
}

static bool probe(int from, int tag, MPI_Comm handle, bool is_test, MPI_Status *status)
{
    const struct ph__request request = request_of(NULL, 0, MPI_BYTE, from, tag, handle);
    struct ph__run_result result = {.is_done = true, .source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    ph__process_enter();
    if (request.peer != PH_RUN_NOBODY) {
        ph__process_ask((struct ph__run_record){.kind = PH_RUN_PROBE,
            .is_test = is_test,
            .peer = request.peer,
            .tag = request.tag,
            .context = request.context});
        result = ph__process()->own->probed;
    }
    if (result.is_done)
        fill_status(status, request.comm, &result);
    ph__sim_leave();
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

/* ---- requests ---- */

/* Returns a handle's request; NULL: it is MPI_REQUEST_NULL. */
static struct ph__request *find(MPI_Request handle)
{
    if (handle == MPI_REQUEST_NULL)
        return NULL;
    struct ph__request *request = ph__request_at(NUMBER(handle));
    if (request == NULL)
        ph__process_fail(2, "rank %u uses a request that it does not have", ph__process()->rank);
    return request;
}

PH_MPI(Startall, int count, MPI_Request *handles)
{
    ph__process_enter();
    for (int i = 0; i < count; i++)
        if (find(handles[i]) != NULL)
            ph__request_start(NUMBER(handles[i]));
    return ph__sim_leave();
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
        ph__request_remove(NUMBER(*handle));
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
    const struct ph__sim_comm *comm = request->comm;
    const bool is_send = request->is_send, is_persistent = request->is_persistent;
    if (!ph__request_take(NUMBER(completion->handles[i]), &result))
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

static void complete(struct completion *completion)
{
    ph__process_enter();
    for (int i = 0; i < completion->count; i++)
        if (active_at(completion, i) != NULL) {
            completion->num_active++;
            ph__request_watch(NUMBER(completion->handles[i]));
        }
    if (completion->num_active > 0)
        ph__process_ask((struct ph__run_record){
            .kind = PH_RUN_WAIT, .mode = completion->mode, .is_test = completion->is_test});
    for (int i = 0; i < completion->count; i++)
        take(completion, i);
    ph__sim_leave();
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
