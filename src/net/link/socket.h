/* Sockets: TCP by "host:port" ("[::1]:4711" for IPv6; port 0: a free one), and local ones by an abstract name
 * (unix(7)), which leaves no file behind. All are non-blocking and closed on exec. Errors: PH_ERROR_CONFIG
 * for an invalid address, PH_ERROR_PEER for an address that cannot be reached or listened at, naming it. */
#ifndef PH_NET_SOCKET_H
#define PH_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/clock.h"
#include "net/link/socket_address.h"

ph_status ph__socket_listen(const char *address, int *socket_out);
/* Connects, waiting for up to timeout_ms, also for a listener or a route: a client may start before its
 * server, or while the server or its network restarts. When a name has several addresses, none holds up the
 * others. Each look-up of a name takes as long as the system's resolver does in addition (getaddrinfo(3),
 * resolv.conf(5)), which has no limit here. */
ph_status ph__socket_connect(const char *address, uint32_t timeout_ms, int *socket_out);
/* Connects as above, but gives up with PH_ERROR_PEER when `watched` becomes readable (-1: none), a connection
 * that reports the other side's state, or, with the signal's status, when the timeout's signal arrives. */
ph_status ph__socket_connect_while(
    const char *address, struct ph__timeout timeout, int watched, int *socket_out);

ph_status ph__socket_listen_local(const char *name, int *socket_out);
/* Connects, waiting for up to timeout_ms while the listener's queue of connections is full. */
ph_status ph__socket_connect_local(const char *name, uint32_t timeout_ms, int *socket_out);

/* Accepts the next connection; -1 in *socket_out when none is waiting. Sets a TCP socket up for short
 * messages (TCP_NODELAY), and for noticing within five seconds that the other machine is gone (keepalive,
 * TCP_USER_TIMEOUT, which links switch off). */
ph_status ph__socket_accept(int listening, int *socket_out);

/* Gives a TCP socket with BBR another congestion control when the address is a loopback one. BBR, the default
 * on some systems, would pace the output by timers, but the loopback has no bandwidth to probe. Listening and
 * connecting call this themselves; call it before either, or the pacing stays. */
void ph__socket_avoid_pacing(int socket, const struct sockaddr *address);

/* Tells whether the process at the other end of a local socket belongs to this user. */
bool ph__socket_is_same_user(int socket);
/* Returns a descriptor that becomes readable when the process at the other end of a local socket, the one
 * that connected or listened, has ended. The caller closes it. -1 on a system without such descriptors. */
int ph__socket_peer_process(int socket);

#endif
