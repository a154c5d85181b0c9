// MNIST from data.dir of the configuration, else downloaded.
#pragma once

#include <det/det.h>

#include <map>
#include <stdexcept>
#include <string>

/// Returns a directory with the four files. Each process downloads into its own. Throws when a file cannot be
/// downloaded.
inline std::string find_mnist(det::TrialContext& context) {
  if (const det::Json& data = context.get_data_config(); data.contains("dir"))
    return data.at("dir").get<std::string>();
  const std::map<std::string, std::string> sha256_of{
      {"train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
      {"train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
      {"t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
      {"t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}};
  const std::string directory = "/tmp/mnist-rank" + std::to_string(context.distributed().rank());
  for (const auto& [name, sha256] : sha256_of) {
    const std::string mirror = "https://ossci-datasets.s3.amazonaws.com/mnist/" + name + ".gz";
    if (!det::download(directory + "/" + name + ".gz", {mirror}, sha256)) {
      throw std::runtime_error("MNIST cannot be downloaded; set data.dir to a directory with its four files");
    }
  }
  return directory;
}

/// `part` is "train" or "t10k". Images are normalized with the mean and deviation of MNIST.
inline det::ImageDataset load_digits(const std::string& directory, const std::string& part) {
  return {det::read_idx(directory + "/" + part + "-images-idx3-ubyte"),
          det::read_idx(directory + "/" + part + "-labels-idx1-ubyte"),
          /*mean=*/{0.1307},
          /*stddev=*/{0.3081}};
}
