/* A shard's part in the sleep of its thread: see shard.h. */
#include "hub/shard/shard_state.h"
#include "hub/shard/shard_wide.h"

static bool is_moved(const struct ph_shard_link *link)
{
    return link->link != NULL && !link->has_failed;
}

size_t ph__shard_num_workers(const struct ph_shard *shard)
{
    return shard->job->num_workers;
}

/* Other shards may have brought some without a message. */
static bool has_work(const struct ph_shard *shard)
{
    const struct ph_shard_job *job = shard->job;
    return shard->works_ended != shard->works_begun || shard->is_touching ||
           atomic_load(&job->rounds_clipped) != shard->rounds_stepped ||
           (job->wide != NULL && ph__shard_has_wide_work(shard));
}

bool ph__shard_begin_sleep(struct ph_shard *shard)
{
    bool may_sleep = !has_work(shard);
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        if (is_moved(&shard->links[worker]))
            may_sleep &= ph__link_begin_sleep(shard->links[worker].link);
    }
    return may_sleep;
}

void ph__shard_end_sleep(struct ph_shard *shard)
{
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        if (!is_moved(&shard->links[worker]) || ph__link_end_sleep(shard->links[worker].link))
            continue;
        ph_fail(PH_ERROR_PEER, "its process has ended");
        ph__shard_fail_worker(shard, worker);
    }
}

ph_status ph__shard_watch_links(const struct ph_shard *shard, int epoll)
{
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        if (is_moved(&shard->links[worker]))
            PH_TRY(ph__link_watch(shard->links[worker].link, epoll));
    }
    return PH_OK;
}
