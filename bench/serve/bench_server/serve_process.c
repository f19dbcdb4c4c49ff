#include "serve_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "figures.h"
#include "net/link/socket.h"
#include "pinned.h"

enum { START_MS = 60000, ANSWER_MS = 60000, CONNECT_MS = 1000, LOOK_US = 2000 };

/* Finds <build>/phloem: this program is <build>/bench/<room>/NAME. */
static void find_program(char *program, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", program, size - sizeof "/phloem");
    program[length > 0 ? length : 0] = '\0';
    for (size_t up = 0; up < 3 && strrchr(program, '/') != NULL; up++)
        *strrchr(program, '/') = '\0';
    strcat(program, "/phloem");
}

static _Noreturn void become(const struct server *server, int output)
{
    char program[500], batch[60];
    const struct server_options *options = &server->options;
    find_program(program, sizeof program);
    snprintf(batch, sizeof batch, "serve.model.max_batch=%zu", options->max_batch);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_stay_on(options->processor);
    dup2(output, STDOUT_FILENO);
    const char *const arguments[] = {program, "serve", options->repository, "--http", server->http, "--grpc",
        server->grpc, "--set", "serve.metrics_address=", "--threads", "1", "--control", "explicit", "--set",
        "serve.load=dlrm", "--set", "serve.log=none", "--set", batch, options->set != NULL ? "--set" : NULL,
        options->set, NULL};
    execv(program, (char *const *)(uintptr_t)arguments); /* changes none of them */
    _exit(127);
}

static void read_addresses(struct server *server, int input)
{
    char line[200];
    FILE *file = fdopen(input, "r");
    bool has_grpc = false;
    while (file != NULL && !has_grpc && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "REST http://%63s", server->http);
        has_grpc = sscanf(line, "gRPC %63s", server->grpc) == 1;
    }
    if (!has_grpc)
        bench_check(ph_fail(PH_ERROR_BUG, "phloem serve did not start"));
    fclose(file);
}

static void start(struct server *server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot create a pipe"));
    fflush(stdout);
    server->process = fork();
    if (server->process == 0)
        become(server, ends[1]);
    close(ends[1]);
    read_addresses(server, ends[0]);
    const uint64_t deadline = ph__clock_deadline(START_MS);
    while (server_ask(server, "GET /v2/models/dlrm/ready") != 200) {
        if (ph__clock_ms_until(deadline) <= 0)
            bench_check(ph_fail(PH_ERROR_BUG, "phloem serve does not load %s", server->options.repository));
        usleep(LOOK_US);
    }
}

void server_start(const struct server_options *options, struct server *server_out)
{
    *server_out = (struct server){.options = *options, .http = "127.0.0.1:0", .grpc = "127.0.0.1:0"};
    start(server_out);
}

void server_kill(struct server *server)
{
    kill(server->process, SIGKILL);
    waitpid(server->process, NULL, 0);
}

void server_restart(struct server *server)
{
    server_kill(server);
    start(server);
}

int server_tell(
    const struct server *server, const char *method_and_path, const char *body, char *answer, size_t size)
{
    char text[2000];
    int asking;
    size_t received = 0;
    answer[0] = '\0';
    if (ph__socket_connect(server->http, CONNECT_MS, &asking) != PH_OK)
        return 0;
    const int length = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", method_and_path,
        strlen(body), body);
    struct pollfd descriptor = {.fd = asking, .events = POLLIN};
    if (send(asking, text, (size_t)length, MSG_NOSIGNAL) == length)
        while (received < sizeof text - 1 && poll(&descriptor, 1, ANSWER_MS) > 0) {
            const ssize_t count = recv(asking, text + received, sizeof text - 1 - received, 0);
            if (count <= 0)
                break;
            received += (size_t)count;
        }
    close(asking);
    text[received] = '\0';
    const char *end = strstr(text, "\r\n\r\n");
    snprintf(answer, size, "%s", end != NULL ? end + 4 : "");
    return received > 9 ? atoi(text + 9) : 0;
}

int server_ask(const struct server *server, const char *method_and_path)
{
    char answer[1];
    return server_tell(server, method_and_path, "", answer, sizeof answer);
}

double server_memory(const struct server *server)
{
    char path[40];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)server->process);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        bench_check(ph_fail(PH_ERROR_BUG, "the server has ended"));
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double server_processor_seconds(const struct server *server)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(server->process, &clock) != 0 || clock_gettime(clock, &time) != 0)
        bench_check(ph_fail(PH_ERROR_BUG, "the server has ended"));
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
