#include "harness/src/programs/check_device.h"

#include <torch/cuda.h>
#include <torch/types.h>

#include <iostream>
#include <stdexcept>

namespace det {
namespace {

constexpr std::int64_t kMaxFactor = 8;  // elements of the matrices are integers below it

/// Amount of work.
struct Load {
  std::int64_t rows = 2048;        ///< of the square matrices
  int products = 8;                ///< each with other matrices
  std::int64_t copied = 64 << 20;  ///< bytes
};
// Reference BLAS multiplies some 1e9 times a second.
constexpr Load kCpuLoad{512, 2, 16 << 20};

/// Multiplies integer matrices on the device. Sums are below 2^24, so every order of the additions, and TF32,
/// gives the exact result. The product is verified on the CPU by its effect on one vector (Freivalds).
void check_products(const torch::Device& device, const Load& load) {
  // Without zeros, so that no element of the product is left out of the verification.
  const auto integers = [&](std::int64_t columns) {
    return torch::randint(1, kMaxFactor, {load.rows, columns}, torch::kFloat32);
  };
  for (int i = 0; i < load.products; ++i) {
    const torch::Tensor a = integers(load.rows), b = integers(load.rows), vector = integers(1);
    const torch::Tensor product = torch::mm(a.to(device), b.to(device)).to(torch::kCPU);
    const auto exact = [](const torch::Tensor& tensor) { return tensor.to(torch::kFloat64); };
    const torch::Tensor expected = torch::mm(exact(a), torch::mm(exact(b), exact(vector)));
    if (!torch::equal(torch::mm(exact(product), exact(vector)), expected))
      throw std::runtime_error("a matrix product is wrong");
  }
}

/// Copies a buffer to the device, on the device, and back.
void check_copies(const torch::Device& device, const Load& load) {
  const torch::Tensor sent = torch::randint(0, 256, {load.copied}, torch::kUInt8);
  const torch::Tensor there = sent.to(device, /*non_blocking=*/false, /*copy=*/true);
  if (!torch::equal(there.clone().to(torch::kCPU), sent))
    throw std::runtime_error("a copy to the device and back differs");
}

}  // namespace

int check_device(const std::string& type) {
  if (type != "cuda" && type != "cpu") {
    std::cerr << "--check-device: must be cuda or cpu, got \"" << type << "\"\n";
    return 2;
  }
  const Load load = type == "cpu" ? kCpuLoad : Load();
  try {
    if (type == "cuda" && !torch::cuda::is_available())
      throw std::runtime_error("LibTorch finds no usable CUDA device (" DET_LIBTORCH "); check nvidia-smi");
    const torch::NoGradGuard no_grad;
    const torch::Device device(type);
    check_products(device, load);
    check_copies(device, load);
  } catch (const std::exception& error) {
    // The first line: LibTorch appends a stack.
    const std::string text = error.what();
    std::cerr << text.substr(0, text.find('\n')) << "\n";
    return 1;
  }
  std::cout << "the " << type << " device is good: " << load.products << " matrix products, " << load.copied
            << " bytes copied\n";
  return 0;
}

}  // namespace det
