/* Checkpoints of jobs that several hubs share, in the control thread of one hub. part_list.h says what parts
 * are; server_checkpoints.c makes, reads and removes them.
 *
 * Before a run, all hubs tell rank 0 their parts, and rank 0 chooses. During the run, the hub tells the lead
 * of each part that is written or will not be. When all hubs have reported, the lead tells them which parts
 * to keep and at which iteration to make the next. The hub follows the lead only in what cannot hurt another
 * job. */
#include <inttypes.h>

#include "base/sizes.h"
#include "hub/keep/snapshot.h"
#include "hub/server/server_state.h"

/* ---- before a run ---- */

void ph__server_offer_parts(struct ph__tenant *tenant)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_parts(&writer, &tenant->saves.parts.here);
    tenant->state = PH_TENANT_CHOOSING;
    ph__session_send(tenant->members[0].session, PH_FRAME_PARTS, &writer, NULL, 0);
}

static ph_status check_chooser(const struct ph_session *session)
{
    if (session->tenant == NULL || session->tenant->state != PH_TENANT_CHOOSING || session->rank != 0)
        return ph_fail(PH_ERROR_PEER,
            "only rank 0 may choose a job's checkpoint, once, after the hub has listed its parts");
    return PH_OK;
}

ph_status ph__server_request_from(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph_hub_server *server = session->server;
    struct ph__tenant *tenant = session->tenant;
    uint64_t iteration;
    PH_TRY(ph__get_iteration(frame->body, frame->size, &iteration));
    PH_TRY(check_chooser(session));
    const struct ph__parts *here = &tenant->saves.parts.here;
    const bool is_anew = iteration == PH_NO_ITERATION;
    if (is_anew ? here->kept != PH_NO_ITERATION : !ph__parts_has(here, iteration))
        return ph_fail(PH_ERROR_PEER, "rank 0 chose a checkpoint that does not fit the hub's parts");
    tenant->saves.parts.is_chosen = true;
    tenant->saves.parts.chosen = iteration;
    tenant->state = PH_TENANT_LOADING;
    if (server->options.checkpoint_folder != NULL) {
        ph__server_keep(server, tenant);
        return PH_OK;
    }
    const ph_status status = ph__server_begin_linking(server, tenant);
    if (status != PH_OK)
        ph__server_end_run(server, tenant, status, ph_error_text());
    return PH_OK;
}

ph_status ph__server_request_refusal(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__answer answer;
    PH_TRY(check_chooser(session));
    PH_TRY(ph__get_failure(frame->body, frame->size, &answer));
    ph__server_end_run(session->server, session->tenant, answer.status, answer.text);
    return PH_OK;
}

/* ---- moments ---- */

bool ph__server_has_room(const struct ph__tenant *tenant)
{
    return tenant->saves.parts.here.num_open < PH_HUB_MAX_OPEN_PARTS;
}

uint64_t ph__server_hold(struct ph__tenant *tenant)
{
    const uint64_t most = ph__tenant_hold(tenant);
    return tenant->layout->sizes.num_here > 0 ? most : tenant->saves.parts.asked;
}

/* ---- reports to the lead ---- */

/* Finds the lead: the lowest rank that is there. false: no worker is. */
static bool find_lead(const struct ph__tenant *tenant, uint32_t *rank_out)
{
    for (uint32_t rank = 0; rank < tenant->settings.service.num_workers; rank++) {
        *rank_out = rank;
        if (tenant->members[rank].session != NULL)
            return true;
    }
    return false;
}

/* Returns ph__saved.settled_end of this hub. */
static uint64_t own_settled_end(const struct ph__tenant *tenant)
{
    return tenant->layout->sizes.num_here > 0 ? tenant->saves.parts.settled_end : PH_NO_ITERATION;
}

static struct ph__saved describe(struct ph__tenant *tenant, bool is_late)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    struct ph__saved saved = {
        .parts = tenant->saves.parts.here, .settled_end = own_settled_end(tenant), .is_late = is_late};
    if (service->mode != PH_HUB_SYNCHRONOUS)
        return saved;
    saved.every = service->checkpoint_every;
    saved.most = ph__server_hold(tenant);
    ph__tenant_release(tenant);
    return saved;
}

void ph__server_announce_parts(struct ph_hub_server *server, struct ph__tenant *tenant, bool is_late)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__tenant_parts *parts = &tenant->saves.parts;
    uint32_t lead;
    if (!ph__tenant_has_parts(tenant) || !tenant->is_going || server->options.checkpoint_folder == NULL ||
        !find_lead(tenant, &lead))
        return;
    const struct ph__saved saved = describe(tenant, is_late);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_saved(&writer, &saved);
    parts->num_unanswered = lead == parts->lead ? parts->num_unanswered + 1 : 1;
    parts->lead = lead;
    ph__session_send(tenant->members[lead].session, PH_FRAME_SAVED, &writer, NULL, 0);
}

