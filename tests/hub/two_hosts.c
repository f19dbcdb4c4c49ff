/* See two_hosts.h. The wire is a third namespace with a bridge, and a port of it to each host: who is taken
 * off the bridge hears no more, and sees no difference from a peer that has lost its power. */
#include "hub/two_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_support.h"

enum { WIRE = TWO_HOSTS };

/* `ip` with these arguments, in the namespace that was entered last. */
__attribute__((format(printf, 1, 2))) static void ip(const char *format, ...)
{
    char arguments[256], command[512];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "PATH=$PATH:/usr/sbin:/sbin ip %s >&2", arguments);
    if (system(command) != 0)
        test_skip("no bridge between network namespaces can be made here, with `ip` of iproute2");
}

static void write_map(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        test_skip("no user namespace can be had here");
    close(file);
}

/* Who is not root becomes it, of a namespace of his own. */
static void become_root(void)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "0 %u 1", geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER) != 0)
        test_skip("no user namespace can be had here");
    write_map("/proc/self/setgroups", "deny");
    write_map("/proc/self/uid_map", users);
    write_map("/proc/self/gid_map", groups);
}

void two_hosts_enter(const struct two_hosts *hosts, unsigned int host)
{
    assert_int_equal(setns(hosts->spaces[host], CLONE_NEWNET), 0);
}

static void connect_host(const struct two_hosts *hosts, unsigned int host)
{
    two_hosts_enter(hosts, WIRE);
    ip("link add port%u type veth peer name wire netns /proc/%d/fd/%d", host, getpid(), hosts->spaces[host]);
    ip("link set port%u master bridge0 up", host);
    two_hosts_enter(hosts, host);
    ip("link set lo up");
    ip("address add %s/24 dev wire", hosts->addresses[host]);
    ip("link set wire up");
}

void two_hosts_begin(struct two_hosts *hosts)
{
    *hosts = (struct two_hosts){.addresses = {"10.77.0.1", "10.77.0.2"}};
    if (geteuid() != 0)
        become_root();
    for (unsigned int i = 0; i <= TWO_HOSTS; i++) {
        if (unshare(CLONE_NEWNET) != 0)
            test_skip("no network namespace can be had here");
        hosts->spaces[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        assert_true(hosts->spaces[i] >= 0);
    }
    ip("link add bridge0 type bridge");
    ip("link set bridge0 up");
    for (unsigned int host = 0; host < TWO_HOSTS; host++)
        connect_host(hosts, host);
}

void two_hosts_cut(const struct two_hosts *hosts)
{
    two_hosts_enter(hosts, WIRE);
    ip("link set port1 nomaster");
}

void two_hosts_end(struct two_hosts *hosts)
{
    for (unsigned int i = 0; i <= TWO_HOSTS; i++)
        close(hosts->spaces[i]);
}
