/* See hub_processes.h. */
#include "hub/hub_processes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "support/test_support.h"

enum { START_LIMIT_MS = 10000, MAX_ARGUMENTS = 32 };

static pid_t running[2 + 2 * MAX_HUB_WORKERS]; /* 0: none */

int hub_ms_left(uint64_t begin_ns, int limit_ms)
{
    const uint64_t passed_ms = (ph__clock_ns() - begin_ns) / 1000000u;
    return passed_ms < (uint64_t)limit_ms ? limit_ms - (int)passed_ms : 0;
}

/* ---- what runs ---- */

static void note(pid_t former, pid_t id)
{
    size_t i = 0;
    while (i < sizeof running / sizeof *running && running[i] != former)
        i++;
    assert_true(i < sizeof running / sizeof *running);
    running[i] = id;
}

static void end(pid_t id)
{
    kill(id, SIGKILL);
    waitpid(id, NULL, 0);
    note(id, 0);
}

int hub_processes_teardown(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof running / sizeof *running; i++) {
        if (running[i] != 0)
            end(running[i]);
    }
    return 0;
}

/* ---- starting ---- */

static void run_program(const char *name, char *const *arguments, int output, const char *errors)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_build(), name);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test itself be killed */
    dup2(output, STDOUT_FILENO);
    if (errors != NULL)
        dup2(open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), STDERR_FILENO);
    execv(path, arguments);
    fprintf(stderr, "cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

/* errors: file for what it says there; NULL: the test's own. */
static void start(struct hub_process *process, const char *name, char *const *arguments, const char *errors)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    const pid_t id = fork();
    assert_true(id >= 0);
    if (id == 0)
        run_program(name, arguments, ends[1], errors);
    note(0, id);
    close(ends[1]);
    process->id = id;
    process->output = ends[0];
    process->num_said = 0;
}

static void port_lock_path(uint16_t port, char path_out[300])
{
    snprintf(path_out, 300, "/tmp/phloem-test-port-%u", port); /* ports are the machine's, not the test's */
}

/* -1: another test has the port. One that ends removes its file, which then locks nothing, should somebody
 * have it open. */
static int lock_port(uint16_t port)
{
    char path[300];
    struct stat file;
    port_lock_path(port, path);
    const int lock = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &file) == 0 && file.st_nlink > 0)
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

static void unlock_port(uint16_t port, int lock)
{
    char path[300];
    port_lock_path(port, path);
    unlink(path);
    close(lock);
}

static bool is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_bound = bind(listening, (const struct sockaddr *)&address, sizeof address) == 0;
    close(listening);
    return is_bound;
}

/* Below the ports that the system gives away by itself, and locked: nobody else takes it while the hub is
 * dead. */
static void choose_port(struct hub_job *job)
{
    for (unsigned int i = 0; i < 10000; i++) {
        const uint16_t port = (uint16_t)(20000 + ((unsigned int)getpid() * 31 + i * 7) % 10000);
        const int lock = lock_port(port);
        if (lock >= 0 && is_free(port)) {
            job->port = port;
            job->port_lock = lock;
            return;
        }
        if (lock >= 0)
            unlock_port(port, lock);
    }
    fail_msg("no port is free");
}

void hub_job_begin(struct hub_job *job)
{
    job->port = 0;
    if (job->address[0] == '\0') {
        choose_port(job);
        snprintf(job->address, sizeof job->address, "127.0.0.1:%u", job->port);
    }
    job->hub.output = -1;
    for (size_t i = 0; i < MAX_HUB_WORKERS; i++)
        job->workers[i].output = -1;
}

void hub_job_end(struct hub_job *job)
{
    hub_process_kill(&job->hub);
    for (size_t i = 0; i < MAX_HUB_WORKERS; i++)
        hub_process_kill(&job->workers[i]);
    if (job->port != 0)
        unlock_port(job->port, job->port_lock);
}

static bool is_listening(const struct hub_job *job, void *unused)
{
    (void)unused;
    return job->hub.num_joined > 0 || job->hub.id == 0;
}

static void start_hub_program(struct hub_job *job)
{
    char folder[4096];
    char *arguments[MAX_ARGUMENTS] = {(char *)"phloem", (char *)"hub", (char *)"--address", job->address};
    size_t count = 4;
    for (size_t i = 0; i < MAX_HUB_SETTINGS && job->settings[i] != NULL; i++) {
        arguments[count++] = (char *)"--set";
        arguments[count++] = (char *)job->settings[i];
    }
    if (job->folder != NULL) {
        snprintf(folder, sizeof folder, "hub.checkpoint_folder=%s", job->folder);
        arguments[count++] = (char *)"--set";
        arguments[count++] = folder;
    }
    start(&job->hub, "phloem", arguments, job->log);
}

void hub_job_start_hub(struct hub_job *job)
{
    char *arguments[] = {(char *)"hub_host", job->address, (char *)job->folder, NULL};
    job->hub.num_joined = 0;
    if (job->settings[0] != NULL)
        start_hub_program(job);
    else
        start(&job->hub, "tests/hub_host", arguments, job->log);
    if (!hub_job_wait(job, is_listening, NULL, START_LIMIT_MS))
        fail_msg("the hub does not listen at %s", job->address);
}

