// MNIST from data.dir of the configuration, else downloaded once and cached, else generated without a
// network.
#pragma once

#include <det/det.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "digits.h"

// Directory with the four files of MNIST. Prints a note at the end when the digits are generated.
class Data {
 public:
  Data(std::string dir, bool drawn) : dir_(std::move(dir)), drawn_(drawn) {}
  Data(Data&& other) : dir_(std::move(other.dir_)), drawn_(std::exchange(other.drawn_, false)) {}
  ~Data() {
    if (drawn_) std::cout << "NOTE: digits drawn by the example, not MNIST (no network)" << std::endl;
  }
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
  bool drawn_;
};

inline std::string cache_dir() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr) return std::string(cache) + "/determinant/mnist";
  return std::string(home != nullptr ? home : "/tmp") + "/.cache/determinant/mnist";
}

// Downloads the files and checks their SHA-256. Returns false when a file cannot be downloaded.
inline bool download_mnist(const std::string& dir) {
  const std::pair<const char*, const char*> files[] = {
      {"train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
      {"train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
      {"t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
      {"t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}};
  for (const auto& [name, sha256] : files) {
    const std::string file = std::string("/") + name + ".gz";
    if (!det::download(dir + file,
                       {"https://ossci-datasets.s3.amazonaws.com/mnist" + file,
                        "https://storage.googleapis.com/cvdf-datasets/mnist" + file},
                       sha256)) {
      return false;
    }
  }
  return true;
}

// `config` is `data` of the configuration.
inline Data find_data(const det::Json& config) {
  if (config.contains("dir") && !config["dir"].is_null()) return {config["dir"].get<std::string>(), false};
  if (download_mnist(cache_dir())) return {cache_dir(), false};
  std::cout << "NOTE: no MNIST: drawing digits. Set data.dir to its directory." << std::endl;
  draw_digits(cache_dir() + "/drawn");
  return {cache_dir() + "/drawn", true};
}

// `part` is "train" or "t10k". Images are normalized with the mean and deviation of MNIST.
inline det::ImageDataset load_digits(const Data& data, const std::string& part) {
  return {det::read_idx(data.dir() + "/" + part + "-images-idx3-ubyte"),
          det::read_idx(data.dir() + "/" + part + "-labels-idx1-ubyte"),
          {0.1307},
          {0.3081}};
}
