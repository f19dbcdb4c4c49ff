/* Includes the public headers of all rooms. */
#ifndef PHLOEM_PHLOEM_H
#define PHLOEM_PHLOEM_H

#include "phloem/comm.h"
#include "phloem/config.h"
#include "phloem/data.h"
#include "phloem/graph.h"
#include "phloem/hub.h"
#include "phloem/hub_server.h"
#include "phloem/kernel.h"
#include "phloem/memory.h"
#include "phloem/model.h"
#include "phloem/op.h"
#include "phloem/options.h"
#include "phloem/serve.h"
#include "phloem/status.h"
#include "phloem/store.h"
#include "phloem/team.h"
#include "phloem/tensor.h"
#include "phloem/train.h"
#include "phloem/version.h"

#endif
