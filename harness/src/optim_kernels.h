// Owns the inner loops of optimizers and of gradient scaling: one pass over the memory of a parameter.
// Standard library only. Element by element the same operations, each rounded once, so the result does not
// depend on the machine nor on how a range is split.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det::kernels {

struct Sgd {
  float lr, momentum, keep;  ///< keep: 1 - dampening
  float weight_decay;
  bool nesterov;
};
/// p -= lr * (g + weight_decay * p)
void sgd(const Sgd& how, float* p, const float* g, std::size_t count);
/// With momentum in `buffer`. `first`: the buffer has no value yet.
void sgd_momentum(const Sgd& how, bool first, float* p, const float* g, float* buffer, std::size_t count);

/// Kingma and Ba, Adam, 2015, algorithm 1; amsgrad: Reddi et al., 2018, algorithm 2; decoupled weight decay:
/// Loshchilov and Hutter, 2019, algorithm 2.
struct Adam {
  float step_size;  ///< lr / (1 - beta1^step)
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float root_correction;  ///< sqrt(1 - beta2^step)
  float eps;
  float weight_decay;  ///< added to the gradient
  float shrink;        ///< the parameter is multiplied by it first: 1 - lr * weight_decay of AdamW, else 1
};
void adam(const Adam& how, float* p, const float* g, float* average, float* square, std::size_t count);
void adam_amsgrad(const Adam& how, float* p, const float* g, float* average, float* square, float* largest,
                  std::size_t count);

/// Zeiler, ADADELTA, 2012, algorithm 1.
struct Adadelta {
  float lr, rho, one_minus_rho, eps, weight_decay;
};
void adadelta(const Adadelta& how, float* p, const float* g, float* square, float* delta, std::size_t count);

double sum_of_squares(const float* x, std::size_t count);
/// NaN when there is one.
float largest_magnitude(const float* x, std::size_t count);
void multiply(float* x, float factor, std::size_t count);
/// multiply(), and whether all were finite before.
bool multiply_finite(float* x, float factor, std::size_t count);

}  // namespace det::kernels
