// Owns collectives over Gloo (TCP), by way of LibTorch's own binding of it.
#if __has_include(<gloo/context.h>)
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#define DET_HAS_GLOO 1
#endif

#include "transport.h"

#if DET_HAS_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

#include <cstdlib>
#include <stdexcept>

#include "torch_compat.h"

namespace det {

#if DET_HAS_GLOO
namespace {

constexpr auto kTimeout = std::chrono::hours(24);  // slow ranks are no error; dead ones close their connections
constexpr double kNewsSeconds = 2;

bool is_16_bit(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kBFloat16 || tensor.scalar_type() == torch::kHalf;
}

class GlooTransport final : public Transport {
 public:
  GlooTransport(DistributedContext& distributed, c10::intrusive_ptr<c10d::ProcessGroupGloo> group)
      : distributed_(distributed), group_(std::move(group)) {}

  const char* name() const override { return "gloo"; }

  void all_reduce(torch::Tensor& tensor, Reduction how) override {
    if (is_16_bit(tensor)) {  // Gloo has no bfloat16, and would round after each rank
      torch::Tensor sum = tensor.to(torch::kFloat);
      all_reduce(sum, how);
      tensor.copy_(sum);
      return;
    }
    named([&] {
      std::vector<at::Tensor> tensors{tensor};
      group_->allreduce(tensors)->wait();
    });
    if (how == Reduction::kMean) tensor.mul_(1.0 / distributed_.size());
  }

  void all_gather(torch::Tensor& output, const torch::Tensor& input) override {
    named([&] {
      // Bytes: every type passes.
      std::vector<std::vector<at::Tensor>> outputs{as_bytes(output).chunk(distributed_.size())};
      std::vector<at::Tensor> inputs{as_bytes(input)};
      group_->allgather(outputs, inputs)->wait();
    });
  }

  void broadcast(torch::Tensor& tensor) override {
    named([&] {
      std::vector<at::Tensor> tensors{as_bytes(tensor)};
      group_->broadcast(tensors)->wait();
    });
  }

 private:
  static torch::Tensor as_bytes(const torch::Tensor& tensor) {
    return torch::from_blob(tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, torch::kUInt8);
  }

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
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

std::shared_ptr<gloo::transport::Device> device_for(const DistributedContext& distributed) {
  for (const char* name : {"DET_INTER_NODE_NETWORK_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    const char* interface = std::getenv(name);
    if (distributed.cross_size() > 1 && interface != nullptr && *interface != '\0') {
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    }
  }
  return c10d::ProcessGroupGloo::createDeviceForHostname(distributed.address());
}

c10::intrusive_ptr<c10d::Store> make_store(DistributedContext& distributed) {
  c10d::TCPStoreOptions options;
  options.port = 0;  // any that is free
  options.isServer = distributed.is_chief();
  options.numWorkers = static_cast<std::size_t>(distributed.size());
  options.waitWorkers = false;
  const std::string address = distributed.info().chief_address;
  if (distributed.is_chief()) {
    auto store = c10::make_intrusive<c10d::TCPStore>(address, options);
    (void)distributed.broadcast_bytes(std::to_string(store->getPort()));
    return store;
  }
  options.port = static_cast<std::uint16_t>(std::stoi(distributed.broadcast_bytes("")));
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(DistributedContext& distributed) {
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(kTimeout);
    options->devices.push_back(device_for(distributed));
    options->threads = 1;
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(make_store(distributed), distributed.rank(),
                                                             distributed.size(), options);
    distributed.barrier();  // the store is needed until all are connected
    return std::make_unique<GlooTransport>(distributed, std::move(group));
  } catch (const c10::Error& error) {
    throw std::runtime_error("gloo: " + std::string(error.what_without_backtrace()));
  }
}

#else

std::unique_ptr<Transport> make_gloo_transport(DistributedContext&) {
  throw std::runtime_error(
      "this libdet was built without Gloo (its headers were not found: libgloo-dev); ranks of one machine can use shm");
}

#endif

}  // namespace det
