// All-gather between the processes of an allocation. Rounds live on a thread of their own, because a reply
// copies the data of all peers:
//
//   open (peers arrive and wait) -> complete (all replied to, kept for repeated calls) -> removed
#include "master/api/cluster/allocation.h"
#include "master/api/experiments/reporter.h"

namespace det::api {
namespace {

constexpr int kMaxGatherPeers = 10'000;
// Data of one peer.
constexpr std::size_t kMaxGatherBytes = 1 << 20;
// Replies of one round: number of peers × data of all peers.
constexpr std::size_t kMaxReplyBytes = 256 << 20;
// Data of all rounds of the cluster.
constexpr std::size_t kMaxHeldBytes = 256 << 20;
constexpr std::size_t kKeptRounds = 2;
// Maximum wait of a call. The peer repeats it under the same request_uuid.
constexpr Duration kPatience = std::chrono::seconds(60);
// A complete round without calls for this long is removed.
constexpr Duration kKept = std::chrono::minutes(10);
// An open round without calls for this long is removed. Waiting peers repeat their call each kPatience.
constexpr Duration kKeptOpen = std::chrono::minutes(2);

}  // namespace

/// A waiting call. Exactly one reply.
struct AllocationService::Peer {
  grpc::ServerUnaryReactor* reactor = nullptr;
  v1::AllocationAllGatherResponse* response = nullptr;
  std::string name;
  int num_peers = 0;
  google::protobuf::Struct data;
  std::size_t bytes = 0;  ///< of the data
  MonoTime deadline;
};

struct AllocationService::Gather {
  int num_peers = 0;
  std::map<std::string, google::protobuf::Struct> data;  ///< by the peer's name
  std::size_t bytes = 0;                                 ///< of the data
  std::vector<Peer> waiting;
  MonoTime touched;

  bool complete() const { return static_cast<int>(data.size()) >= num_peers; }
  void answer(const Peer& peer) const {
    for (const auto& [name, brought] : data) *peer.response->add_data() = brought;
    peer.reactor->Finish(grpc::Status::OK);
  }
  void refuse(const Error& error) {
    for (const Peer& peer : waiting) peer.reactor->Finish(to_grpc(error));
    waiting.clear();
  }
};

void AllocationService::join(const AllocationId& id, Peer peer) {
  if (gathers_closed_) return peer.reactor->Finish(to_grpc(shutting_down()));
  if (gathered_bytes() + peer.bytes > kMaxHeldBytes) {
    return peer.reactor->Finish(to_grpc(
        Error{Code::kResourceExhausted, "the all-gathers of the cluster hold 256 MiB; try again later", {}}));
  }
  auto& rounds = gathers_[id];
  std::shared_ptr<Gather> round;
  // A known name is a repeated call: it belongs to the round that it joined first.
  for (const auto& known : rounds)
    if (known->data.contains(peer.name)) round = known;
  if (!round && !rounds.empty() && !rounds.back()->complete()) round = rounds.back();
  if (!round) {
    round = rounds.emplace_back(std::make_shared<Gather>());
    round->num_peers = peer.num_peers;
    if (rounds.size() > kKeptRounds) rounds.erase(rounds.begin());
  }
  const auto end_round = [&](const Error& error) {
    peer.reactor->Finish(to_grpc(error));
    if (!round->complete()) round->refuse(error);
    // A completed round stays: its answer is valid for the peers that agreed.
    std::erase_if(rounds, [&](const auto& known) { return known == round && !known->complete(); });
  };
  if (round->num_peers != peer.num_peers) {
    return end_round(
        {Code::kAborted, "the peers of allocation " + id.value + " disagree on how many they are", {}});
  }
  const bool repeated = round->data.contains(peer.name);
  const std::size_t bytes = round->bytes + (repeated ? 0 : peer.bytes);
  if (!repeated && bytes > kMaxReplyBytes / static_cast<std::size_t>(round->num_peers)) {
    return end_round({Code::kInvalidArgument,
                      "data: the replies to " + std::to_string(round->num_peers) +
                          " peers exceed 256 MiB; share a file or send less than " +
                          std::to_string(kMaxReplyBytes / static_cast<std::size_t>(round->num_peers)) +
                          " bytes in all",
                      {}});
  }
  // A repeated call to an open round waits in addition to the first one.
  round->touched = mono_now();
  if (round->complete()) return round->answer(peer);
  if (!repeated) round->data[peer.name] = std::move(peer.data);
  round->bytes = bytes;
  round->waiting.push_back(std::move(peer));
  if (!round->complete()) return;
  for (const Peer& waiting : round->waiting) round->answer(waiting);
  round->waiting.clear();
}

std::size_t AllocationService::gathered_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, rounds] : gathers_)
    for (const auto& round : rounds) bytes += round->bytes;
  return bytes;
}

void AllocationService::tick_gathers(MonoTime now) {
  for (auto& [id, rounds] : gathers_) {
    for (const auto& round : rounds) {
      std::erase_if(round->waiting, [&](const Peer& peer) {
        if (peer.deadline > now) return false;
        peer.reactor->Finish(
            to_grpc(Error{Code::kDeadlineExceeded, "not all peers have come yet; ask again", {}}));
        return true;
      });
    }
    std::erase_if(rounds, [&](const auto& round) {
      return round->waiting.empty() && round->touched + (round->complete() ? kKept : kKeptOpen) < now;
    });
  }
  std::erase_if(gathers_, [](const auto& entry) { return entry.second.empty(); });
}

void AllocationService::close_gathers() {
  gathers_closed_ = true;
  for (auto& [id, rounds] : gathers_)
    for (const auto& round : rounds) round->refuse(shutting_down());
  gathers_.clear();
}

void AllocationService::AllocationAllGather(const Deferred& call,
                                            const v1::AllocationAllGatherRequest* request,
                                            v1::AllocationAllGatherResponse* response) {
  Peer peer{.reactor = call.reactor,
            .response = response,
            .name = request->request_uuid(),
            .num_peers = request->num_peers(),
            .data = request->data(),
            .bytes = request->data().ByteSizeLong(),
            .deadline = mono_now() + kPatience};
  grpc::ServerUnaryReactor* const reactor = peer.reactor;
  const AllocationId id(request->allocation_id());
  const auto admitted = [this, id, credentials = read_credentials(*call.context), request]() -> Status {
    TRY_ASSIGN(const Caller caller,
               authorize("/det.v1.AllocationService/AllocationAllGather", credentials, *context_.sessions));
    // Validated on the worker, before the call takes part in a round.
    TRY(find_reporter(context_, caller, {.allocation = id}));
    if (request->request_uuid().empty() || request->request_uuid().size() > 128)
      return fail(Code::kInvalidArgument, "request_uuid: a name of the peer of 1 to 128 bytes");
    if (request->num_peers() < 1 || request->num_peers() > kMaxGatherPeers)
      return fail(Code::kInvalidArgument, "num_peers: 1 to 10000");
    if (request->data().ByteSizeLong() > kMaxGatherBytes)
      return fail(Code::kInvalidArgument, "data: at most 1 MiB");
    return {};
  };
  post(context_.pools.ingest, reactor, [this, id, peer = std::move(peer), admitted]() mutable {
    if (auto status = admitted(); !status) return peer.reactor->Finish(to_grpc(status.error()));
    grpc::ServerUnaryReactor* const waiting = peer.reactor;
    const bool taken = context_.pools.gather.try_post(
        [this, id, peer = std::move(peer)]() mutable { join(id, std::move(peer)); });
    if (!taken) waiting->Finish(to_grpc(busy()));
  });
}

}  // namespace det::api
