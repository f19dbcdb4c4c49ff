/* Two hosts and a wire between them, of network namespaces: what they say to each other goes nowhere else,
 * and with the test's process they are gone. One thread; a process is started on the host that was entered
 * last. */
#ifndef PH_TEST_TWO_HOSTS_H
#define PH_TEST_TWO_HOSTS_H

enum { TWO_HOSTS = 2 };

struct two_hosts {
    const char *addresses[TWO_HOSTS]; /* of IPv4 */
    int spaces[TWO_HOSTS + 1];        /* descriptors: the hosts, and the wire */
};

/* Both are up and reach each other. Ends the program as skipped where no namespaces can be had. */
void two_hosts_begin(struct two_hosts *hosts);
void two_hosts_enter(const struct two_hosts *hosts, unsigned int host);
/* From now on nothing arrives on the other side, and nobody is told: each host's link stays up. */
void two_hosts_cut(const struct two_hosts *hosts);
void two_hosts_end(struct two_hosts *hosts);

#endif
