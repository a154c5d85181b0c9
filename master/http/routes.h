// Mapping of HTTP requests to RPCs, read from the google.api.http options of the services.
#pragma once

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace det::http {

/// One HTTP binding of a method.
struct Route {
  const google::protobuf::MethodDescriptor* method = nullptr;
  std::string verb;                   ///< Such as "GET".
  std::vector<std::string> segments;  ///< "{name}" matches any one segment.
  /// Field that the body fills; "*" the whole message, "" none.
  std::string body;
};

/// Result of a lookup.
struct Match {
  /// Null when nothing matches.
  const Route* route = nullptr;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< Field name and decoded segment.
  /// Without a route: the methods that the path has.
  std::vector<std::string> allowed;
};

/// All routes of the services. Immutable after construction; thread-safe.
class Routes {
 public:
  explicit Routes(const std::vector<const google::protobuf::ServiceDescriptor*>& services);
  /// Finds the route of a request; `path` is percent-encoded. Routes with fewer parameters take precedence.
  /// HEAD matches GET routes.
  Match find(const std::string& verb, const std::string& path) const;
  /// All routes, in order of precedence.
  const std::vector<Route>& all() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

/// Path of an RPC, such as "/det.v1.ExperimentService/GetExperiment".
std::string rpc_path(const google::protobuf::MethodDescriptor& method);

}  // namespace det::http
