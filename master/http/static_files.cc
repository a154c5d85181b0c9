// Loads the files and builds the replies.
#include "master/http/static_files.h"

#include <algorithm>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"

namespace det::http {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileLimit = 32LL << 20;
constexpr std::int64_t kTotalLimit = 256LL << 20;

std::string type_of(const std::string& path) {
  static const std::map<std::string, std::string> types = {{".html", "text/html; charset=utf-8"},
                                                           {".js", "text/javascript; charset=utf-8"},
                                                           {".css", "text/css; charset=utf-8"},
                                                           {".svg", "image/svg+xml"},
                                                           {".png", "image/png"},
                                                           {".ico", "image/x-icon"},
                                                           {".json", "application/json"},
                                                           {".map", "application/json"},
                                                           {".txt", "text/plain; charset=utf-8"},
                                                           {".woff2", "font/woff2"},
                                                           {".webmanifest", "application/manifest+json"}};
  auto it = types.find(fs::path(path).extension().string());
  return it == types.end() ? "application/octet-stream" : it->second;
}

/// Recognizes "app-4F7QX2KD.js" and "style.4f7qx2kd.css": the part behind the last '-' or '.' of the stem has
/// eight or more letters and digits, at least one of them a digit or an upper-case letter.
bool has_hash(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  const std::size_t cut = stem.find_last_of("-.");
  if (cut == std::string::npos) return false;
  const std::string_view part = std::string_view(stem).substr(cut + 1);
  const auto alnum = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto digit_or_upper = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  return part.size() >= 8 && std::all_of(part.begin(), part.end(), alnum) &&
         std::any_of(part.begin(), part.end(), digit_or_upper);
}

}  // namespace

const Headers& security_headers() {
  static const Headers headers = {
      {"Content-Security-Policy",
       "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
       "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  return headers;
}

Result<StaticFiles> StaticFiles::load(const std::string& directory) {
  StaticFiles table;
  std::error_code error;
  if (!fs::is_directory(directory, error)) return table;
  std::int64_t total = 0;
  std::map<std::string, std::string> contents;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    TRY_ASSIGN(std::string content, read_file(it->path().string(), kFileLimit));
    total += static_cast<std::int64_t>(content.size());
    if (total > kTotalLimit)
      return fail(Code::kResourceExhausted, directory + ": more than 256 MiB of files");
    contents[fs::relative(it->path(), directory, error).generic_string()] = std::move(content);
  }
  if (error) return fail(Code::kUnavailable, directory + ": " + error.message());
  // A compressed file is stored with its original.
  for (auto& [path, content] : contents) {
    // An "x.gz" without "x" is a file of its own.
    const bool compressed = path.ends_with(".gz") && contents.contains(path.substr(0, path.size() - 3));
    File& file = table.files_[compressed ? path.substr(0, path.size() - 3) : path];
    if (compressed) {
      file.gzip = std::move(content);
      continue;
    }
    file.type = type_of(path);
    file.etag = "\"" + sha256_hex(content).substr(0, 32) + "\"";
    file.immutable = has_hash(path);
    file.content = std::move(content);
  }
  return table;
}

Response StaticFiles::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = message_response(405, "only GET and HEAD here");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (request.path == "/" || request.path == "/det") return {302, {{"Location", "/det/"}}, ""};
  std::string path;
  if (!percent_decode(request.path, path)) return message_response(400, "malformed path");
  if (!path.starts_with("/det/")) return message_response(404, "not found");
  // 5 is the length of "/det/".
  path = path.substr(5);
  auto it = files_.find(path);
  if (it == files_.end() && path.find('.', path.rfind('/') == path.npos ? 0 : path.rfind('/')) == path.npos) {
    it = files_.find("index.html");
  }
  if (it == files_.end()) return message_response(404, "not found");
  const File& file = it->second;
  // Vary: caches must keep the two encodings apart.
  Response response{200, {{"Content-Type", file.type}, {"ETag", file.etag}, {"Vary", "Accept-Encoding"}}, ""};
  response.headers.emplace_back("Cache-Control",
                                file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  if (request.header("if-none-match") == file.etag) {
    response.status = 304;
    return response;
  }
  if (!file.gzip.empty() && request.accepts_gzip()) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = file.gzip;
  } else {
    response.body = file.content;
  }
  return response;
}

}  // namespace det::http
