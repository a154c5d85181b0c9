// Small synthetic data sets in the file formats of the real ones: noise with a bright bar at a position that
// encodes the label.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "run.h"

namespace det::testing {

/// One image: `channels` planes of side × side bytes.
inline std::string draw(int label, int channels, int side, std::mt19937& random) {
  std::string image(static_cast<std::size_t>(channels * side * side), '\0');
  for (char& byte : image) byte = static_cast<char>(random() % 100);
  for (int channel = 0; channel < channels; ++channel) {
    for (int y = 2 * label + 4; y < 2 * label + 6; ++y) {
      for (int x = 0; x < side; ++x)
        image[static_cast<std::size_t>((channel * side + y) * side + x)] = '\xdc';
    }
  }
  return image;
}

/// The pair of IDX files of MNIST.
inline void write_digits(const std::string& folder, const std::string& part, int count) {
  const auto number = [](std::uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  const auto records = static_cast<std::uint32_t>(count);
  std::string images = number(0x803) + number(records) + number(28) + number(28),
              labels = number(0x801) + number(records);
  std::mt19937 random(records);
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 10);
    images += draw(label, 1, 28, random);
    labels += static_cast<char>(label);
  }
  REQUIRE(write_file_atomic(folder + "/" + part + "-images-idx3-ubyte", images).has_value());
  REQUIRE(write_file_atomic(folder + "/" + part + "-labels-idx1-ubyte", labels).has_value());
}

/// CIFAR-10's binary version: five training files and one test file.
inline void write_cifar10(const std::string& folder, int train, int test) {
  std::filesystem::create_directories(folder);
  const auto file = [&](const std::string& name, int count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::string records;
    for (int i = 0; i < count; ++i) {
      const int label = static_cast<int>(random() % 10);
      records += static_cast<char>(label) + draw(label, 3, 32, random);
    }
    REQUIRE(write_file_atomic(folder + "/" + name, records).has_value());
  };
  for (int i = 1; i <= 5; ++i)
    file("data_batch_" + std::to_string(i) + ".bin", train / 5, static_cast<std::uint32_t>(i));
  file("test_batch.bin", test, 6);
}

/// One folder per class, with PNM images of 40 × 36 pixels.
inline void write_folders(const std::string& folder, int classes, int each) {
  std::mt19937 random(static_cast<std::uint32_t>(each));
  for (int label = 0; label < classes; ++label) {
    const std::string place = folder + "/class" + std::to_string(label);
    std::filesystem::create_directories(place);
    for (int i = 0; i < each; ++i) {
      std::string pixels = "P6\n40 36\n255\n";
      for (int p = 0; p < 40 * 36; ++p) {
        for (int channel = 0; channel < 3; ++channel) {
          pixels += static_cast<char>(channel == label % 3 ? 200 + random() % 50 : random() % 100);
        }
      }
      REQUIRE(write_file_atomic(place + "/" + std::to_string(i) + ".ppm", pixels).has_value());
    }
  }
}

}  // namespace det::testing
