// libcurl, loaded with dlopen at first use. Linking it would load some thirty libraries and slow down every
// start of a trial and of the CLI, while few processes access a bucket.
#pragma once

#include <curl/curl.h>

#include "common/base/result.h"

namespace det::storage {

/// Function pointers of libcurl, named without the "curl_" prefix.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

/// Loads and initializes libcurl once; it is never unloaded. Thread-safe.
/// Errors: kFailedPrecondition (the library or a required function is missing) with a remedy.
Result<const Curl*> curl();

}  // namespace det::storage
