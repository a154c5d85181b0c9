// AllocationService: runs of a trial, and the HTTP calls that processes of an allocation make.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "det/v1/allocation.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Rendezvous, preemption signals and all-gather for clients of the HTTP API. Long polls keep their state on
/// the edge worker, gathers on the gather worker.
class AllocationService final : public Service {
 public:
  explicit AllocationService(const Context& context);
  /// Lists the allocations of a trial, newest run first. Errors: kNotFound.
  Status GetTrialAllocations(const Caller& caller, const v1::GetTrialAllocationsRequest& request,
                             v1::GetTrialAllocationsResponse* response);
  /// Returns one allocation by id, "<task>.<run>". Errors: kNotFound.
  Status GetAllocation(const Caller& caller, const v1::GetAllocationRequest& request,
                       v1::GetAllocationResponse* response);
  // The calls below are made by processes of the allocation. Each checks the allocation's token and fails if
  // the run is no longer the current one of its trial.

  /// Exchanges data between `num_peers` processes: replies to each with the data of all, ordered by
  /// request_uuid, once the last one has called. Idempotent for the same request_uuid. Errors: kAborted when
  /// peers disagree on their number; kDeadlineExceeded after 60 s (the client retries); kInvalidArgument when
  /// the replies to all peers exceed 256 MiB; kResourceExhausted when all rounds hold 256 MiB.
  void AllocationAllGather(const Deferred& call, const v1::AllocationAllGatherRequest* request,
                           v1::AllocationAllGatherResponse* response);
  /// Accepted for compatibility with Determined AI, without effect.
  Status AllocationWaiting(const Caller& caller, const v1::AllocationRequest& request,
                           v1::AllocationResponse* response);
  /// Marks a part as a helper (e.g. a launcher's sshd): the allocation ends when all other parts have ended.
  /// Idempotent. Errors: kInvalidArgument when there is no such part or no other part would be left.
  Status MarkAllocationResourcesDaemon(const Caller& caller,
                                       const v1::MarkAllocationResourcesDaemonRequest& request,
                                       v1::AllocationResponse* response);
  /// Reports that the machine of the process is about to disappear. The allocation is preempted and runs
  /// again. Errors: kFailedPrecondition for a trial outside the cluster.
  Status AllocationPendingPreemptionSignal(const Caller& caller, const v1::AllocationRequest& request,
                                           v1::AllocationResponse* response);
  /// Returns rank, addresses and slot counts of all parts in the order of ranks. Does not wait for other
  /// parts. Marks the allocation as running.
  Status AllocationRendezvousInfo(const Caller& caller, const v1::AllocationRendezvousInfoRequest& request,
                                  v1::AllocationRendezvousInfoResponse* response);
  /// Long poll: replies at once when the allocation is to be preempted, otherwise after timeout_seconds (0 to
  /// 60).
  void AllocationPreemptionSignal(const Deferred& call, const v1::AllocationPreemptionSignalRequest* request,
                                  v1::AllocationPreemptionSignalResponse* response);
  /// Acknowledges a preemption signal. Idempotent. Errors: kFailedPrecondition without a signal.
  Status AckAllocationPreemptionSignal(const Caller& caller, const v1::AllocationRequest& request,
                                       v1::AllocationResponse* response);
  /// Accepted without effect: the agent reports devices and addresses.
  Status PostAllocationAcceleratorData(const Caller& caller, const v1::AllocationRequest& request,
                                       v1::AllocationResponse* response);
  /// Accepted without effect.
  Status PostAllocationProxyAddress(const Caller& caller, const v1::AllocationRequest& request,
                                    v1::AllocationResponse* response);
  /// Accepted without effect.
  Status AllocationReady(const Caller& caller, const v1::AllocationRequest& request,
                         v1::AllocationResponse* response);

  /// Replies to the open polls of an allocation that is to be preempted. Any thread; does not block.
  void preempt(const AllocationId& id);
  /// Replies to polls and gathers that have timed out. Called on the edge worker several times a second.
  void tick();
  /// Ends all polls and gathers with kUnavailable. Called on the edge worker.
  void close();

 private:
  struct Poll;
  /// One round of an all-gather (allocation_gather.cc). Gather worker only.
  struct Gather;
  struct Peer;
  /// Adds a peer to the current round of the allocation, or replies from a completed round.
  void join(const AllocationId& id, Peer peer);
  void tick_gathers(MonoTime now);
  void close_gathers();
  std::size_t gathered_bytes() const;

  // These members belong to the edge worker.
  std::vector<std::shared_ptr<Poll>> polls_;
  bool closed_ = false;
  // These members belong to the gather worker. Rounds of an allocation: newest last.
  std::map<AllocationId, std::vector<std::shared_ptr<Gather>>> gathers_;
  bool gathers_closed_ = false;
};

}  // namespace det::api
