/* A hub whose turns the test takes, and connections to it whose other ends the test holds, so that the test
 * controls to the byte what arrives, and when. */
#ifndef PH_TEST_HUB_TURNS_H
#define PH_TEST_HUB_TURNS_H

#include "hub/server/server_state.h"
#include "support/hub_thread.h"

/* Creates a hub, with one core thread unless the options say otherwise. */
struct ph_hub_server *hub_turns_begin(struct ph_hub_server_options options);
void hub_turns_take(struct ph_hub_server *server); /* takes a few turns, without waiting */

/* Returns the client's end of a new connection. */
int hub_turns_connect(struct ph_hub_server *server, bool is_local);

/* Sends a frame; hub_turns_say takes turns afterwards. */
void hub_turns_put(int socket, uint16_t type, const void *body, size_t size);
void hub_turns_say(struct ph_hub_server *server, int socket, uint16_t type, const void *body, size_t size);

void hub_turns_greet(struct ph_hub_server *server, int socket);
/* Writes the body that creates a service "job" of two workers, or that joins it. Returns its size. */
size_t hub_turns_service(unsigned char body_out[PH_HUB_MAX_BODY]);
size_t hub_turns_which(uint32_t rank, unsigned char body_out[PH_HUB_MAX_BODY]);
/* Greets the hub, creates that service and joins it. */
void hub_turns_join(struct ph_hub_server *server, int socket, uint32_t rank);
void hub_turns_init(struct ph_hub_server *server, int socket); /* one key of ten numbers */

/* Takes the next ANSWER or FAILED that has arrived, and drops frames before it; false when there is none. */
bool hub_turns_answer(int socket, struct ph__answer *answer_out);
/* Drops all input. Returns true when the hub has closed the connection. */
bool hub_turns_is_closed(int socket);

#endif
