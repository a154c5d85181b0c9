// PrometheusService: metrics of the cluster and of the master for Prometheus.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "det/v1/prometheus.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Writer of the text exposition format, version 0.0.4. The samples of a metric must follow each other.
class PromText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  /// Begins a metric. `type` is "gauge", "counter" or "histogram". Later samples belong to it.
  void metric(const std::string& name, const char* type, const char* help);
  /// Adds a sample. Label values are escaped.
  void sample(const Labels& labels, double value) { sample("", labels, value); }
  /// As above, with a suffix such as "_bucket" after the name of the metric.
  void sample(const char* suffix, const Labels& labels, double value);
  /// Returns the text; the writer is empty afterwards.
  std::string take() { return std::move(text_); }

 private:
  std::string text_, name_;
};

/// One scrape is one response message.
class PrometheusService final : public Service {
 public:
  explicit PrometheusService(const Context& context);
  /// `what` selects the text: "state" (cluster), "master" (process) or "targets" (JSON list of exporters on
  /// agents for service discovery). Errors: kInvalidArgument; kUnavailable.
  grpc::ServerWriteReactor<v1::ScrapeResponse>* Scrape(grpc::CallbackServerContext* call,
                                                       const Unread<v1::ScrapeRequest>& request);
};

}  // namespace det::api
