/* Messages on their way through a simulated cluster: each send meets its receive, its bytes are a flow of the
 * network, and it arrives when the last of them has come.
 *
 *   eager        leaves when it is sent, and is done for the sender then; its data are copied
 *   others       leave when the receiver, who has learnt of them, has asked for them: both ways take the
 *                latency of the route; done for the sender when the last byte has left
 *
 * Data that are absent (base/memory/absent.h) are not moved. */
#ifndef PH_SIM_MAIL_H
#define PH_SIM_MAIL_H

#include "plan/fabric/fabric.h"

struct ph__mail;

/* slack: of struct ph__network_options. The fabric is borrowed. PH_ERROR_MEMORY. */
ph_status ph__mail_create(
    const struct ph__fabric *fabric, size_t world_size, double slack, struct ph__mail **mail_out);
void ph__mail_destroy(struct ph__mail *mail);

struct ph__letter {
    uint32_t from, to;
    int tag;
    size_t bytes;
    double at_ns;        /* when it is sent, or asked for */
    bool is_untimed;     /* of a message that is sent: it arrives at once, past the network */
    bool is_synchronous; /* of a message that is sent: it is not eager, whatever its length */
};

#define PH_MAIL_DONE UINT32_MAX /* number of a message that needs no more attention */

/* Send and receive a message; messages of the same ranks and tag meet in their order. Data are borrowed until
 * it is done; NULL: nothing is moved. PH_ERROR_PEER: the other side's message has another length.
 * PH_ERROR_MEMORY. */
ph_status ph__mail_send(
    struct ph__mail *mail, const struct ph__letter *letter, const void *data, uint32_t *message_out);
ph_status ph__mail_receive(
    struct ph__mail *mail, const struct ph__letter *letter, void *data_out, uint32_t *message_out);

/* Returns true when a message is done for the sender, or the receiver, by what has happened so far; its
 * number is then given up. */
bool ph__mail_is_sent(struct ph__mail *mail, uint32_t message);
bool ph__mail_is_received(struct ph__mail *mail, uint32_t message);

/* Returns true when a message has arrived; it may not have been asked for. */
bool ph__mail_has_arrived(const struct ph__mail *mail, uint32_t message);

/* Returns the time of what happens next; INFINITY: nothing. */
double ph__mail_next_ns(const struct ph__mail *mail);

/* Lets the next thing happen, which must be before until_ns: no message will be sent before that. Says for
 * which rank a message has become done by it, if for any. */
struct ph__mail_news {
    bool is_any, is_receive; /* it was received, not sent */
    uint32_t rank;
    int tag;
    double at_ns;
};
ph_status ph__mail_step(struct ph__mail *mail, double until_ns, struct ph__mail_news *news_out);

/* Fills links_out with the links that messages between two ranks take: the fabric's, and behind these in
 * number two inside of a host. Returns how many; their latency too. */
size_t ph__mail_find_way(const struct ph__mail *mail, size_t from, size_t to,
    uint32_t links_out[PH_FABRIC_MAX_HOPS], double *latency_ns_out);

/* Gives up the network's past: every rank has come to now_ns. */
void ph__mail_forget(struct ph__mail *mail, double now_ns);

/* Returns how many messages have been sent. */
uint64_t ph__mail_num_sent(const struct ph__mail *mail);

#endif
