/* An MPI program that mpi_sim_run.sh runs under mpirun and under phloem sim run:
 *
 *   simulated_program WHAT [NUMBER]
 *
 * Collectives are compared with plain loops, on integers; each rank that finds a mistake prints it and ends
 * with 1. "times" and the failures are for the simulator alone. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, num_mistakes;

static void check(int is_right, const char *what, int number)
{
    if (!is_right && num_mistakes++ < 5)
        printf("rank %d of %d: %s is wrong (%d)\n", rank, size, what, number);
}

static int *ints(int count)
{
    int *data = calloc((size_t)count + 1, sizeof *data);
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 9);
    return data;
}

/* What a rank has at a place, different for all. */
static int number(int of_rank, int place)
{
    return (of_rank + 1) * 1000003 + place * 7919;
}

static void fill(int *data, int of_rank, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = number(of_rank, i);
}

/* ---- collectives ---- */

static void check_bcast_and_reduce(int count)
{
    int *data = ints(count), *sum = ints(count);
    for (int root = 0; root < size; root++) {
        fill(data, rank == root ? root : 77, count);
        MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            check(data[i] == number(root, i), "Bcast", root);
        fill(data, rank, count);
        MPI_Reduce(data, sum, count, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count; i++)
            check(sum[i] == number(size - 1, i), "Reduce", root);
    }
    free(data);
    free(sum);
}

static unsigned sum_at(int place, int num_ranks)
{
    unsigned sum = 0;
    for (int i = 0; i < num_ranks; i++)
        sum += (unsigned)number(i, place);
    return sum;
}

