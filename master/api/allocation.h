// Owns AllocationService: the attempts of a trial, and what their processes ask over HTTP.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "det/v1/allocation.pb.h"
#include "master/api/service.h"

namespace det::api {

class AllocationService final : public Service {
 public:
  explicit AllocationService(const Context& context);
  Status GetTrialAllocations(const Caller& caller, const v1::GetTrialAllocationsRequest& request,
                             v1::GetTrialAllocationsResponse* response);
  Status GetAllocation(const Caller& caller, const v1::GetAllocationRequest& request,
                       v1::GetAllocationResponse* response);
  // allocation_gather.cc
  grpc::ServerUnaryReactor* AllocationAllGather(grpc::CallbackServerContext* call,
                                                const v1::AllocationAllGatherRequest* request,
                                                v1::AllocationAllGatherResponse* response);
  // allocation_calls.cc
  Status AllocationWaiting(const Caller& caller, const v1::AllocationRequest& request,
                           v1::AllocationResponse* response);
  Status MarkAllocationResourcesDaemon(const Caller& caller,
                                       const v1::MarkAllocationResourcesDaemonRequest& request,
                                       v1::AllocationResponse* response);
  Status AllocationPendingPreemptionSignal(const Caller& caller, const v1::AllocationRequest& request,
                                           v1::AllocationResponse* response);
  Status AllocationRendezvousInfo(const Caller& caller, const v1::AllocationRendezvousInfoRequest& request,
                                  v1::AllocationRendezvousInfoResponse* response);
  grpc::ServerUnaryReactor* AllocationPreemptionSignal(grpc::CallbackServerContext* call,
                                                       const v1::AllocationPreemptionSignalRequest* request,
                                                       v1::AllocationPreemptionSignalResponse* response);
  Status AckAllocationPreemptionSignal(const Caller& caller, const v1::AllocationRequest& request,
                                       v1::AllocationResponse* response);
  Status PostAllocationAcceleratorData(const Caller& caller, const v1::AllocationRequest& request,
                                       v1::AllocationResponse* response);
  Status PostAllocationProxyAddress(const Caller& caller, const v1::AllocationRequest& request,
                                    v1::AllocationResponse* response);
  Status AllocationReady(const Caller& caller, const v1::AllocationRequest& request,
                         v1::AllocationResponse* response);

  /// Answers the polls of an allocation that is asked to leave. Any thread.
  void preempt(const AllocationId& id);
  /// Answers the polls whose time is over. On the edge worker, several times a second.
  void tick();
  /// Ends all polls. On the edge worker.
  void close();

 private:
  struct Poll;
  /// allocation_gather.cc; on the edge worker.
  struct Gather;
  struct Peer;
  void join(const AllocationId& id, Peer peer);
  void tick_gathers(MonoTime now);
  void close_gathers();

  std::vector<std::shared_ptr<Poll>> polls_;                              ///< of the edge worker
  std::map<AllocationId, std::vector<std::shared_ptr<Gather>>> gathers_;  ///< likewise; the newest last
  bool closed_ = false;                                                   ///< likewise
};

}  // namespace det::api