static void settle(struct ph__tenant *tenant, uint64_t iteration)
{
    tenant->saves.parts.settled_end = ph__max(tenant->saves.parts.settled_end, iteration + 1);
}

void ph__server_settle_part(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t iteration)
{
    settle(tenant, iteration);
    ph__server_announce_parts(server, tenant, false);
}

void ph__server_lead_left(struct ph_hub_server *server, struct ph__tenant *tenant, uint32_t rank)
{
    if (rank == tenant->saves.parts.lead)
        ph__server_announce_parts(server, tenant, false);
}

/* ---- orders of the lead ---- */

/* Begins the next part, unless another is being made, which will be reported to the lead. */
static void begin_next(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t next)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    if (next == PH_NO_ITERATION || server->is_ending || saves->is_wanted || saves->is_under_way ||
        saves->snapshot == NULL)
        return;
    if (ph__server_hold(tenant) <= next) {
        saves->num_begun++;
        saves->parts.asked = next;
        ph__tenant_begin_snapshot(tenant, next);
        return;
    }
    ph__tenant_release(tenant);
    settle(tenant, next);
    ph__server_announce_parts(server, tenant, true);
}

static ph_status check_keep(const struct ph__tenant *tenant, uint32_t rank, const struct ph__keep *keep)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    const struct ph__tenant_parts *parts = &tenant->saves.parts;
    const bool is_periodic = service->checkpoint_every > 0 && service->mode == PH_HUB_SYNCHRONOUS;
    if (!tenant->is_going || rank != parts->lead || parts->num_unanswered == 0)
        return ph_fail(
            PH_ERROR_PEER, "only the worker that was sent a report of parts may say which to keep");
    if (keep->iteration != PH_NO_ITERATION && !ph__parts_has(&parts->here, keep->iteration))
        return ph_fail(
            PH_ERROR_PEER, "the part of iteration %" PRIu64 " to keep does not exist", keep->iteration);
    if (keep->settled_end > ph__max(own_settled_end(tenant), keep->iteration + 1))
        return ph_fail(PH_ERROR_PEER, "parts up to iteration %" PRIu64 " are not settled", keep->settled_end);
    if (keep->next != PH_NO_ITERATION && (!is_periodic || keep->next % service->checkpoint_every != 0))
        return ph_fail(PH_ERROR_PEER, "no checkpoint is due at iteration %" PRIu64, keep->next);
    return PH_OK;
}

ph_status ph__server_request_keep(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__tenant *tenant = session->tenant;
    struct ph__keep keep;
    PH_TRY(ph__get_keep(frame->body, frame->size, &keep));
    if (tenant == NULL)
        return PH_OK; /* the job has ended meanwhile */
    PH_TRY(check_keep(tenant, session->rank, &keep));
    struct ph__tenant_parts *parts = &tenant->saves.parts;
    parts->num_unanswered--;
    parts->is_keep_due = true;
    parts->keep = keep;
    begin_next(session->server, tenant, keep.next);
    ph__server_keep(session->server, tenant);
    return PH_OK;
}

/* Returns true when the order would change the disk. */
static bool is_needed(const struct ph__parts *here, const struct ph__keep *keep)
{
    const bool is_other = keep->iteration != here->kept && ph__parts_has(here, keep->iteration);
    return is_other || (here->num_open > 0 && here->open[0] < keep->settled_end);
}

bool ph__server_keep_parts(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__tenant_parts *parts = &tenant->saves.parts;
    const bool is_due = parts->is_keep_due && is_needed(&parts->here, &parts->keep);
    const struct ph__checkpoint_order order = {
        .work = PH_CHECKPOINT_KEEP, .part = parts->keep.iteration, .settled_end = parts->keep.settled_end};
    parts->is_keep_due = false;
    if (!is_due)
        return false;
    if (ph__server_start_task(server, tenant, &order, NULL) == PH_OK)
        return true;
    ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_kept");
    return false;
}

void ph__server_note_kept(struct ph__tenant *tenant, uint64_t iteration, uint64_t settled_end)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    ph__parts_keep(&saves->parts.here, iteration, settled_end);
    saves->has_parameters = saves->parts.here.kept != PH_NO_ITERATION;
    saves->iteration = saves->has_parameters ? saves->parts.here.kept : 0;
}
