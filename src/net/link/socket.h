/* Sockets: TCP by "host:port" ("[::1]:4711" for IPv6; port 0: a free one), and local ones by an abstract name
 * (unix(7)), which leaves no file behind. All are non-blocking and closed on exec. Errors: PH_ERROR_CONFIG
 * for an address that is none, PH_ERROR_PEER for one that cannot be reached or had, naming it. */
#ifndef PH_NET_SOCKET_H
#define PH_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/clock.h"
#include "net/link/socket_address.h"

ph_status ph__socket_listen(const char *address, int *socket_out);
/* Waits for up to timeout_ms, also for somebody to listen there, or for a way there: whoever was told of a
 * server may come before it, or while it or its network is started again. Of a name's several addresses none
 * keeps the others waiting. Each look-up of a name takes as long as the system's resolver does besides
 * (getaddrinfo(3), resolv.conf(5)), for which nothing is set here. */
ph_status ph__socket_connect(const char *address, uint32_t timeout_ms, int *socket_out);
/* The same, but it is over, PH_ERROR_PEER, when something can be read at `watched` (-1: none), a connection
 * that tells how the other side is, and by a signal of the timeout's, with that signal's status. */
ph_status ph__socket_connect_while(
    const char *address, struct ph__timeout timeout, int watched, int *socket_out);

ph_status ph__socket_listen_local(const char *name, int *socket_out);
/* Waits for up to timeout_ms where so many come at once that there is no place among those who wait to be
 * accepted. */
ph_status ph__socket_connect_local(const char *name, uint32_t timeout_ms, int *socket_out);

/* The next connection; -1 in *socket_out: none is waiting. A TCP socket is set up for short messages
 * (TCP_NODELAY), and to notice within five seconds that the other machine is gone (keepalive,
 * TCP_USER_TIMEOUT, which links do without). */
ph_status ph__socket_accept(int listening, int *socket_out);

/* Over the loopback there is no bandwidth to be found out: BBR, where it is the default, would pace what is
 * sent by timers. A TCP socket that has it gets another congestion control if the address is a loopback one.
 * Listening and connecting do so themselves; it must come before either, for the pacing would stay. */
void ph__socket_avoid_pacing(int socket, const struct sockaddr *address);

/* Whether the process at the other end of a local socket is of this user. */
bool ph__socket_is_same_user(int socket);
/* A descriptor that becomes readable when the process at the other end of a local socket, the one that
 * connected or listened, has ended: the caller's to close. -1 where the system has no such thing. */
int ph__socket_peer_process(int socket);

#endif