static void check_sums(int count)
{
    int *data = ints(count), *sum = ints(count), *counts = ints(size), total = 0;
    fill(data, rank, count);
    MPI_Allreduce(data, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        check((unsigned)sum[i] == sum_at(i, size), "Allreduce", i);
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(memcmp(data, sum, (size_t)count * sizeof *data) == 0, "Allreduce in place", count);
    fill(data, rank, count);
    MPI_Scan(data, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        check((unsigned)sum[i] == sum_at(i, rank + 1), "Scan", i);
    MPI_Exscan(data, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count && rank > 0; i++)
        check((unsigned)sum[i] == sum_at(i, rank), "Exscan", i);
    for (int i = 0; i < size; i++) {
        counts[i] = count / size + (i < count % size);
        total += i < rank ? counts[i] : 0;
    }
    MPI_Reduce_scatter(data, sum, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++)
        check((unsigned)sum[i] == sum_at(total + i, size), "Reduce_scatter", i);
    MPI_Reduce_scatter_block(data, sum, count / size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count / size; i++)
        check((unsigned)sum[i] == sum_at(rank * (count / size) + i, size), "Reduce_scatter_block", i);
    free(data);
    free(sum);
    free(counts);
}

/* Composes functions x -> a x + b, modulo 2^32, which does not commute. */
static void compose(void *from_data, void *to_data, int *count, MPI_Datatype *type)
{
    const unsigned *from = from_data;
    unsigned *to = to_data;
    (void)type;
    for (int i = 0; i < *count; i++) {
        to[2 * i + 1] = to[2 * i] * from[2 * i + 1] + to[2 * i + 1];
        to[2 * i] *= from[2 * i];
    }
}

static void check_own_operation(void)
{
    MPI_Datatype pair;
    MPI_Op op;
    unsigned own[] = {2 * (unsigned)rank + 3, (unsigned)rank + 1}, result[2] = {0, 0}, wanted[2] = {1, 0};
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    for (int i = 0; i < size; i++) {
        wanted[1] = (2 * (unsigned)i + 3) * wanted[1] + (unsigned)i + 1;
        wanted[0] *= 2 * (unsigned)i + 3;
    }
    MPI_Allreduce(own, result, 1, pair, op, MPI_COMM_WORLD);
    check(result[0] == wanted[0] && result[1] == wanted[1], "Allreduce of functions", 0);
    MPI_Reduce(own, result, 1, pair, op, size - 1, MPI_COMM_WORLD);
    check(rank < size - 1 || memcmp(result, wanted, sizeof wanted) == 0, "Reduce of functions", 0);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void check_operations(void)
{
    struct {
        double value;
        int index;
    } place = {(double)(rank * 5 % size), rank}, greatest, wanted = {-1, 0};
    unsigned char bits = (unsigned char)(1 << rank % 8), all_bits, wanted_bits = 0;
    long long product = rank + 1, all, factorial = 1;
    int is_true = rank != 0, are_true;
    for (int i = 0; i < size; i++) {
        factorial *= i + 1;
        wanted_bits |= (unsigned char)(1 << i % 8);
        if (i * 5 % size > wanted.value) {
            wanted.value = i * 5 % size;
            wanted.index = i;
        }
    }
    MPI_Allreduce(&place, &greatest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    check(greatest.value >= wanted.value && greatest.index == wanted.index, "MAXLOC", greatest.index);
    MPI_Allreduce(&bits, &all_bits, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    check(all_bits == wanted_bits, "BOR", all_bits);
    MPI_Allreduce(&product, &all, 1, MPI_LONG_LONG, MPI_PROD, MPI_COMM_WORLD);
    check(all == factorial, "PROD", (int)all);
    MPI_Allreduce(&is_true, &are_true, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    check(are_true == 0, "LAND", are_true);
}

static void check_gathers(int count)
{
    int *own = ints(count + size), *all = ints((count + size) * size), *counts = ints(size),
        *places = ints(size);
    for (int i = 0; i < size; i++) {
        counts[i] = count + i;
        places[i] = i * (count + size);
    }
    fill(own, rank, count + size);
    for (int root = 0; root < size; root++) {
        memset(all, 0, (size_t)((count + size) * size) * sizeof *all);
        MPI_Gather(own, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count * size; i++)
            check(all[i] == number(i / count, i % count), "Gather", i);
        MPI_Gatherv(own, counts[rank], MPI_INT, all, counts, places, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < size; i++)
            check(all[places[i] + counts[i] - 1] == number(i, counts[i] - 1), "Gatherv", i);
        fill(all, root, (count + size) * size);
        MPI_Scatter(all, count, MPI_INT, own, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            check(own[i] == number(root, rank * count + i), "Scatter", i);
        MPI_Scatterv(all, counts, places, MPI_INT, own, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
        check(own[counts[rank] - 1] == number(root, places[rank] + counts[rank] - 1), "Scatterv", root);
        fill(own, rank, count + size);
    }
    MPI_Allgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        check(all[i] == number(i / count, i % count), "Allgather", i);
    MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        check(all[places[i] + counts[i] - 1] == number(i, counts[i] - 1), "Allgatherv", i);
    free(own);
    free(all);
    free(counts);
    free(places);
}

static void check_alltoall(int count)
{
    int *own = ints((count + size) * size), *all = ints((count + size) * size), *counts = ints(size),
        *sent = ints(size), *places = ints(size);
    fill(own, rank, count * size);
    MPI_Alltoall(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        check(all[i] == number(i / count, rank * count + i % count), "Alltoall", i);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, own, count, MPI_INT, MPI_COMM_WORLD);
    check(memcmp(own, all, (size_t)(count * size) * sizeof *own) == 0, "Alltoall in place", count);
    for (int i = 0; i < size; i++) {
        counts[i] = count + i;  /* from rank i */
        sent[i] = count + rank; /* to each */
        places[i] = i * (count + size);
    }
    fill(own, rank, (count + size) * size);
    MPI_Alltoallv(own, sent, places, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        check(all[places[i] + counts[i] - 1] == number(i, places[rank] + counts[i] - 1), "Alltoallv", i);
    free(own);
    free(all);
    free(counts);
    free(sent);
    free(places);
}

static void check_communicators(void)
{
    MPI_Comm half, copy, none;
    int half_rank, half_size, sum = 0, wanted = 0, result;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    for (int i = 0; i < size; i++)
        wanted += i % 2 == rank % 2 ? i : 0;
    check(half_rank == half_size - 1 - rank / 2, "the rank after Comm_split", half_rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    check(sum == wanted, "a sum of every other rank", sum);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_compare(half, copy, &result);
    check(result == MPI_CONGRUENT, "Comm_compare", result);
    if (half_size > 1) { /* the same tag on two communicators */
        int numbers[2] = {rank, rank + 100}, found[2];
        MPI_Request requests[2];
        MPI_Isend(&numbers[0], 1, MPI_INT, (half_rank + 1) % half_size, 5, half, &requests[0]);
        MPI_Isend(&numbers[1], 1, MPI_INT, (half_rank + 1) % half_size, 5, copy, &requests[1]);
        MPI_Status status;
        MPI_Recv(&found[1], 1, MPI_INT, MPI_ANY_SOURCE, 5, copy, MPI_STATUS_IGNORE);
        MPI_Recv(&found[0], 1, MPI_INT, MPI_ANY_SOURCE, 5, half, &status);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(found[1] == found[0] + 100, "a message of the copy", found[1]);
        check(status.MPI_SOURCE == (half_rank + half_size - 1) % half_size, "its source", status.MPI_SOURCE);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &none);
    check((none == MPI_COMM_NULL) == (rank != 0), "a communicator of none", rank);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
}

/* ---- what a process has for itself: types, and attributes ---- */

/* A column of a matrix of `size` columns, so that items lie between those of others. */
static MPI_Datatype column(int rows)
{
    MPI_Datatype spread, type;
    MPI_Type_vector(rows, 1, size, MPI_INT, &spread);
    MPI_Type_create_resized(spread, 0, (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&spread);
    return type;
}

static void check_types(int rows)
{
    int *matrix = ints(rows * size), *other = ints(rows * size), *own = ints(rows), bytes;
    MPI_Datatype type = column(rows);
    MPI_Request request;
    fill(own, rank, rows);
    MPI_Type_size(type, &bytes);
    check(bytes == rows * (int)sizeof(int), "Type_size", bytes);
    MPI_Allgather(own, rows, MPI_INT, matrix, 1, type, MPI_COMM_WORLD);
    for (int i = 0; i < rows * size; i++)
        check(matrix[i] == number(i % size, i / size), "Allgather of columns", i);
    MPI_Alltoall(matrix, 1, type, other, 1, type, MPI_COMM_WORLD);
    for (int i = 0; i < rows * size; i++)
        check(other[i] == number(rank, i / size), "Alltoall of columns", i);
    MPI_Irecv(other, 1, type, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &request);
    MPI_Send(own, rows, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
    MPI_Type_free(&type); /* which the receive still needs */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < rows; i++)
        check(other[i * size] == number((rank + size - 1) % size, i), "a column", i);
    free(matrix);
    free(other);
    free(own);
}

static int copy_plus_one(MPI_Comm from, int key, void *extra, void *value, void *value_out, int *is_copied)
{
    (void)from;
    (void)key;
    (void)extra;
    *(void **)value_out = (char *)value + 1;
    *is_copied = 1;
    return MPI_SUCCESS;
}

static void check_attributes(void)
{
    int key, is_there, length;
    char *value = NULL, numbers[2], name[MPI_MAX_OBJECT_NAME];
    MPI_Comm copy, same;
    MPI_Comm_create_keyval(copy_plus_one, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, numbers);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_attr(copy, key, &value, &is_there);
    check(is_there && value == numbers + 1, "an attribute of a copy", is_there);
    MPI_Comm_set_name(copy, "copy");
    same = MPI_Comm_f2c(MPI_Comm_c2f(copy));
    MPI_Comm_get_name(same, name, &length);
    check(strcmp(name, "copy") == 0, "Comm_get_name", length);
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&key);
}

static void check_collectives(int count)
{
    check_bcast_and_reduce(count);
    check_sums(count);
    check_own_operation();
    check_operations();
    check_gathers(count);
    check_alltoall(count);
    check_communicators();
    check_types(count);
    check_attributes();
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- messages ---- */

enum { SHORT = 100, LONG = 50000 };

static void check_completions(int next, int former)
{
    enum { MANY = 6 };
    int *sent = ints(LONG * MANY), *received = ints(LONG * MANY), num_done = 0, places[MANY], place, is_done;
    MPI_Request sends[MANY], receives[MANY + 1];
    MPI_Status status, statuses[MANY];
    for (int i = 0; i < MANY; i++) {
        fill(sent + i * LONG, rank + i, LONG);
        MPI_Irecv(received + i * LONG, LONG, MPI_INT, former, i, MPI_COMM_WORLD, &receives[i]);
    }
    receives[MANY] = MPI_REQUEST_NULL;
    for (int i = 0; i < MANY; i++)
        MPI_Isend(sent + i * LONG, i % 2 ? LONG : SHORT, MPI_INT, next, i, MPI_COMM_WORLD, &sends[i]);
    MPI_Waitany(MANY + 1, receives, &place, &status);
    check(place >= 0 && status.MPI_TAG == place && receives[place] == MPI_REQUEST_NULL, "Waitany", place);
    for (num_done = 1; num_done < MANY;) {
        int num;
        MPI_Waitsome(MANY + 1, receives, &num, places, statuses);
        check(num > 0 && statuses[0].MPI_TAG == places[0], "Waitsome", num);
        num_done += num;
    }
    MPI_Waitany(MANY + 1, receives, &place, MPI_STATUS_IGNORE);
    check(place == MPI_UNDEFINED, "Waitany of none", place);
    do
        MPI_Testall(MANY, sends, &is_done, MPI_STATUSES_IGNORE);
    while (!is_done);
    for (int i = 0; i < MANY; i++)
        check(received[i * LONG + SHORT - 1] == number(former + i, SHORT - 1) &&
                  received[i * LONG + LONG - 1] == (i % 2 ? number(former + i, LONG - 1) : 0),
            "a message", i);
    free(sent);
    free(received);
}

static void check_persistent(int next, int former)
{
    int sent = 0, received = 0;
    MPI_Request requests[2];
    MPI_Send_init(&sent, 1, MPI_INT, next, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&received, 1, MPI_INT, former, 8, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        sent = number(rank, i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(received == number(former, i) && requests[1] != MPI_REQUEST_NULL, "a persistent request", i);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    check(requests[0] == MPI_REQUEST_NULL, "Request_free", 0);
}

static void check_messages(void)
{
    const int next = (rank + 1) % size, former = (rank + size - 1) % size;
    int *sent = ints(LONG), *received = ints(LONG), count, is_done = 0;
    MPI_Status status;
    MPI_Request request;
    fill(sent, rank, LONG);
    for (int length = 0; length <= LONG; length += LONG / 2) { /* eager, and not */
        MPI_Sendrecv(sent, length, MPI_INT, next, 1, received, LONG, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
            MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        check(count == length && status.MPI_SOURCE == former && status.MPI_TAG == 1, "Sendrecv", length);
        check(length == 0 || received[length - 1] == number(former, length - 1), "its data", length);
    }
    MPI_Sendrecv_replace(sent, LONG, MPI_INT, next, 2, former, 2, MPI_COMM_WORLD, &status);
    check(sent[LONG - 1] == number(former, LONG - 1), "Sendrecv_replace", 0);
    MPI_Issend(sent, 3, MPI_INT, next, 3, MPI_COMM_WORLD, &request);
    MPI_Probe(former, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(count == 3 && status.MPI_TAG == 3, "Probe", count);
    MPI_Recv(received, 3, MPI_INT, former, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!is_done)
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &is_done, MPI_STATUS_IGNORE);
    check(!is_done, "Iprobe of none", is_done);
    MPI_Recv(received, 3, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(status.MPI_SOURCE == MPI_PROC_NULL && count == 0, "a message of MPI_PROC_NULL", count);
    check_completions(next, former);
    check_persistent(next, former);
    free(sent);
    free(received);
}

/* ---- times ---- */

static void time_pingpong(int bytes)
{
    char *data = calloc(1, (size_t)bytes + 1);
    const double began = MPI_Wtime();
    for (int i = 0; i < 2; i++)
        if (rank < 2) {
            if (i == rank)
                MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
            else
                MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    if (rank == 0)
        printf("%.12f\n", (MPI_Wtime() - began) / 2);
    free(data);
}

static void time_allreduce(int bytes)
{
    char *data = calloc(1, (size_t)bytes + 1);
    const double began = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, bytes / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.12f\n", MPI_Wtime() - began);
    free(data);
}

/* Rank 2 sends first, rank 1 after what a message between others takes; rank 0 prints whom it hears from. */
static void race(void)
{
    int first = -1, second = -1;
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&first, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        MPI_Recv(&second, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("first %d, then %d\n", first, second);
        check(first == status.MPI_SOURCE, "the source", status.MPI_SOURCE);
    } else if (rank == 1) {
        MPI_Recv(&first, 1, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 2) {
        MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 3) {
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    }
}

/* Computes for so many milliseconds of the processor's time. */
static void compute(int milliseconds)
{
    volatile double sum = 0;
    const clock_t end = clock() + (clock_t)milliseconds * (CLOCKS_PER_SEC / 1000);
    while (rank == 0 && clock() < end)
        sum = sum + 1;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 sleeps for a second, and all wait for it. */
static void nap(void)
{
    const struct timespec second = {.tv_sec = 1};
    const double began = MPI_Wtime();
    if (rank == 0)
        nanosleep(&second, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.12f\n", MPI_Wtime() - began);
}

/* Rank 0 says whether two pieces of memory are one, and how long an AllReduce of the first one takes. */
static void fold(int bytes)
{
    char *volatile one = malloc((size_t)bytes), *volatile other = calloc(1, (size_t)bytes), *grown;
    one[bytes - 1] = 1;
    other[bytes - 1] = 2;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, one, bytes / 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - began;
    if (rank == 0)
        printf("%.12f %s\n", seconds, one[bytes - 1] == other[bytes - 1] ? "folded" : "apart");
    grown = realloc(one, 2 * (size_t)bytes);
    memset(grown, 3, 2 * (size_t)bytes);
    check(grown[0] == 3 && grown[2 * bytes - 1] == 3, "memory that has grown", bytes);
    free(realloc(grown, 100));
    free(other);
}

/* ---- failures ---- */

static void fail(const char *how)
{
    int word = 0;
    MPI_Win window;
    if (strcmp(how, "window") == 0 && rank == size - 1)
        MPI_Win_create(&word, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (strcmp(how, "signal") == 0 && rank == size - 1)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0 && rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(how, "leave") == 0 && rank == size - 1)
        exit(3);
    if (strcmp(how, "truncate") == 0 && rank == 0)
        MPI_Send("a long text", 12, MPI_CHAR, size - 1, 4, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const int given = argc > 2 ? atoi(argv[2]) : 0;
    char host[MPI_MAX_PROCESSOR_NAME];
    int length;
    if (strcmp(what, "no_init") == 0)
        return given;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    if (strcmp(what, "collectives") == 0)
        check_collectives(given);
    else if (strcmp(what, "messages") == 0)
        check_messages();
    else if (strcmp(what, "pingpong") == 0)
        time_pingpong(given);
    else if (strcmp(what, "allreduce") == 0)
        time_allreduce(given);
    else if (strcmp(what, "race") == 0)
        race();
    else if (strcmp(what, "compute") == 0)
        compute(given);
    else if (strcmp(what, "nap") == 0)
        nap();
    else if (strcmp(what, "fold") == 0)
        fold(given);
    else if (strcmp(what, "host") == 0)
        printf("rank %d on %s\n", rank, host);
    else if (strcmp(what, "code") != 0)
        fail(what);
    if (strcmp(what, "collectives") == 0 || strcmp(what, "messages") == 0)
        printf("rank %d of %d has %d mistakes\n", rank, size, num_mistakes);
    MPI_Finalize();
    return strcmp(what, "code") == 0 && rank == size - 1 ? given : num_mistakes > 0;
}
