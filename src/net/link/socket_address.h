/* Addresses of a socket's ends, as text and by kind; and hosts as text. Errors: PH_ERROR_PEER. */
#ifndef PH_NET_SOCKET_ADDRESS_H
#define PH_NET_SOCKET_ADDRESS_H

#include <stdbool.h>

#include "phloem/status.h"

struct sockaddr;

#define PH_ADDRESS_BYTES 300 /* of "host:port" with its NUL */
#define PH_HOST_BYTES 46     /* of an IPv4 or IPv6 address in digits, without a port, with its NUL */

/* Tells whether the address is a loopback one, also for IPv4 mapped to IPv6. */
bool ph__is_loopback(const struct sockaddr *address);
/* Gives the address, "127.0.0.1:4711", of this end or of the other one. */
ph_status ph__socket_address(int socket, char address_out[PH_ADDRESS_BYTES]);
ph_status ph__socket_peer(int socket, char address_out[PH_ADDRESS_BYTES]);
/* Tells whether this end of a TCP socket can be reached from this host alone. */
bool ph__socket_is_loopback(int socket);
/* Tells whether the socket has an IPv4 address, also one mapped to IPv6 (::ffff:192.0.2.1). */
bool ph__socket_is_ipv4(int socket);
/* Tells whether a socket listens at all addresses of this host. */
bool ph__socket_is_wildcard(int listening);

/* Tells whether the text is an IPv4 or IPv6 address in digits, without a zone. */
bool ph__is_host(const char *text);
/* Gives "host:port" with the port of the socket's other end and the given host, in digits. */
ph_status ph__socket_peer_at(int socket, const char *host, char address_out[PH_ADDRESS_BYTES]);

#endif
