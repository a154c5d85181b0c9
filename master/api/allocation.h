// Owns AllocationService: the attempts of a trial, and what their processes ask over HTTP.
#pragma once

#include <map>
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
  grpc::ServerUnaryReactor* GetAllocation(grpc::CallbackServerContext* call, const v1::GetAllocationRequest* request,
                                          v1::GetAllocationResponse* response) override;
  // allocation_gather.cc
  grpc::ServerUnaryReactor* AllocationAllGather(grpc::CallbackServerContext* call,
                                                const v1::AllocationAllGatherRequest* request,
                                                v1::AllocationAllGatherResponse* response) override;
  // allocation_calls.cc
  grpc::ServerUnaryReactor* AllocationWaiting(grpc::CallbackServerContext* call, const v1::AllocationRequest* request,
                                              v1::AllocationResponse* response) override;
  grpc::ServerUnaryReactor* MarkAllocationResourcesDaemon(grpc::CallbackServerContext* call,
                                                          const v1::MarkAllocationResourcesDaemonRequest* request,
                                                          v1::AllocationResponse* response) override;
  grpc::ServerUnaryReactor* AllocationPendingPreemptionSignal(grpc::CallbackServerContext* call,
                                                              const v1::AllocationRequest* request,
                                                              v1::AllocationResponse* response) override;
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
  /// allocation_gather.cc; on the edge worker.
  struct Gather;
  struct Peer;
  void join(const AllocationId& id, Peer peer);
  void tick_gathers(MonoTime now);
  void close_gathers();

  std::vector<std::shared_ptr<Poll>> polls_;  ///< of the edge worker
  std::map<AllocationId, std::vector<std::shared_ptr<Gather>>> gathers_;  ///< likewise; the newest last
  bool closed_ = false;                       ///< likewise
  const Context& context_;
};

}  // namespace det::api
