/* The channels of what a training says between ranks, beside those of its programs (shard/channels.h). */
#ifndef PH_TRAIN_RANK_CHANNELS_H
#define PH_TRAIN_RANK_CHANNELS_H

#include "shard/channels.h"

enum { PH_CHANNEL_LINKS = PH_CHANNEL_TRAINING };

#endif
