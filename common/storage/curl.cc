#include "common/storage/curl.h"

#include <string>

#include "common/base/shared_library.h"

namespace det::storage {
namespace {

constexpr const char* kLibrary = "libcurl.so.4";

Result<const Curl*> load() {
  static Curl functions;
  auto library = SharedLibrary::open(kLibrary);
  if (!library)
    return fail(Code::kFailedPrecondition, "libcurl is needed; install libcurl4: " + library.error().message);
  library->find(functions.global_init, "curl_global_init")
      .find(functions.easy_init, "curl_easy_init")
      .find(functions.easy_reset, "curl_easy_reset")
      .find(functions.easy_cleanup, "curl_easy_cleanup")
      .find(functions.easy_setopt, "curl_easy_setopt")
      .find(functions.easy_perform, "curl_easy_perform")
      .find(functions.easy_getinfo, "curl_easy_getinfo")
      .find(functions.easy_strerror, "curl_easy_strerror")
      .find(functions.multi_init, "curl_multi_init")
      .find(functions.multi_cleanup, "curl_multi_cleanup")
      .find(functions.multi_add_handle, "curl_multi_add_handle")
      .find(functions.multi_remove_handle, "curl_multi_remove_handle")
      .find(functions.multi_perform, "curl_multi_perform")
      .find(functions.multi_poll, "curl_multi_poll")
      .find(functions.multi_info_read, "curl_multi_info_read")
      .find(functions.slist_append, "curl_slist_append")
      .find(functions.slist_free_all, "curl_slist_free_all");
  if (auto complete = library->complete(); !complete)
    return fail(Code::kFailedPrecondition, complete.error().message);
  if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return fail(Code::kFailedPrecondition, std::string(kLibrary) + " does not start");
  return &functions;
}

}  // namespace

Result<const Curl*> curl() {
  // Initialization of a static runs once, also with concurrent callers. A failure is permanent.
  static const Result<const Curl*> loaded = load();
  return loaded;
}

}  // namespace det::storage
