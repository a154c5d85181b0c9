// det::download: fetches a file from mirrors and checks its digest. Standard library only.
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/crypto/digest.h"

namespace det {
namespace {

/// Digest of the uncompressed content; zlib reads plain files as well. "" when the file cannot be read.
std::string content_digest(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzopen(path.c_str(), "rb"), &::gzclose);
  if (in == nullptr) return "";
  Sha256 digest;
  std::string buffer(1 << 16, '\0');
  int got = 0;
  while ((got = ::gzread(in.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    digest.update({buffer.data(), static_cast<std::size_t>(got)});
  }
  return got < 0 ? "" : digest.hex();
}

/// Downloads `url` to `partial` and checks it. Returns "" or the problem.
std::string fetch(const std::string& url, const std::string& partial, const std::string& sha256) {
  const auto run =
      run_process({.argv = {"curl", "--fail", "--location", "--silent", "--show-error", "--connect-timeout",
                            "5", "--max-time", "300", "--output", partial, url}},
                  {.timeout = std::chrono::minutes(6)});
  if (!run) return run.error().message;
  if (!run->ok()) return run->err.empty() ? to_string(run->status) : run->err.substr(0, run->err.find('\n'));
  return content_digest(partial) == sha256 ? "" : "the file there is another one (its SHA-256 differs)";
}

std::string host_of(const std::string& url) {
  const std::size_t begin = url.find("://") == std::string::npos ? 0 : url.find("://") + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

/// curl's message without "curl: (6) " and without the host, which the caller prints.
std::string brief(std::string problem, const std::string& host) {
  if (problem.starts_with("curl: (") && problem.find(") ") != std::string::npos)
    problem.erase(0, problem.find(") ") + 2);
  if (problem.ends_with(": " + host)) problem.resize(problem.size() - host.size() - 2);
  return problem;
}

}  // namespace

// Declared in det/datasets.h, which is not included here because it requires LibTorch.
bool download(const std::string& path, const std::vector<std::string>& mirrors, const std::string& sha256) {
  if (content_digest(path) == sha256) return true;
  const std::filesystem::path target(path);
  if (const Status made = make_directories(target.parent_path().string()); !made) {
    std::fprintf(stderr, "download: %s\n", made.error().message.c_str());
    return false;
  }
  const std::string partial = path + "." + to_hex(random_bytes(8)) + ".partial";
  for (const std::string& url : mirrors) {
    const std::string problem = fetch(url, partial, sha256);
    std::error_code error;
    // The rename makes concurrent downloads of several processes safe: each has its own partial file.
    if (problem.empty()) {
      std::filesystem::rename(partial, target, error);
      if (!error) return true;
    }
    std::filesystem::remove(partial, error);
    const std::string host = host_of(url);
    std::fprintf(stderr, "download: %s: %s\n", host.c_str(),
                 problem.empty() ? "cannot be kept" : brief(problem, host).c_str());
  }
  return false;
}

}  // namespace det
