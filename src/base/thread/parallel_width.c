#include "base/thread/parallel_width.h"

void ph__team_width_init(struct ph__team_width *width, size_t num_workers, uint64_t now_ns)
{
    *width = (struct ph__team_width){.num_workers = num_workers,
        .num_active = num_workers,
        .credit_ns = PH_WIDTH_TRIAL_CREDIT_NS,
        .pause_ns = PH_WIDTH_LEAST_PAUSE_NS,
        .changed_ns = now_ns};
}

static void change(struct ph__team_width *width, uint64_t now_ns, bool is_trial)
{
    width->num_active += is_trial ? 1 : (size_t)-1;
    width->credit_ns = PH_WIDTH_TRIAL_CREDIT_NS;
    width->changed_ns = now_ns;
    width->is_trial = is_trial;
}

size_t ph__team_width_before(struct ph__team_width *width, uint64_t now_ns)
{
    if (width->num_active < width->num_workers && now_ns - width->changed_ns >= width->pause_ns) {
        if (width->is_trial && width->pause_ns > PH_WIDTH_LEAST_PAUSE_NS)
            width->pause_ns /= 2;
        change(width, now_ns, true);
    }
    return width->num_active;
}

static uint64_t next_pause(const struct ph__team_width *width, uint64_t lasted_ns)
{
    if (lasted_ns >= width->pause_ns)
        return PH_WIDTH_LEAST_PAUSE_NS;
    return 2 * width->pause_ns < PH_WIDTH_MOST_PAUSE_NS ? 2 * width->pause_ns : PH_WIDTH_MOST_PAUSE_NS;
}

void ph__team_width_after(struct ph__team_width *width, uint64_t now_ns, int64_t gained_ns, int64_t lost_ns)
{
    width->credit_ns += gained_ns - PH_WIDTH_LOSS_WEIGHT * lost_ns;
    if (width->credit_ns > PH_WIDTH_MOST_CREDIT_NS)
        width->credit_ns = PH_WIDTH_MOST_CREDIT_NS;
    if (width->credit_ns >= 0 || width->num_active == 0)
        return;
    width->pause_ns = next_pause(width, now_ns - width->changed_ns);
    change(width, now_ns, false);
}
