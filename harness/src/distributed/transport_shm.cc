// Collectives over memory shared by the ranks of one machine.
//
// An all-reduce is a reduce-scatter and an all-gather, chunk by chunk: every rank publishes the parts of the
// chunk that other ranks sum, sums its own part over all ranks in rank order, and copies the other sums.
// Three chunks are in the pipeline at a time. A small tensor is published whole and summed by every rank,
// which needs one synchronization instead of two.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "harness/src/distributed/rank_sum.h"
#include "harness/src/distributed/shm_ring.h"
#include "harness/src/distributed/transport.h"

namespace det {
namespace {

constexpr std::size_t kChunkBytes = 256 << 10;
/// Tensors up to this size are summed whole by every rank.
constexpr std::size_t kMaxSmallBytes = 16 << 10;

enum class Kind : std::uint64_t { kAllReduce = 1, kAllGather, kBroadcast };
const char* const kKindNames[] = {"nothing", "all_reduce", "all_gather", "broadcast"};

/// Encodes a collective as a number that must be equal on all ranks.
std::uint64_t tag_of(Kind kind, c10::ScalarType type, std::size_t bytes) {
  return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(type) << 48 | bytes;
}

/// The tag in words, for the error about ranks in different collectives.
std::string describe(std::uint64_t tag) {
  const std::uint64_t kind = tag >> 56;
  return std::string(kind < 4 ? kKindNames[kind] : "something unknown") + " of " +
         std::to_string(tag & ((std::uint64_t{1} << 48) - 1)) + " bytes of " +
         c10::toString(static_cast<c10::ScalarType>(tag >> 48 & 0xff));
}

class ShmTransport final : public Transport {
 public:
  ShmTransport(DistributedContext& distributed, ShmRing ring)
      : distributed_(distributed),
        rank_(distributed.rank()),
        ranks_(distributed.size()),
        ring_(std::move(ring)) {}

  const char* name() const override { return "shm"; }
  void cancel() override { canceled_ = true; }

  void all_reduce(torch::Tensor& tensor, Reduction how) override {
    const SumFunction sum = sum_of(tensor.scalar_type());
    if (sum == nullptr)
      throw std::invalid_argument(std::string("shm: no sum of ") + c10::toString(tensor.scalar_type()));
    char* data = static_cast<char*>(tensor.data_ptr());
    const std::size_t bytes = tensor.nbytes();
    tag_ = tag_of(Kind::kAllReduce, tensor.scalar_type(), bytes);
    scale_ = how == Reduction::kMean ? 1.0 / ranks_ : 1.0;
    if (bytes <= kMaxSmallBytes) return reduce_small(data, bytes, tensor.element_size(), sum);
    const auto chunks = static_cast<std::uint32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
    // Software pipeline: chunk `turn` is given, the one before it summed, the one before that taken.
    for (std::uint32_t turn = 0; turn < chunks + 2; ++turn) {
      if (turn < chunks) give_parts(part(data, bytes, tensor.element_size(), turn));
      if (turn >= 1 && turn - 1 < chunks) sum_part(part(data, bytes, tensor.element_size(), turn - 1), sum);
      if (turn >= 2) take_parts(part(data, bytes, tensor.element_size(), turn - 2));
    }
    next_ += chunks;
  }

  void all_gather(torch::Tensor& output, const torch::Tensor& input) override {
    const auto* from = static_cast<const char*>(input.data_ptr());
    char* to = static_cast<char*>(output.data_ptr());
    const std::size_t bytes = input.nbytes();
    tag_ = tag_of(Kind::kAllGather, input.scalar_type(), bytes);
    exchange(bytes, [&](std::size_t at, std::size_t count) {
      give(from + at, count);
      for (int rank = 0; rank < ranks_; ++rank) {
        char* const place = to + static_cast<std::size_t>(rank) * bytes + at;
        // This rank's own data may be there already.
        const char* const data = rank == rank_ ? from + at : received(rank);
        if (data != place) std::memcpy(place, data, count);
      }
    });
  }

  void broadcast(torch::Tensor& tensor) override {
    char* data = static_cast<char*>(tensor.data_ptr());
    tag_ = tag_of(Kind::kBroadcast, tensor.scalar_type(), tensor.nbytes());
    exchange(tensor.nbytes(), [&](std::size_t at, std::size_t count) {
      // The other ranks give empty chunks, which lets rank 0 check their tags and reuse its slots.
      give(data + at, rank_ == 0 ? count : 0);
      if (rank_ != 0) std::memcpy(data + at, received(0), count);
    });
  }

 private:
  using Step = ShmRing::Step;

  /// A chunk of the tensor. Rank r sums its bytes [begin(r), begin(r + 1)).
  struct Part {
    char* data;
    std::size_t count, element;
    std::uint32_t chunk;
    int ranks;
    std::size_t begin(int rank) const {
      return count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks) * element;
    }
  };

  Part part(char* data, std::size_t bytes, std::size_t element, std::uint32_t turn) const {
    const std::size_t at = turn * kChunkBytes;
    return {data + at, std::min(kChunkBytes, bytes - at) / element, element, next_ + turn, ranks_};
  }

  /// Calls body(rank) for all other ranks, starting with the next, so that ranks read from different peers.
  template <typename Body>
  void for_others(const Body& body) const {
    for (int i = 1; i < ranks_; ++i) body((rank_ + i) % ranks_);
  }

