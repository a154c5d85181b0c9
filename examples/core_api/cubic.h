// The model: a cubic polynomial, fitted to points of a sine by gradient descent.
#pragma once

#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>

/// Coefficients c[0] + c[1] x + c[2] x² + c[3] x³.
struct Cubic {
  std::array<double, 4> c{};
  double at(double x) const { return c[0] + x * (c[1] + x * (c[2] + x * c[3])); }
};

/// The mean squared error and its gradient with respect to the coefficients.
struct Slope {
  double loss = 0;
  std::array<double, 4> by_c{};
};

inline constexpr int kPoints = 64;

/// Sums over the points first, first + stride, …, each weighted 1 / kPoints: the results of disjoint shards
/// add up to the loss over all points.
inline Slope slope_of(const Cubic& cubic, int first = 0, int stride = 1) {
  Slope slope;
  for (int i = first; i < kPoints; i += stride) {
    const double x = 2.0 * i / (kPoints - 1) - 1, miss = cubic.at(x) - std::sin(3 * x);
    slope.loss += miss * miss / kPoints;
    double power = 1;
    for (double& by_c : slope.by_c) {
      by_c += 2 * miss * power / kPoints;
      power *= x;
    }
  }
  return slope;
}

/// One step of gradient descent.
inline void descend(Cubic& cubic, const Slope& slope, double learning_rate) {
  for (std::size_t i = 0; i < 4; ++i) cubic.c[i] -= learning_rate * slope.by_c[i];
}

/// Writes the coefficients as hexadecimal floats: load() restores the same bits.
inline void save(const Cubic& cubic, const std::string& directory) {
  std::ofstream file(directory + "/cubic.txt");
  file << std::hexfloat;
  for (const double c : cubic.c) file << c << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + directory + "/cubic.txt");
}

inline Cubic load(const std::string& directory) {
  std::ifstream file(directory + "/cubic.txt");
  Cubic cubic;
  std::string word;
  for (double& c : cubic.c) {
    if (!(file >> word)) throw std::runtime_error(directory + "/cubic.txt is damaged");
    c = std::stod(word);
  }
  return cubic;
}
