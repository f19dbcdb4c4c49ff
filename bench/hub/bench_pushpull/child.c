/* Forks processes and drives them over pipes; see child.h. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figures.h"

static void fail(const char *what)
{
    bench_check(ph_fail(PH_ERROR_MEMORY, "%s: %s", what, strerror(errno)));
}

/* Closes all descriptors but two and the standard ones. A child that held another's pipe open would keep it
 * from seeing the end of its orders. */
static void close_all_but(int first, int second)
{
    const int low = first < second ? first : second, high = first < second ? second : first;
    int next = STDERR_FILENO + 1;
    for (const int kept[] = {low, high}, *end = kept; end < kept + 2; end++) {
        if (next < *end)
            close_range((unsigned)next, (unsigned)*end - 1, 0);
        next = *end + 1;
    }
    close_range((unsigned)next, ~0U, 0);
}

static _Noreturn void become_child(child_work *work, void *context, pid_t parent, int from, int to)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close_all_but(from, to);
    work(context, from, to);
    fflush(NULL);
    _exit(0);
}

struct child child_start(const char *name, child_work *work, void *context)
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        fail("cannot create a pipe");
    const pid_t parent = getpid();
    fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_NAME, name);
        become_child(work, context, parent, to[0], from[1]);
    }
    if (process < 0)
        fail("cannot start a process");
    close(to[0]);
    close(from[1]);
    return (struct child){.process = process, .to = to[1], .from = from[0]};
}

void child_end(struct child *child)
{
    if (child->process == 0)
        return;
    child_go_on(child);
    close(child->to);
    while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR) {
    }
    close(child->from);
    *child = (struct child){0};
}

void child_pause(const struct child *child)
{
    int status;
    kill(child->process, SIGSTOP);
    waitpid(child->process, &status, WUNTRACED);
}

void child_go_on(const struct child *child)
{
    kill(child->process, SIGCONT);
}

static bool has_read(int from, char *record_out, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t count = read(from, record_out + done, size - done);
        if (count == 0 || (count < 0 && errno != EINTR))
            return false;
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static void write_all(int to, const char *record, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t count = write(to, record + done, size - done);
        if (count < 0 && errno != EINTR)
            fail("cannot write a pipe of the benchmark");
        done += count > 0 ? (size_t)count : 0;
    }
}

void child_tell(const struct child *child, const void *record, size_t size)
{
    write_all(child->to, record, size);
}

void child_hear(const struct child *child, void *record_out, size_t size)
{
    if (!has_read(child->from, record_out, size))
        bench_check(ph_fail(PH_ERROR_PEER, "a process of the benchmark ended unexpectedly"));
}

bool child_has_order(int from, void *record_out, size_t size)
{
    return has_read(from, record_out, size);
}

void child_answer(int to, const void *record, size_t size)
{
    write_all(to, record, size);
}

void *shared_zeros(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("cannot map shared memory");
    return memory;
}
