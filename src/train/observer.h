/* Calls the observer of a job, which may be NULL and may lack any of its functions. */
#ifndef PH_TRAIN_OBSERVER_H
#define PH_TRAIN_OBSERVER_H

#include "phloem/train.h"

static inline ph_status ph__observer_start(const struct ph_train_observer *observer)
{
    return observer != NULL && observer->on_start != NULL ? observer->on_start(observer->context) : PH_OK;
}

static inline ph_status ph__observer_progress(
    const struct ph_train_observer *observer, const struct ph_train_progress *progress)
{
    return observer != NULL && observer->on_progress != NULL
               ? observer->on_progress(observer->context, progress)
               : PH_OK;
}

static inline void ph__observer_note(const struct ph_train_observer *observer, const char *text)
{
    if (observer != NULL && observer->on_note != NULL)
        observer->on_note(observer->context, text);
}

#endif
