/* PH_IS_SANITIZED: 1 in a build with the address or the thread sanitizer, else 0. */
#ifndef PH_TEST_IS_SANITIZED_H
#define PH_TEST_IS_SANITIZED_H

#if defined(__has_feature)
#define PH_HAS_FEATURE(feature) __has_feature(feature)
#else
#define PH_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || PH_HAS_FEATURE(address_sanitizer) || \
    PH_HAS_FEATURE(thread_sanitizer)
#define PH_IS_SANITIZED 1
#else
#define PH_IS_SANITIZED 0
#endif

#endif
