/* Starts a program that may not read other processes' memory, as in containers that filter system calls:
 *
 *     forbid_reading PROGRAM [ARGUMENT]...
 *
 * Ends with 77 where no filter can be set. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* process_vm_readv and process_vm_writev fail with EPERM; all else is allowed. */
static int set_filter(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof lines / sizeof *lines, .filter = lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -1
                                                       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (set_filter() != 0) {
        perror("forbid_reading: no filter of system calls can be set");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