  /// Waits for another rank. Throws std::runtime_error when a rank is gone or the transport was cancelled.
  void await(int rank, Step step, std::uint32_t chunks) const {
    ring_.await(rank, step, chunks, [&]() -> std::string {
      if (canceled_) return "shm: the communicator was closed";
      const std::string gone = distributed_.first_gone();
      const std::string why = gone.empty() ? distributed_.absence(rank) : gone;
      return why.empty() ? "" : "shm: " + why;
    });
  }

  /// Waits until all other ranks are done with the previous chunk in the slot of `chunk`.
  void await_slot(Step used, std::uint32_t chunk) const {
    for_others([&](int other) { await(other, used, chunk - ShmRing::kSlots + 1); });
  }

  /// Waits until `rank` has given `chunk`, and checks that it is in the same collective.
  void await_given(int rank, std::uint32_t chunk) const {
    await(rank, Step::kGiven, chunk + 1);
    if (const std::uint64_t tag = ring_.tag(rank, chunk); tag != tag_) {
      throw std::runtime_error("shm: rank " + std::to_string(rank) + " is in " + describe(tag) +
                               " while rank " + std::to_string(rank_) + " is in " + describe(tag_) +
                               ": every rank must make the same collectives in the same order");
    }
  }

  /// Publishes all parts of the chunk except this rank's own, which no other rank reads.
  void give_parts(const Part& part) {
    await_slot(Step::kSummed, part.chunk);
    char* slot = ring_.given(rank_, part.chunk);
    const std::size_t mine = part.begin(rank_), after = part.begin(rank_ + 1), end = part.begin(ranks_);
    std::memcpy(slot, part.data, mine);
    std::memcpy(slot + after, part.data + after, end - after);
    publish_given(part.chunk);
  }

  /// Sums this rank's part and publishes the result.
  void sum_part(const Part& part, SumFunction sum) {
    const std::size_t begin = part.begin(rank_);
    std::vector<const void*>& sources = sources_;
    sources.assign(static_cast<std::size_t>(ranks_), part.data + begin);
    for_others([&](int other) {
      await_given(other, part.chunk);
      sources[static_cast<std::size_t>(other)] = ring_.given(other, part.chunk) + begin;
    });
    await_slot(Step::kTaken, part.chunk);
    sum(sources.data(), ranks_, scale_, part.data + begin, ring_.summed(rank_, part.chunk),
        (part.begin(rank_ + 1) - begin) / part.element);
    ring_.publish(rank_, Step::kSummed, part.chunk + 1);
  }

  /// Copies the parts that other ranks summed.
  void take_parts(const Part& part) {
    for_others([&](int other) {
      await(other, Step::kSummed, part.chunk + 1);
      const std::size_t begin = part.begin(other);
      std::memcpy(part.data + begin, ring_.summed(other, part.chunk), part.begin(other + 1) - begin);
    });
    ring_.publish(rank_, Step::kTaken, part.chunk + 1);
  }

  /// The tag is written before the counter, which other ranks read first.
  void publish_given(std::uint32_t chunk) {
    ring_.tag(rank_, chunk) = tag_;
    ring_.publish(rank_, Step::kGiven, chunk + 1);
  }

  void reduce_small(char* data, std::size_t bytes, std::size_t element, SumFunction sum) {
    exchange(bytes, [&](std::size_t at, std::size_t count) {
      give(data + at, count);
      sources_.assign(static_cast<std::size_t>(ranks_), data + at);
      for_others([&](int other) { sources_[static_cast<std::size_t>(other)] = received(other); });
      sum(sources_.data(), ranks_, scale_, data + at, nullptr, count / element);
    });
  }

  /// Calls body(offset, count) chunk by chunk; `body` gives its data and reads that of the other ranks.
  template <typename Body>
  void exchange(std::size_t bytes, const Body& body) {
    for (std::size_t at = 0; at < std::max<std::size_t>(bytes, 1); at += kChunkBytes, ++next_) {
      body(at, std::min(kChunkBytes, bytes - at));
      ring_.publish(rank_, Step::kSummed, next_ + 1);
      ring_.publish(rank_, Step::kTaken, next_ + 1);
    }
  }

  void give(const char* data, std::size_t count) {
    await_slot(Step::kSummed, next_);
    if (count > 0) std::memcpy(ring_.given(rank_, next_), data, count);
    publish_given(next_);
  }

  const char* received(int rank) const {
    if (rank != rank_) await_given(rank, next_);
    return ring_.given(rank, next_);
  }

  DistributedContext& distributed_;
  const int rank_, ranks_;
  ShmRing ring_;
  std::atomic<bool> canceled_ = false;
  std::uint32_t next_ = 0;  ///< number of the next chunk
  std::uint64_t tag_ = 0;   ///< tag of the current collective
  double scale_ = 1;
  std::vector<const void*> sources_;
};

}  // namespace

std::unique_ptr<Transport> make_shm_transport(DistributedContext& distributed) {
  const int ranks = distributed.size();
  std::string name;
  auto ring = [&]() -> Result<ShmRing> {
    if (!distributed.is_chief()) {
      name = distributed.broadcast_bytes("");
      return name.empty() ? fail(Code::kUnavailable, "rank 0 has none")
                          : ShmRing::open(name, ranks, kChunkBytes);
    }
    auto made = ShmRing::create(ranks, kChunkBytes);
    (void)distributed.broadcast_bytes(made ? made->name() : "");
    return made;
  }();
  // Ranks exchange their errors, so that all of them use shared memory or none does.
  const auto problems = distributed.allgather_bytes(ring ? "" : ring.error().message);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    throw std::runtime_error("no shared memory on rank " + std::to_string(rank) + ": " + problems[rank]);
  }
  ring->unlink();
  return std::make_unique<ShmTransport>(distributed, std::move(*ring));
}

}  // namespace det
