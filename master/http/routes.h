// Owns which call an HTTP request means: the table read from the google.api.http options of the services.
#pragma once

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace det::http {

struct Route {
  const google::protobuf::MethodDescriptor* method = nullptr;
  std::string verb;                   ///< "GET"
  std::vector<std::string> segments;  ///< "{name}" stands for any one segment
  std::string body;                   ///< the field that the body fills; "*" the whole message, "" none
};

struct Match {
  const Route* route = nullptr;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< field → decoded segment
  std::vector<std::string> allowed;  ///< without a route: the verbs that this path knows
};

class Routes {
 public:
  explicit Routes(const std::vector<const google::protobuf::ServiceDescriptor*>& services);
  /// Literal segments go before parameters. `path` is percent-encoded.
  Match find(const std::string& verb, const std::string& path) const;
  const std::vector<Route>& all() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

/// "/det.v1.ExperimentService/GetExperiment".
std::string rpc_path(const google::protobuf::MethodDescriptor& method);

}  // namespace det::http
