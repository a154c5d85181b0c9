// Root file systems of container images. A container engine (podman, Docker) has and pulls the images; the
// agent copies their files by the Docker-compatible API and runs tasks in them with its own sandbox.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/config.h"
#include "common/base/result.h"

namespace det::agent {

/// An image on this machine.
struct Image {
  std::string directory;         ///< entry of the cache
  std::string root;              ///< its files, below `directory`
  std::vector<std::string> env;  ///< its variables as NAME=value
};

/// Section `environment` of a resolved configuration.
struct ImageRequest {
  std::string name;           ///< "" if the configuration names none
  bool pull = false;          ///< force_pull_image
  std::string registry_auth;  ///< JSON object, or ""
};

/// Reads the request of a configuration (JSON). `cuda`: the task has CUDA devices.
ImageRequest image_request(const std::string& config, bool cuda);

/// Returns REGISTRY/PATH:TAG of a name, with the defaults of Docker: docker.io, library/ and latest.
std::string full_image_name(const std::string& name);

/// Returns the image, copied from the engine of `settings` unless the directory `cache` has it; `is_new`
/// tells which. Blocks, for minutes if the image is large; returns early if `stop` is requested. Thread-safe.
/// Errors: kInvalidArgument (no name of an image), kNotFound (no engine; the engine has no such image, and it
/// may not be pulled or the registry has none), kUnavailable (the engine does not answer), kResourceExhausted
/// (too large, disk full), kCancelled.
Result<Image> get_image(const ImageRequest& request, const Settings& settings, const std::string& cache,
                        const std::stop_token& stop, bool& is_new);

/// Removes containers that an earlier agent with this `cache` has left in the engine when it was killed. Logs
/// a warning if the engine does not answer. Without an engine it does nothing. Blocks for at most 20 s. Must
/// precede get_image().
void remove_copies(const Settings& settings, const std::string& cache);

}  // namespace det::agent
