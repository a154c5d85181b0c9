// Collectives over Gloo (TCP). Gloo's connections are used directly. LibTorch's binding would add a thread,
// and the sums of Gloo's algorithms are compiled for the baseline CPU and add one element at a time.
#include "harness/src/distributed/transport.h"

#ifdef DET_HAS_GLOO
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#endif

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "harness/src/distributed/rank_sum.h"

namespace det {

#ifdef DET_HAS_GLOO
namespace {

/// Slow ranks are not an error; dead ones close their connections.
constexpr auto kTimeout = std::chrono::hours(24);
/// Seconds to wait for the name of the absent rank after a failure.
constexpr double kNewsSeconds = 2;
/// A segment is summed while the next one is received; it must still be in the cache then.
constexpr std::size_t kSegmentBytes = 256 << 10;

using gloo::transport::Buffer;

bool is_16_bit(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kBFloat16 || tensor.scalar_type() == torch::kHalf;
}

/// A byte range of a vector.
struct Block {
  std::size_t offset;
  std::size_t bytes;
};

/// Block `index` (modulo `size`) of a vector split into `size` blocks of nearly equal length.
Block block_of(std::size_t count, std::size_t element_bytes, int size, int index) {
  const std::size_t parts = static_cast<std::size_t>(size),
                    part = static_cast<std::size_t>((index % size + size) % size);
  const std::size_t begin = count * part / parts, end = count * (part + 1) / parts;
  return {begin * element_bytes, (end - begin) * element_bytes};
}

/// The ranks as a ring: each sends to its right neighbor and receives from its left. The calling
/// thread reads the socket itself (sync mode). In Gloo's collectives a device thread reads and wakes
/// the caller; without an idle core every message then waits for two scheduler switches, which
/// dominated the time of an all-reduce.
class Ring {
 public:
  /// Even ranks send in the first context, odd ranks in the second. Each direction then has its own
  /// connection, also with two ranks, so that one end only sends and the other only reads.
  explicit Ring(std::array<std::shared_ptr<gloo::Context>, 2> contexts) : contexts_(std::move(contexts)) {
    from_left().setSync(true, false);
  }

  int rank() const { return contexts_[0]->rank; }
  int size() const { return contexts_[0]->size; }

  /// The buffers of one collective. `data` has the same layout on all ranks. With `staging`, segments are
  /// received there instead of in `data`.
  class Lane {
   public:
    Lane(Ring& ring, void* data, std::size_t bytes, std::vector<char>* staging = nullptr)
        : staged_(staging != nullptr),
          out_(ring.to_right().createSendBuffer(0, data, bytes)),
          in_(ring.from_left().createRecvBuffer(0, staged_ ? staging->data() : data,
                                                staged_ ? staging->size() : bytes)) {}
    ~Lane() {
      try {
        for (; sent_ > 0; --sent_) out_->waitSend();
      } catch (const std::exception&) {  // a broken connection was already reported by take()
      }
    }

    /// Queues a segment; the destructor waits for its completion.
    void send(const Block& segment) {
      out_->send(segment.offset, segment.bytes, staged_ ? 0 : segment.offset);
      ++sent_;
    }
    /// Waits for the next segment.
    void take() { in_->waitRecv(); }

    /// Sends block `out` and receives block `in`, segment by segment. Calls taken(segment) after each one.
    template <typename Taken>
    void shift(const Block& out, const Block& in, const Taken& taken) {
      std::size_t next = 0;
      const auto send_next = [&] {
        if (next < out.bytes) send({out.offset + next, std::min(kSegmentBytes, out.bytes - next)});
        next += kSegmentBytes;
      };
      send_next();
      for (std::size_t at = 0; at < in.bytes; at += kSegmentBytes) {
        send_next();  // in flight while the received segment is summed
        take();
        taken({in.offset + at, std::min(kSegmentBytes, in.bytes - at)});
      }
      while (next < out.bytes) send_next();
    }

   private:
    const bool staged_;
    int sent_ = 0;
    std::unique_ptr<Buffer> out_, in_;
  };

 private:
  gloo::transport::Pair& to_right() {
    return *contexts_[static_cast<std::size_t>(rank() % 2)]->getPair((rank() + 1) % size());
  }
  gloo::transport::Pair& from_left() {
    const int left = (rank() + size() - 1) % size();
    return *contexts_[static_cast<std::size_t>(left % 2)]->getPair(left);
  }

  std::array<std::shared_ptr<gloo::Context>, 2> contexts_;
};

class GlooTransport final : public Transport {
 public:
  GlooTransport(DistributedContext& distributed, Ring ring)
      : distributed_(distributed), ring_(std::move(ring)) {}

  const char* name() const override { return "gloo"; }

  /// Ring all-reduce: a reduce-scatter, in which each rank completes one block, and an all-gather.
  /// Blocks are added in ring order.
  void all_reduce(torch::Tensor& tensor, Reduction how) override {
    // 16-bit sums would be rounded after each rank, so they are exchanged as floats.
    if (is_16_bit(tensor)) {
      torch::Tensor sum = tensor.to(torch::kFloat);
      all_reduce(sum, how);
      tensor.copy_(sum);
      return;
    }
    const SumFunction sum = sum_of(tensor.scalar_type());
    if (sum == nullptr) throw std::invalid_argument("gloo: tensors of this type have no sum");
    named([&] {
      const int size = ring_.size(), rank = ring_.rank();
      const std::size_t element = tensor.element_size(), bytes = tensor.nbytes();
      char* const data = static_cast<char*>(tensor.data_ptr());
      const auto block = [&](int index) { return block_of(bytes / element, element, size, index); };
      {
        Ring::Lane lane(ring_, data, bytes, &staging_);
        for (int step = 0; step < size - 1; ++step) {
          // The last addition completes the sum, so the mean needs no separate pass.
          const double scale = how == Reduction::kMean && step == size - 2 ? 1.0 / size : 1.0;
          lane.shift(block(rank - step), block(rank - step - 1), [&](const Block& segment) {
            char* const mine = data + segment.offset;
            const std::array<const void*, 2> sources{mine, staging_.data()};
            sum(sources.data(), 2, scale, mine, nullptr, segment.bytes / element);
          });
        }
      }
      Ring::Lane lane(ring_, data, bytes);
      for (int step = 0; step < size - 1; ++step)
        lane.shift(block(rank + 1 - step), block(rank - step), [](const Block&) {});
    });
  }

