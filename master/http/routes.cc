// Reads the method options and matches paths.
#include "master/http/routes.h"

#include <algorithm>

#include "common/base/text.h"
#include "det/route.pb.h"
#include "master/http/message.h"

namespace det::http {
namespace {

void add_rule(const google::protobuf::MethodDescriptor& method, const google::api::HttpRule& rule,
              std::vector<Route>& routes) {
  Route route{.method = &method, .body = rule.body()};
  std::string path;
  switch (rule.pattern_case()) {
    case google::api::HttpRule::kGet:
      route.verb = "GET", path = rule.get();
      break;
    case google::api::HttpRule::kPut:
      route.verb = "PUT", path = rule.put();
      break;
    case google::api::HttpRule::kPost:
      route.verb = "POST", path = rule.post();
      break;
    case google::api::HttpRule::kDelete:
      route.verb = "DELETE", path = rule.delete_();
      break;
    case google::api::HttpRule::kPatch:
      route.verb = "PATCH", path = rule.patch();
      break;
    case google::api::HttpRule::PATTERN_NOT_SET:
      return;
  }
  // Patterns begin with '/'.
  route.segments = split(std::string_view(path).substr(1), '/');
  routes.push_back(std::move(route));
  for (const auto& more : rule.additional_bindings()) add_rule(method, more, routes);
}

bool is_parameter(const std::string& segment) { return segment.starts_with('{'); }

}  // namespace

std::string rpc_path(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

Routes::Routes(const std::vector<const google::protobuf::ServiceDescriptor*>& services) {
  for (const auto* service : services) {
    for (int i = 0; i < service->method_count(); ++i) {
      const auto& options = service->method(i)->options();
      if (options.HasExtension(google::api::http)) {
        add_rule(*service->method(i), options.GetExtension(google::api::http), routes_);
      }
    }
  }
  // Fewest parameters first, so that "/trials/time-series" does not match as a trial id.
  std::stable_sort(routes_.begin(), routes_.end(), [](const Route& a, const Route& b) {
    const auto parameters = [](const Route& r) {
      return std::count_if(r.segments.begin(), r.segments.end(), is_parameter);
    };
    return parameters(a) < parameters(b);
  });
}

Match Routes::find(const std::string& verb, const std::string& path) const {
  const std::vector<std::string> segments = split(std::string_view(path).substr(1), '/');
  Match match;
  for (const Route& route : routes_) {
    if (route.segments.size() != segments.size()) continue;
    std::vector<std::pair<std::string, std::string>> parameters;
    bool same = true;
    for (std::size_t i = 0; same && i < segments.size(); ++i) {
      const std::string& wanted = route.segments[i];
      if (!is_parameter(wanted)) {
        same = wanted == segments[i];
        continue;
      }
      std::string value;
      same = percent_decode(segments[i], value) && !value.empty();
      parameters.emplace_back(wanted.substr(1, wanted.size() - 2), std::move(value));
    }
    if (!same) continue;
    if (route.verb == verb || (verb == "HEAD" && route.verb == "GET")) {
      match.route = &route;
      match.parameters = std::move(parameters);
      return match;
    }
    // Another method may match; the list becomes the Allow header of a 405.
    match.allowed.push_back(route.verb);
  }
  return match;
}

}  // namespace det::http
