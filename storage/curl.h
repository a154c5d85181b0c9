// Owns libcurl as far as it is used here, loaded when it is first needed: with the thirty libraries that it
// brings it would cost every start of a trial and of the command milliseconds, and few of them speak to a
// bucket.
#pragma once

#include <curl/curl.h>

#include "base/result.h"

namespace det::storage {

/// libcurl's functions by their names there, less "curl_".
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

/// Loaded and started once, never unloaded. kFailedPrecondition with the mend where it is missing.
Result<const Curl*> curl();

}  // namespace det::storage