  void all_gather(torch::Tensor& output, const torch::Tensor& input) override {
    named([&] {
      char* const data = static_cast<char*>(output.data_ptr());
      const auto block = [&](int index) { return block_of(output.nbytes(), 1, ring_.size(), index); };
      char* const own = data + block(ring_.rank()).offset;
      if (own != input.data_ptr()) std::memcpy(own, input.data_ptr(), input.nbytes());
      Ring::Lane lane(ring_, data, output.nbytes());
      for (int step = 0; step < ring_.size() - 1; ++step) {
        lane.shift(block(ring_.rank() - step), block(ring_.rank() - step - 1), [](const Block&) {});
      }
    });
  }

  void broadcast(torch::Tensor& tensor) override {
    named([&] {
      // Pipelined along the ring: each rank forwards a segment as soon as it arrives.
      Ring::Lane lane(ring_, tensor.data_ptr(), tensor.nbytes());
      for (std::size_t at = 0; at < tensor.nbytes(); at += kSegmentBytes) {
        if (ring_.rank() > 0) lane.take();
        if (ring_.rank() < ring_.size() - 1) lane.send({at, std::min(kSegmentBytes, tensor.nbytes() - at)});
      }
    });
  }

 private:
  /// Runs `body` and adds the absent rank to its errors. Gloo reports only addresses; the connections of
  /// DistributedContext identify the rank.
  template <typename Body>
  void named(const Body& body) const {
    try {
      body();
    } catch (const std::exception& error) {
      const std::string who = distributed_.await_absence(kNewsSeconds);
      if (who.empty()) throw std::runtime_error(std::string("gloo: ") + error.what());
      throw std::runtime_error("gloo: " + who);
    }
  }

  DistributedContext& distributed_;
  Ring ring_;
  std::vector<char> staging_ = std::vector<char>(kSegmentBytes);
};

/// The network device to use. An interface named by the environment applies only between machines.
std::shared_ptr<gloo::transport::Device> device_for(const DistributedContext& distributed) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = distributed.address();
  for (const char* name : {"DET_INTER_NODE_NETWORK_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    const char* interface = std::getenv(name);
    if (distributed.cross_size() > 1 && interface != nullptr && *interface != '\0') {
      attributes.hostname.clear();
      attributes.iface = interface;
      break;
    }
  }
  return gloo::transport::tcp::CreateDevice(attributes);
}

/// Rendezvous store over DistributedContext. Every rank sets the same number of values in the same order, so
/// each set() is one all-gather of all ranks' values.
class Exchange final : public gloo::rendezvous::Store {
 public:
  explicit Exchange(DistributedContext& distributed) : distributed_(distributed) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    for (const std::string& told :
         distributed_.allgather_bytes(key + '\0' + std::string(data.begin(), data.end()))) {
      const std::size_t end = told.find('\0');
      values_[told.substr(0, end)].assign(told.begin() + static_cast<std::ptrdiff_t>(end) + 1, told.end());
    }
  }
  std::vector<char> get(const std::string& key) override { return values_.at(key); }
  void wait(const std::vector<std::string>&) override {}

 private:
  DistributedContext& distributed_;
  std::map<std::string, std::vector<char>> values_;
};

/// Lets writes to a dead rank's connection fail instead of ending this process before it can name that rank:
/// Gloo writes without MSG_NOSIGNAL, also on its own thread. A handler of the user's stays.
void ignore_broken_pipes() {
  struct sigaction current {};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
      current.sa_handler == SIG_DFL) {
    ::signal(SIGPIPE, SIG_IGN);
  }
}

/// Connects all ranks. Newer versions of Gloo share the store, older ones take a reference.
template <typename Context, typename Device>
void connect(Context& context, const std::shared_ptr<Exchange>& exchange, Device& device) {
  if constexpr (requires { context.connectFullMesh(exchange, device); })
    context.connectFullMesh(exchange, device);
  else
    context.connectFullMesh(*exchange, device);
}

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(DistributedContext& distributed) {
  try {
    ignore_broken_pipes();
    auto device = device_for(distributed);
    std::array<std::shared_ptr<gloo::Context>, 2> contexts;
    // One full mesh per direction, see Ring.
    for (auto& connected : contexts) {
      const auto context =
          std::make_shared<gloo::rendezvous::Context>(distributed.rank(), distributed.size());
      context->setTimeout(kTimeout);
      connect(*context, std::make_shared<Exchange>(distributed), device);
      connected = context;
    }
    return std::make_unique<GlooTransport>(distributed, Ring(std::move(contexts)));
  } catch (const gloo::Exception& error) {
    throw std::runtime_error("gloo: " + std::string(error.what()));
  }
}

#else

std::unique_ptr<Transport> make_gloo_transport(DistributedContext&) {
  throw std::runtime_error(
      "this libdet was built without Gloo (it was not found: libgloo-dev); ranks of one machine can use shm");
}

#endif

}  // namespace det
