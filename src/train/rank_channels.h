/* The channels of what a training says between ranks, beside those of its programs (shard/channels.h). */
#ifndef PH_TRAIN_RANK_CHANNELS_H
#define PH_TRAIN_RANK_CHANNELS_H

#include "shard/channels.h"

enum {
    PH_CHANNEL_MOMENT = PH_CHANNEL_TRAINING,
    PH_CHANNEL_MACHINE,
    PH_CHANNEL_LINKS,
    PH_CHANNEL_SAMPLE_WEIGHTS,
    PH_CHANNEL_COUNTS,
    PH_CHANNEL_SCORES,
    PH_CHANNEL_GROUPS,
    PH_CHANNEL_PART_SIZES,
    PH_CHANNEL_PART_DESCRIPTIONS,
    PH_CHANNEL_DIGEST,
    PH_CHANNEL_TEXTS,
    PH_CHANNEL_CLOCK,
    PH_CHANNEL_HUB,
};

#endif
