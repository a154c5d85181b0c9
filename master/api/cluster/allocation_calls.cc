// Calls of an allocation's processes: rendezvous, preemption long poll, and calls without effect. Open polls
// live on the edge worker.
#include <algorithm>
#include <charconv>

#include "master/api/cluster/allocation.h"
#include "master/api/experiments/reporter.h"

namespace det::api {
namespace {

constexpr int kMaxPoll = 60;  // seconds

/// Index of the part that resources_id names as "<allocation>.<part>". 0 for any other name.
std::size_t part_of(const std::string& resources, const Reporter& reporter) {
  const std::string before = reporter.allocation.value + ".";
  std::size_t part = 0;
  if (!resources.starts_with(before)) return 0;
  const auto read =
      std::from_chars(resources.data() + before.size(), resources.data() + resources.size(), part);
  return read.ec == std::errc() && part < reporter.parts.size() ? part : 0;
}

}  // namespace

/// One open long poll. Edge worker only, once it is in polls_.
struct AllocationService::Poll {
  grpc::ServerUnaryReactor* reactor = nullptr;
  v1::AllocationPreemptionSignalResponse* response = nullptr;
  AllocationId allocation;
  MonoTime deadline;
  bool answered = false;

  /// Replies once; later calls do nothing.
  void answer(const grpc::Status& status, bool preempt) {
    if (std::exchange(answered, true)) return;
    response->set_preempt(preempt);
    reactor->Finish(status);
  }
};

void AllocationService::AllocationPreemptionSignal(const Deferred& call,
                                                   const v1::AllocationPreemptionSignalRequest* request,
                                                   v1::AllocationPreemptionSignalResponse* response) {
  auto poll = std::make_shared<Poll>();
  poll->reactor = call.reactor;
  poll->response = response;
  poll->allocation = AllocationId(request->allocation_id());
  const int seconds = std::clamp(request->timeout_seconds(), 0, kMaxPoll);
  Credentials credentials = read_credentials(*call.context);
  const auto open = [this, poll, credentials, seconds]() -> Status {
    TRY_ASSIGN(const Caller caller, authorize("/det.v1.AllocationService/AllocationPreemptionSignal",
                                              credentials, *context_.sessions));
    TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, {.allocation = poll->allocation}));
    // The poll is registered before the core is queried: no signal in between is lost.
    context_.edge.post([this, poll, seconds] {
      poll->deadline = mono_now() + std::chrono::seconds(seconds);
      if (closed_) return poll->answer(to_grpc(shutting_down()), false);
      polls_.push_back(poll);
    });
    context_.loop.call(core::HarnessAttached{.trial = reporter.trial, .run = reporter.run},
                       [this, poll, seconds](loop::Answer answer) {
                         context_.edge.post([poll, seconds, answer = std::move(answer)] {
                           if (!answer) return poll->answer(to_grpc(answer.error()), false);
                           const bool preempt = std::get<core::Attached>(*answer).preempt;
                           // A timeout of 0 reads the current state.
                           if (preempt || seconds == 0) poll->answer(grpc::Status::OK, preempt);
                         });
                       });
    return {};
  };
  const bool taken = context_.pools.ingest.try_post([this, poll, open] {
    if (auto opened = open(); !opened)
      context_.edge.post([poll, error = opened.error()] { poll->answer(to_grpc(error), false); });
  });
  if (!taken) poll->answer(to_grpc(busy()), false);
}

void AllocationService::preempt(const AllocationId& id) {
  context_.edge.post([this, id] {
    for (const auto& poll : polls_)
      if (poll->allocation == id) poll->answer(grpc::Status::OK, true);
  });
}

void AllocationService::tick() {
  const MonoTime now = mono_now();
  for (const auto& poll : polls_)
    if (poll->deadline <= now) poll->answer(grpc::Status::OK, false);
  // Answered polls are removed here only: preempt() iterates over polls_.
  std::erase_if(polls_, [](const auto& poll) { return poll->answered; });
  context_.pools.gather.try_post([this, now] { tick_gathers(now); });
}

void AllocationService::close() {
  closed_ = true;
  for (const auto& poll : polls_) poll->answer(to_grpc(shutting_down()), false);
  polls_.clear();
  context_.pools.gather.post([this] { close_gathers(); });
}

Status AllocationService::AllocationRendezvousInfo(const Caller& caller,
                                                   const v1::AllocationRendezvousInfoRequest& request,
                                                   v1::AllocationRendezvousInfoResponse* response) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.allocation = AllocationId(request.allocation_id())}));
  TRY(context_.loop.ask(core::HarnessAttached{.trial = reporter.trial, .run = reporter.run}));
  // Clients get loopback for a part without an address.
  v1::RendezvousInfo* info = response->mutable_rendezvous_info();
  info->set_rank(static_cast<int>(part_of(request.resources_id(), reporter)));
  for (const core::AllocationPart& part : reporter.parts) {
    info->add_addresses(part.address.empty() ? "127.0.0.1" : part.address);
    info->add_slots(static_cast<int>(part.slots.size()));
  }
  return {};
}

Status AllocationService::AckAllocationPreemptionSignal(const Caller& caller,
                                                        const v1::AllocationRequest& request,
                                                        v1::AllocationResponse*) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.allocation = AllocationId(request.allocation_id())}));
  TRY(context_.loop.ask(core::AcknowledgePreemption{.trial = reporter.trial, .run = reporter.run}));
  return {};
}

Status AllocationService::PostAllocationAcceleratorData(const Caller& caller,
                                                        const v1::AllocationRequest& request,
                                                        v1::AllocationResponse*) {
  return admit(context_, caller, {.allocation = AllocationId(request.allocation_id())});
}

Status AllocationService::PostAllocationProxyAddress(const Caller& caller,
                                                     const v1::AllocationRequest& request,
                                                     v1::AllocationResponse*) {
  return admit(context_, caller, {.allocation = AllocationId(request.allocation_id())});
}

Status AllocationService::AllocationReady(const Caller& caller, const v1::AllocationRequest& request,
                                          v1::AllocationResponse*) {
  return admit(context_, caller, {.allocation = AllocationId(request.allocation_id())});
}

Status AllocationService::AllocationWaiting(const Caller& caller, const v1::AllocationRequest& request,
                                            v1::AllocationResponse*) {
  return admit(context_, caller, {.allocation = AllocationId(request.allocation_id())});
}

Status AllocationService::MarkAllocationResourcesDaemon(
    const Caller& caller, const v1::MarkAllocationResourcesDaemonRequest& request, v1::AllocationResponse*) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.allocation = AllocationId(request.allocation_id())}));
  TRY(context_.loop.ask(core::MarkDaemon{
      .trial = reporter.trial, .run = reporter.run, .part = part_of(request.resources_id(), reporter)}));
  return {};
}

Status AllocationService::AllocationPendingPreemptionSignal(const Caller& caller,
                                                            const v1::AllocationRequest& request,
                                                            v1::AllocationResponse*) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.allocation = AllocationId(request.allocation_id())}));
  TRY(context_.loop.ask(core::AskToLeave{.trial = reporter.trial, .run = reporter.run}));
  return {};
}

}  // namespace det::api
