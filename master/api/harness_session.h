// Owns HarnessService: one stream per training process. Checks what a stranger wrote, sends what the searcher
// needs to the core and the rest to the bulk writer, acknowledges in order what is durable, passes
// pre-emption down.
#pragma once

#include <map>
#include <memory>

#include "det/v1/harness.pb.h"
#include "master/api/report_check.h"
#include "master/api/service.h"

namespace det::api {

class HarnessSession;

class HarnessService final : public Service {
 public:
  explicit HarnessService(const Context& context);
  grpc::ServerBidiReactor<v1::HarnessMessage, v1::MasterMessage>* Session(grpc::CallbackServerContext* call);

  // checkpoint_changes.cc
  Status FallBack(const Caller& caller, const v1::FallBackRequest& request, v1::FallBackResponse* response);

  /// Tells the allocation's process, if it is connected. Any thread.
  void preempt(const AllocationId& id);
  /// Retries what found the bulk writer full. On the edge worker, several times a second.
  void tick();
  /// Ends all sessions (UNAVAILABLE: come back). On the edge worker.
  void close();

 private:
  friend class HarnessSession;
  // The edge worker's own.
  std::map<AllocationId, std::weak_ptr<HarnessSession>> sessions_;
  bool closed_ = false;
};

/// The number `name` of a report, if it has one.
std::optional<double> metric_value(const std::string& metrics, const std::string& name);

}  // namespace det::api
