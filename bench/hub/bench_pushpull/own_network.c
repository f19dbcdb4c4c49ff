/* Enters a network namespace and sets its congestion control; see own_network.h. */
#include "own_network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "figures.h"
#include "net/link/socket.h"

static const char setting[] = "/proc/sys/net/ipv4/tcp_congestion_control";

static bool is_own;
static char outside[CONGESTION_NAME]; /* default congestion control of the machine */

/* Brings the namespace's loopback interface up, without which nothing can be measured. */
static void bring_up_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request) != 0)
        bench_check(ph_fail(PH_ERROR_PEER, "cannot bring up the loopback interface: %s", strerror(errno)));
    close(any);
}

static void read_default(char name_out[CONGESTION_NAME])
{
    FILE *file = fopen(setting, "r");
    if (file == NULL || fscanf(file, "%31s", name_out) != 1)
        snprintf(name_out, CONGESTION_NAME, "?");
    if (file != NULL)
        fclose(file);
}

static bool write_default(const char *name)
{
    const int file = open(setting, O_WRONLY | O_CLOEXEC);
    const bool is_chosen = file >= 0 && write(file, name, strlen(name)) == (ssize_t)strlen(name);
    if (file >= 0)
        close(file);
    return is_chosen;
}

static void choose_one_that_does_not_pace(void)
{
    if (!write_default("cubic")) /* needs cubic in net.ipv4.tcp_allowed_congestion_control */
        (void)write_default("reno");
}

void own_network_enter(void)
{
    read_default(outside);
    if (unshare(CLONE_NEWNET) != 0)
        return;
    is_own = true;
    bring_up_loopback();
    choose_one_that_does_not_pace();
}

/* Gives the congestion control of a socket that the hub makes. */
static void read_of_hub(char name_out[CONGESTION_NAME])
{
    int listening;
    socklen_t size = CONGESTION_NAME;
    bench_check(ph__socket_listen("127.0.0.1:0", &listening));
    if (getsockopt(listening, IPPROTO_TCP, TCP_CONGESTION, name_out, &size) != 0)
        snprintf(name_out, CONGESTION_NAME, "?");
    close(listening);
}

void own_network_congestion(char words_out[CONGESTION_WORDS])
{
    char of_hub[CONGESTION_NAME] = "", of_others[CONGESTION_NAME];
    read_of_hub(of_hub);
    read_default(of_others);
    if (strcmp(of_hub, of_others) == 0)
        snprintf(words_out, CONGESTION_WORDS, "%s", of_hub);
    else
        snprintf(words_out, CONGESTION_WORDS, "%s, the hub's %s", of_others, of_hub);
}

const char *own_network_as_outside(void)
{
    char inside[CONGESTION_NAME];
    read_default(inside);
    return is_own && strcmp(inside, outside) != 0 && write_default(outside) ? outside : NULL;
}

void own_network_as_inside(void)
{
    if (is_own)
        choose_one_that_does_not_pace();
}
