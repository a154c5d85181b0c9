#include "harness/src/optim/optim_kernels.h"

#include <bit>

#include "harness/src/base/every_machine.h"

// DET_EVERY_MACHINE_FMA marks functions that place fused multiply-adds explicitly. The build adds
// -fno-math-errno, without which square roots are not vectorized (GCC 12 ignores it as an attribute).
#if defined(__x86_64__) && !defined(__clang__)
#define DET_EVERY_MACHINE_FMA \
  __attribute__((target_clones("avx512f", "arch=haswell", "default"), optimize("O3", "fp-contract=off")))
#else
#define DET_EVERY_MACHINE_FMA
#endif

namespace det::kernels {

// Rounds like torch.optim.SGD: add_(x, alpha) is one fused multiply-add, mul_ a plain multiplication. CPUs
// without FMA instructions emulate them in software, so the bits are the same.
DET_EVERY_MACHINE_FMA void sgd(const Sgd& how, float* __restrict p, const float* __restrict g,
                               std::size_t count) {
  const float minus_lr = -how.lr, weight_decay = how.weight_decay;
  for (std::size_t i = 0; i < count; ++i) {
    p[i] = __builtin_fmaf(minus_lr, __builtin_fmaf(weight_decay, p[i], g[i]), p[i]);
  }
}

DET_EVERY_MACHINE_FMA void sgd_momentum(const Sgd& how, bool first, float* __restrict p,
                                        const float* __restrict g, float* __restrict buffer,
                                        std::size_t count) {
  const auto [lr, momentum, keep, weight_decay, nesterov] = how;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = __builtin_fmaf(weight_decay, p[i], g[i]);
    const float b = first ? d : __builtin_fmaf(keep, d, momentum * buffer[i]);
    buffer[i] = b;
    p[i] = __builtin_fmaf(-lr, nesterov ? __builtin_fmaf(momentum, b, d) : b, p[i]);
  }
}

DET_EVERY_MACHINE void adam(const Adam& how, float* __restrict p, const float* __restrict g,
                            float* __restrict average, float* __restrict square, std::size_t count) {
  const auto [step_size, beta1, one_minus_beta1, beta2, one_minus_beta2, root, eps, weight_decay, shrink] =
      how;
  for (std::size_t i = 0; i < count; ++i) {
    const float shrunk = p[i] * shrink;
    const float d = g[i] + weight_decay * p[i];
    const float m = beta1 * average[i] + one_minus_beta1 * d;
    const float v = beta2 * square[i] + one_minus_beta2 * d * d;
    average[i] = m;
    square[i] = v;
    p[i] = shrunk - step_size * m / (__builtin_sqrtf(v) / root + eps);
  }
}

DET_EVERY_MACHINE void adam_amsgrad(const Adam& how, float* __restrict p, const float* __restrict g,
                                    float* __restrict average, float* __restrict square,
                                    float* __restrict largest, std::size_t count) {
  const auto [step_size, beta1, one_minus_beta1, beta2, one_minus_beta2, root, eps, weight_decay, shrink] =
      how;
  for (std::size_t i = 0; i < count; ++i) {
    const float shrunk = p[i] * shrink;
    const float d = g[i] + weight_decay * p[i];
    const float m = beta1 * average[i] + one_minus_beta1 * d;
    const float v = beta2 * square[i] + one_minus_beta2 * d * d;
    // `v != v` propagates a NaN into the maximum, as torch.max does.
    const float most = v > largest[i] || v != v ? v : largest[i];
    average[i] = m;
    square[i] = v;
    largest[i] = most;
    p[i] = shrunk - step_size * m / (__builtin_sqrtf(most) / root + eps);
  }
}

DET_EVERY_MACHINE void adadelta(const Adadelta& how, float* __restrict p, const float* __restrict g,
                                float* __restrict square, float* __restrict delta, std::size_t count) {
  const auto [lr, rho, one_minus_rho, eps, weight_decay] = how;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = g[i] + weight_decay * p[i];
    const float s = rho * square[i] + one_minus_rho * d * d;
    const float change = __builtin_sqrtf(delta[i] + eps) / __builtin_sqrtf(s + eps) * d;
    square[i] = s;
    delta[i] = rho * delta[i] + one_minus_rho * change * change;
    p[i] -= lr * change;
  }
}

DET_EVERY_MACHINE double sum_of_squares(const float* x, std::size_t count) {
  // Sixteen accumulators fix the order of addition for every vector width.
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += static_cast<double>(x[i]) * x[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

DET_EVERY_MACHINE float largest_magnitude(const float* x, std::size_t count) {
  // With the sign bit cleared, floats compare like their bits: finite values, then infinity, then NaN.
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  return std::bit_cast<float>(most);
}

DET_EVERY_MACHINE void multiply(float* x, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

DET_EVERY_MACHINE bool multiply_finite(float* x, float factor, std::size_t count) {
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // All exponent bits set means infinity or NaN. The flag is accumulated without a branch
    // to keep the loop vectorizable.
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(x[i]) & 0x7f800000u) == 0x7f800000u);
    x[i] *= factor;
  }
  return bad == 0;
}

}  // namespace det::kernels
