// Inner loops of optimizers and gradient scaling: one pass over the memory of a parameter. Standard library
// only. Elements are independent and every operation is rounded once, so results depend neither on the CPU
// nor on how a range is split among threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det::kernels {

/// Coefficients of one SGD step.
struct Sgd {
  float lr, momentum, keep;  ///< keep is 1 - dampening
  float weight_decay;
  bool nesterov;
};
/// p -= lr * (g + weight_decay * p), for `count` elements.
void sgd(const Sgd& how, float* p, const float* g, std::size_t count);
/// SGD with momentum. `buffer` holds the momentum; with `first` it is
/// uninitialized and receives the gradient.
void sgd_momentum(const Sgd& how, bool first, float* p, const float* g, float* buffer, std::size_t count);

/// Coefficients of one step of Adam (Kingma and Ba, 2015, algorithm 1), AMSGrad (Reddi et al., 2018,
/// algorithm 2) or AdamW (Loshchilov and Hutter, 2019, algorithm 2: decoupled weight decay).
struct Adam {
  float step_size;  ///< lr / (1 - beta1^step)
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float root_correction;  ///< sqrt(1 - beta2^step)
  float eps;
  float weight_decay;  ///< L2 penalty: added to the gradient as weight_decay * p
  float shrink;        ///< factor applied to the parameter first: 1 - lr * weight_decay for AdamW, else 1
};
/// One step. `average` and `square` are the first and second moment, updated in place.
void adam(const Adam& how, float* p, const float* g, float* average, float* square, std::size_t count);
/// One step of AMSGrad. `largest` is the running maximum of `square`; it takes
/// the place of the second moment.
void adam_amsgrad(const Adam& how, float* p, const float* g, float* average, float* square, float* largest,
                  std::size_t count);

/// Coefficients of one step of ADADELTA (Zeiler, 2012, algorithm 1).
struct Adadelta {
  float lr, rho, one_minus_rho, eps, weight_decay;
};
/// One step. `square` accumulates squared gradients, `delta` squared updates; both are updated in place.
void adadelta(const Adadelta& how, float* p, const float* g, float* square, float* delta, std::size_t count);

/// Sum of x[i]^2 in double precision, in an order of addition that is the same on every CPU.
double sum_of_squares(const float* x, std::size_t count);
/// Maximum of |x[i]|; NaN when an element is NaN; 0 for an empty range.
float largest_magnitude(const float* x, std::size_t count);
/// x[i] *= factor.
void multiply(float* x, float factor, std::size_t count);
/// x[i] *= factor. Returns whether all elements were finite before the multiplication.
bool multiply_finite(float* x, float factor, std::size_t count);

}  // namespace det::kernels
