// Owns AllocationService: the attempts of a trial, and what their processes ask over HTTP.
#pragma once

#include <memory>
#include <vector>

#include "det/v1/allocation.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class AllocationService final : public v1::AllocationService::CallbackService {
 public:
  explicit AllocationService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetTrialAllocations(grpc::CallbackServerContext* call, const v1::GetTrialAllocationsRequest* request,
                               v1::GetTrialAllocationsResponse* response) override;
  // allocation_calls.cc
  grpc::ServerUnaryReactor* AllocationRendezvousInfo(grpc::CallbackServerContext* call,
                                                     const v1::AllocationRendezvousInfoRequest* request,
                                                     v1::AllocationRendezvousInfoResponse* response) override;
  grpc::ServerUnaryReactor* AllocationPreemptionSignal(grpc::CallbackServerContext* call,
                                                       const v1::AllocationPreemptionSignalRequest* request,
                                                       v1::AllocationPreemptionSignalResponse* response) override;
  grpc::ServerUnaryReactor* AckAllocationPreemptionSignal(grpc::CallbackServerContext* call,
                                                          const v1::AllocationRequest* request,
                                                          v1::AllocationResponse* response) override;
  grpc::ServerUnaryReactor* PostAllocationAcceleratorData(grpc::CallbackServerContext* call,
                                                          const v1::AllocationRequest* request,
                                                          v1::AllocationResponse* response) override;
  grpc::ServerUnaryReactor* PostAllocationProxyAddress(grpc::CallbackServerContext* call,
                                                       const v1::AllocationRequest* request,
                                                       v1::AllocationResponse* response) override;
  grpc::ServerUnaryReactor* AllocationReady(grpc::CallbackServerContext* call,
                                            const v1::AllocationRequest* request,
                                            v1::AllocationResponse* response) override;

  /// Answers the polls of an allocation that is asked to leave. Any thread.
  void preempt(const AllocationId& id);
  /// Answers the polls whose time is over. On the edge worker, several times a second.
  void tick();
  /// Ends all polls. On the edge worker.
  void close();

 private:
  struct Poll;
  /// Says yes to the processes of an allocation, and keeps nothing.
  grpc::ServerUnaryReactor* noted(grpc::CallbackServerContext* call, const char* method,
                                  const v1::AllocationRequest* request);
  std::vector<std::shared_ptr<Poll>> polls_;  ///< of the edge worker
  bool closed_ = false;                       ///< likewise
  const Context& context_;
};

}  // namespace det::api
