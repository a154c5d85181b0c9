// Generates digits in the file format of MNIST: strokes of ten shapes with random distortion. Easier than
// MNIST; for machines without a network.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

// Strokes of a digit in the unit square; y points down.
inline std::vector<Stroke> strokes_of(int digit) {
  const auto arc = [](double x, double y, double rx, double ry, double from, double to) {
    Stroke stroke;
    for (int i = 0; i <= 16; ++i) {
      const double angle = (from + (to - from) * i / 16) * M_PI / 180;
      stroke.push_back({x + rx * std::cos(angle), y + ry * std::sin(angle)});
    }
    return stroke;
  };
  switch (digit) {
    case 0:
      return {arc(.5, .5, .28, .42, 0, 360)};
    case 1:
      return {{{.35, .25}, {.53, .08}, {.53, .92}}};
    case 2:
      return {arc(.5, .32, .26, .24, -170, 30), {{.72, .44}, {.24, .9}, {.78, .9}}};
    case 3:
      return {arc(.47, .3, .25, .21, -150, 90), arc(.47, .7, .28, .21, -90, 150)};
    case 4:
      return {{{.62, .92}, {.62, .08}, {.2, .64}, {.82, .64}}};
    case 5:
      return {{{.74, .1}, {.32, .1}, {.29, .45}}, arc(.47, .65, .27, .25, -130, 140)};
    case 6:
      return {{{.66, .08}, {.38, .36}, {.25, .64}}, arc(.49, .67, .25, .24, 0, 360)};
    case 7:
      return {{{.22, .1}, {.78, .1}, {.42, .92}}};
    case 8:
      return {arc(.5, .29, .21, .2, 0, 360), arc(.5, .7, .26, .22, 0, 360)};
    default:
      return {arc(.5, .32, .24, .23, 0, 360), {{.74, .32}, {.7, .6}, {.56, .92}}};
  }
}

inline double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double along =
      std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / std::max(dx * dx + dy * dy, 1e-9), 0., 1.);
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// Returns 28 × 28 gray values: strokes with random rotation, shear, size, position and width.
inline std::array<uint8_t, 28 * 28> draw_digit(int digit, std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * (random() / 4294967296.0);
  };
  const double angle = uniform(-.25, .25), shear = uniform(-.25, .25), pen = uniform(.8, 1.5);
  const double width = uniform(15, 20), height = uniform(17, 21), x0 = 14 + uniform(-2, 2),
               y0 = 14 + uniform(-2, 2);
  std::vector<Stroke> strokes = strokes_of(digit);
  for (Stroke& stroke : strokes) {
    for (Point& p : stroke) {
      const double u = (p.x - .5 + uniform(-.012, .012)) * width,
                   v = (p.y - .5 + uniform(-.012, .012)) * height;
      const double sheared = u - shear * v;
      p = {x0 + sheared * std::cos(angle) - v * std::sin(angle),
           y0 + sheared * std::sin(angle) + v * std::cos(angle)};
    }
  }
  std::array<double, 28 * 28> nearest;
  nearest.fill(28);
  const auto pixel = [](double at) { return std::clamp(static_cast<int>(at), 0, 27); };
  for (const Stroke& stroke : strokes) {
    for (std::size_t i = 1; i < stroke.size(); ++i) {
      const Point a = stroke[i - 1], b = stroke[i];
      for (int y = pixel(std::min(a.y, b.y) - 2); y <= pixel(std::max(a.y, b.y) + 3); ++y) {
        for (int x = pixel(std::min(a.x, b.x) - 2); x <= pixel(std::max(a.x, b.x) + 3); ++x) {
          nearest[y * 28 + x] =
              std::min(nearest[y * 28 + x], distance_to_segment({double(x), double(y)}, a, b));
        }
      }
    }
  }
  std::array<uint8_t, 28 * 28> image;
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<uint8_t>(255 * std::clamp(pen + .5 - nearest[i], 0., 1.));
  }
  return image;
}

// Writes `count` images and labels as a pair of MNIST files, unless they exist.
inline void draw_part(const std::string& dir, const std::string& part, uint32_t count, uint32_t seed) {
  const std::string images = dir + "/" + part + "-images-idx3-ubyte",
                    labels = dir + "/" + part + "-labels-idx1-ubyte";
  if (std::filesystem::exists(images) && std::filesystem::exists(labels)) return;
  const auto header = [](std::ofstream& out, std::vector<uint32_t> words) {
    for (uint32_t word : words) {
      for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(word >> shift));
    }
  };
  // Several processes may generate at once: each renames a complete file into place.
  const std::string partial = "." + std::to_string(std::random_device()()) + ".partial";
  std::ofstream image_file(images + partial, std::ios::binary),
      label_file(labels + partial, std::ios::binary);
  header(image_file, {0x803, count, 28, 28});
  header(label_file, {0x801, count});
  std::mt19937 random(seed);
  for (uint32_t i = 0; i < count && image_file; ++i) {
    const int digit = static_cast<int>(random() % 10);
    const auto image = draw_digit(digit, random);
    image_file.write(reinterpret_cast<const char*>(image.data()), image.size());
    label_file.put(static_cast<char>(digit));
  }
  image_file.close(), label_file.close();
  if (!image_file || !label_file) {
    const std::string why = std::strerror(errno);
    std::filesystem::remove(images + partial), std::filesystem::remove(labels + partial);
    throw std::runtime_error("cannot write the drawn digits to " + dir + ": " + why);
  }
  std::filesystem::rename(images + partial, images);
  std::filesystem::rename(labels + partial, labels);
}

inline void draw_digits(const std::string& dir) {
  std::filesystem::create_directories(dir);
  draw_part(dir, "train", 60000, 1);
  draw_part(dir, "t10k", 10000, 2);
}
