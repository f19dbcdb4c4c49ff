/* Clients of targets that are servers. */
#ifndef PH_FUZZ_CLIENT_H
#define PH_FUZZ_CLIENT_H

/* A blocking TCP connection to a server of this process at "127.0.0.1:port". Its close resets the connection,
 * so that no port stays taken for a while. */
int fuzz_connect(const char *address);

#endif
