// Owns PrometheusService: the state of the cluster and of the master as Prometheus reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "det/v1/prometheus.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Text exposition format 0.0.4. Samples of one metric are added together.
class PromText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  /// `type` is "gauge", "counter" or "histogram"; what follows is of this metric.
  void metric(const std::string& name, const char* type, const char* help);
  void sample(const Labels& labels, double value) { sample("", labels, value); }
  /// `suffix` as in "_bucket".
  void sample(const char* suffix, const Labels& labels, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string text_, name_;
};

class PrometheusService final : public Service {
 public:
  explicit PrometheusService(const Context& context);
  grpc::ServerWriteReactor<v1::ScrapeResponse>* Scrape(grpc::CallbackServerContext* call,
                                                       const v1::ScrapeRequest* request);
};

}  // namespace det::api