void hub_job_start_worker(struct hub_job *job, uint32_t rank, const char *extra)
{
    char address[64], own_rank[32], num_workers[32], iterations[48];
    char *arguments[MAX_ARGUMENTS] = {(char *)"training_worker", address, own_rank, num_workers, iterations};
    size_t count = 5;
    snprintf(address, sizeof address, "address=%s", job->addresses != NULL ? job->addresses : job->address);
    snprintf(own_rank, sizeof own_rank, "rank=%u", rank);
    snprintf(num_workers, sizeof num_workers, "workers=%u", job->num_workers);
    snprintf(iterations, sizeof iterations, "iterations=%llu", (unsigned long long)job->num_iterations);
    for (size_t i = 0; i < MAX_WORKER_OPTIONS && job->options[i] != NULL; i++)
        arguments[count++] = (char *)job->options[i];
    if (extra != NULL)
        arguments[count++] = (char *)extra;
    start(&job->workers[rank], "tests/training_worker", arguments, job->log);
}

/* ---- listening ---- */

static void take_line(struct hub_process *process, const char *line)
{
    unsigned long long iteration;
    unsigned int num_contributors;
    if (strncmp(line, "listening ", 10) == 0 || strncmp(line, "ready at ", 9) == 0) {
        process->num_joined++;
        sscanf(line, "ready at %*[^,], metrics at http://%63[^/]", process->metrics);
    } else if (sscanf(line, "joined %llu", &iteration) == 1) {
        process->num_joined++;
        process->first_iteration = iteration;
    } else if (sscanf(line, "step %llu %u", &iteration, &num_contributors) == 2) {
        process->step = iteration;
        process->num_steps++;
        process->num_contributors = num_contributors;
    } else if (sscanf(line, "lost %llu", &iteration) == 1) {
        process->num_lost++;
        snprintf(process->last_lost, sizeof process->last_lost, "%.255s", line);
    } else if (sscanf(line, "done %31s", process->sum) != 1) {
        fail_msg("a process says: %s", line);
    }
}

static void take_lines(struct hub_process *process)
{
    char *line = process->said, *end;
    process->said[process->num_said] = '\0';
    while ((end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        take_line(process, line);
        line = end + 1;
    }
    process->num_said = strlen(line);
    memmove(process->said, line, process->num_said + 1);
}

static void take_output(struct hub_process *process)
{
    const ssize_t count = read(
        process->output, process->said + process->num_said, sizeof process->said - 1 - process->num_said);
    if (count > 0) {
        process->num_said += (size_t)count;
        take_lines(process);
        return;
    }
    close(process->output);
    process->output = -1;
}

static struct hub_process *process_at(struct hub_job *job, size_t i)
{
    return i == 0 ? &job->hub : &job->workers[i - 1];
}

/* false: nobody has said anything. */
static bool listen_once(struct hub_job *job, int limit_ms)
{
    struct pollfd polled[1 + MAX_HUB_WORKERS];
    for (size_t i = 0; i <= MAX_HUB_WORKERS; i++)
        polled[i] = (struct pollfd){.fd = process_at(job, i)->output, .events = POLLIN};
    if (poll(polled, 1 + MAX_HUB_WORKERS, limit_ms) <= 0)
        return false;
    for (size_t i = 0; i <= MAX_HUB_WORKERS; i++) {
        if (polled[i].revents != 0)
            take_output(process_at(job, i));
    }
    return true;
}

void hub_job_catch_up(struct hub_job *job)
{
    while (listen_once(job, 0))
        continue;
}

bool hub_job_wait(struct hub_job *job, hub_job_condition holds, void *context, int limit_ms)
{
    const uint64_t begin_ns = ph__clock_ns();
    while (!holds(job, context)) {
        const int left_ms = hub_ms_left(begin_ns, limit_ms);
        if (left_ms == 0)
            return false;
        listen_once(job, left_ms);
    }
    return true;
}

static bool never(const struct hub_job *job, void *unused)
{
    (void)job;
    (void)unused;
    return false;
}

void hub_job_listen(struct hub_job *job, int duration_ms)
{
    hub_job_wait(job, never, NULL, duration_ms);
}

uint64_t hub_job_least_step(const struct hub_job *job)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < job->num_workers; i++)
        least = job->workers[i].step < least ? job->workers[i].step : least;
    return least;
}

bool hub_job_is_done(const struct hub_job *job, void *unused)
{
    (void)unused;
    bool is_done = true;
    for (uint32_t i = 0; i < job->num_workers; i++)
        is_done &= job->workers[i].sum[0] != '\0';
    return is_done;
}

/* ---- ending ---- */

static void finish_output(struct hub_process *process)
{
    while (process->output >= 0)
        take_output(process);
}

int hub_process_wait(struct hub_process *process, int limit_ms)
{
    const uint64_t begin_ns = ph__clock_ns();
    int status;
    pid_t ended;
    while ((ended = waitpid(process->id, &status, WNOHANG)) == 0 && hub_ms_left(begin_ns, limit_ms) > 0)
        usleep(2000);
    if (ended != process->id)
        fail_msg("a process has not ended within %d ms", limit_ms);
    note(process->id, 0);
    process->id = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void hub_process_kill(struct hub_process *process)
{
    if (process->id != 0) {
        end(process->id);
        process->id = 0;
    }
    finish_output(process);
}
