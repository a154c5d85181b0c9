// REST client of a Kubernetes API server, for the objects of one namespace. Thread-safe. Blocks.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/storage/http.h"
#include "master/engines/kubernetes/access.h"

namespace det::engines {

/// A kind of objects.
struct Resource {
  const char* api;
  const char* plural;
};
inline constexpr Resource kJobs{"/apis/batch/v1", "jobs"};
inline constexpr Resource kPods{"/api/v1", "pods"};
inline constexpr Resource kConfigMaps{"/api/v1", "configmaps"};

/// Sends an HTTP request and returns the response: storage::exchange, or a script in tests.
using SendHttp = std::function<Result<storage::Answer>(const storage::Exchange&)>;

class Client {
 public:
  /// `stopped` is polled about once a second during a request; true ends it.
  Client(std::function<Result<Access>()> access, SendHttp http, std::function<bool()> stopped);

  /// Calls METHOD .../namespaces/NAMESPACE/PLURAL + `rest`, which has the name and the query. Returns the
  /// response. `body`: null for none. Errors: kNotFound, kAlreadyExists (409), kOutOfRange (410, an expired
  /// resource version), kUnavailable (no reply, refused credentials, overload), kInvalidArgument (any other
  /// refusal), with the message of the server.
  Result<Json> call(const std::string& method, const Resource& resource, const std::string& rest,
                    const Json& body) const;
  /// Like call with GET, for a watch: passes the response in pieces to `sink` until the server ends it, or
  /// until `sink` or `ended` ends it (kCancelled or kUnavailable).
  Status stream(const Resource& resource, const std::string& rest,
                const std::function<bool(std::string_view)>& sink, const std::function<bool()>& ended) const;

 private:
  const std::function<Result<Access>()> access_;
  const SendHttp http_;
  const std::function<bool()> stopped_;
};

}  // namespace det::engines
