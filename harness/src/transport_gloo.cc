// Owns collectives over Gloo (TCP). Gloo is called by itself and not through LibTorch's binding of it: that has a thread of
// its own beside ours, and its sums are built for any processor and add one number at a time.
#include "transport.h"

#ifdef DET_HAS_GLOO
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#endif

#include <array>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "rank_sum.h"

namespace det {

#ifdef DET_HAS_GLOO
namespace {

constexpr auto kTimeout = std::chrono::hours(24);  // slow ranks are no error; dead ones close their connections
constexpr double kNewsSeconds = 2;
/// Summed while the next is under way, and still in the cache when it is. Gloo's own megabyte takes a fifth longer for 4 MB.
constexpr std::size_t kSegmentBytes = 256 << 10;

bool is_16_bit(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kBFloat16 || tensor.scalar_type() == torch::kHalf;
}

class GlooTransport final : public Transport {
 public:
  GlooTransport(DistributedContext& distributed, std::shared_ptr<gloo::Context> context)
      : distributed_(distributed), context_(std::move(context)) {}

  const char* name() const override { return "gloo"; }

  void all_reduce(torch::Tensor& tensor, Reduction how) override {
    if (is_16_bit(tensor)) {  // would be rounded after each rank
      torch::Tensor sum = tensor.to(torch::kFloat);
      all_reduce(sum, how);
      tensor.copy_(sum);
      return;
    }
    const SumFunction sum = sum_of(tensor.scalar_type());
    if (sum == nullptr) throw std::invalid_argument("gloo: tensors of this type have no sum");
    const double mean = how == Reduction::kMean ? 1.0 / distributed_.size() : 1.0;
    // Of two ranks each element is added once: the mean costs no pass of its own.
    const bool at_once = distributed_.size() == 2;
    named([&] {
      gloo::AllreduceOptions options(context_);
      if (tensor.element_size() == 4) {
        options.setOutput(static_cast<std::int32_t*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel()));
      } else {
        options.setOutput(static_cast<std::int64_t*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel()));
      }
      options.setReduceFunction([sum, scale = at_once ? mean : 1.0](void* out, const void* a, const void* b, std::size_t count) {
        const std::array<const void*, 2> sources{a, b};
        sum(sources.data(), 2, scale, out, nullptr, count);
      });
      options.setTag(tag_++);
      options.setMaxSegmentSize(kSegmentBytes);
      gloo::allreduce(options);
    });
    if (how == Reduction::kMean && !at_once) tensor.mul_(mean);
  }

  void all_gather(torch::Tensor& output, const torch::Tensor& input) override {
    named([&] {
      gloo::AllgatherOptions options(context_);
      options.setInput(static_cast<char*>(input.data_ptr()), input.nbytes());
      options.setOutput(static_cast<char*>(output.data_ptr()), output.nbytes());
      options.setTag(tag_++);
      gloo::allgather(options);
    });
  }

  void broadcast(torch::Tensor& tensor) override {
    named([&] {
      gloo::BroadcastOptions options(context_);
      options.setOutput(static_cast<char*>(tensor.data_ptr()), tensor.nbytes());
      options.setRoot(0);
      options.setTag(tag_++);
      gloo::broadcast(options);
    });
  }

 private:
  /// Gloo speaks of addresses: the star knows which rank it was.
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
  std::shared_ptr<gloo::Context> context_;
  std::uint32_t tag_ = 0;
};

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

/// How the ranks tell each other where they listen. Every rank sets as many values as the others, in the same order: each
/// time all tell what they have set.
class Exchange final : public gloo::rendezvous::Store {
 public:
  explicit Exchange(DistributedContext& distributed) : distributed_(distributed) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    for (const std::string& told : distributed_.allgather_bytes(key + '\0' + std::string(data.begin(), data.end()))) {
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

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(DistributedContext& distributed) {
  try {
    auto device = device_for(distributed);
    const auto context = std::make_shared<gloo::rendezvous::Context>(distributed.rank(), distributed.size());
    context->setTimeout(kTimeout);
    Exchange exchange(distributed);
    context->connectFullMesh(exchange, device);
    return std::make_unique<GlooTransport>(distributed, context);
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
