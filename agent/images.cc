#include "agent/images.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/build/cache.h"
#include "common/storage/http.h"
#include "common/storage/signature.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxName = 512, kMaxLine = 1 << 20;
/// Time for the engine to begin with an answer: it unpacks layers first. Lists come at once.
constexpr auto kStall = 300s, kListStall = 10s;
constexpr char kLabel[] = "determinant";
constexpr Duration kCopyPatience = 1h;
constexpr char kDefaultRegistry[] = "docker.io";

/// The calls of the engine. The host of the URL has no meaning on a socket.
struct Engine {
  const Settings& settings;
  const std::stop_token& stop;

  Result<storage::Answer> call(const std::string& method, const std::string& path,
                               const std::string& body = "") const {
    storage::Exchange exchange = prepared(method, path);
    exchange.body = body;
    return storage::exchange(exchange);
  }

  storage::Exchange prepared(const std::string& method, const std::string& path) const {
    return {.method = method,
            .url = "http://engine" + path,
            .headers = {{"content-type", "application/json"}},
            .unix_socket = settings.container_engine,
            .stall_timeout = kStall,
            .expired = [this] { return stop.stop_requested(); }};
  }
};

bool is_hex(const std::string& id) {
  return !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

tl::unexpected<Error> refused(const std::string& what, const storage::Answer& answer) {
  const auto json = parse_json(answer.body);
  const std::string message =
      json && json->is_object() ? json->value("message", std::string()) : std::string();
  return fail(answer.status == 404 ? Code::kNotFound : Code::kUnavailable,
              what + ": the container engine answered " + std::to_string(answer.status) +
                  (message.empty() ? "" : ": " + make_utf8(message.substr(0, 300))));
}

/// Identity and variables of an image.
struct Inspected {
  std::string id;
  std::vector<std::string> env;
};

Result<Inspected> inspect(const Engine& engine, const std::string& name) {
  TRY_ASSIGN(const storage::Answer answer, engine.call("GET", "/images/" + name + "/json"));
  if (answer.status != 200) return refused("image " + name, answer);
  TRY_ASSIGN(const Json json, parse_json(answer.body, {.bytes = 16 << 20}));
  Inspected found;
  try {
    found.id = json.at("Id").get<std::string>();
    const Json env = json.value("Config", Json::object()).value("Env", Json());
    if (env.is_array()) found.env = env.get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kUnavailable, "image " + name + ": unknown answer of the engine: " + error.what());
  }
  if (found.id.starts_with("sha256:")) found.id.erase(0, 7);
  // The id becomes the name of a directory.
  if (found.id.size() != 64 || !is_hex(found.id))
    return fail(Code::kUnavailable, "image " + name + ": unknown id " + make_utf8(found.id.substr(0, 100)));
  return found;
}

bool may_pull(const std::string& full, const std::vector<std::string>& registries) {
  return std::any_of(registries.begin(), registries.end(),
                     [&](const std::string& prefix) { return full.starts_with(prefix + "/"); });
}

/// Returns the error of one line of a pull's answer; "" if there is none.
std::string pull_error(std::string_view line) {
  const auto json = parse_json(line);
  if (!json || !json->is_object() || !json->contains("error")) return "";
  return make_utf8(dump_json(json->at("error")).substr(0, 300));
}

/// Lets the engine pull the image. The answer is a stream of progress lines, in which an error stands, too.
Status pull(const Engine& engine, const std::string& full, const std::string& auth) {
  storage::Exchange exchange =
      engine.prepared("POST", "/images/create?fromImage=" + storage::percent_encoded(full));
  if (!auth.empty()) exchange.headers["x-registry-auth"] = to_base64url(auth);
  std::string rest, problem;
  exchange.sink = [&](std::string_view piece) {
    rest += piece;
    for (std::size_t end = 0; problem.empty() && (end = rest.find('\n')) != std::string::npos;
         rest.erase(0, end + 1))
      problem = pull_error(std::string_view(rest).substr(0, end));
    return rest.size() < kMaxLine;
  };
  TRY_ASSIGN(const storage::Answer answer, storage::exchange(exchange));
  if (answer.status != 200) return refused("pulling " + full, answer);
  if (problem.empty()) problem = pull_error(rest);
  return problem.empty() ? Status() : fail(Code::kNotFound, "pulling " + full + ": " + problem);
}

/// A container that is created to read its files, never started, and removed at the end.
class CopyContainer {
 public:
  /// `cache`: its label, by which remove_copies() finds it.
  static Result<CopyContainer> create(const Engine& engine, const std::string& image,
                                      const std::string& cache) {
    const Json request{{"Image", image}, {"Cmd", {"/none"}}, {"Labels", {{kLabel, cache}}}};
    TRY_ASSIGN(const storage::Answer answer, engine.call("POST", "/containers/create", dump_json(request)));
    if (answer.status != 201) return refused("reading image " + image, answer);
    TRY_ASSIGN(const Json json, parse_json(answer.body));
    const std::string id = json.is_object() ? json.value("Id", std::string()) : std::string();
    if (!is_hex(id))
      return fail(Code::kUnavailable, "reading image " + image + ": unknown answer of the engine");
    return CopyContainer(engine, id);
  }
  CopyContainer(CopyContainer&& other) noexcept : engine_(other.engine_), id_(std::exchange(other.id_, {})) {}
  CopyContainer& operator=(CopyContainer&&) = delete;
  ~CopyContainer() {
    if (id_.empty()) return;
    // Also after a stop, which ends calls of `engine_`.
    const std::stop_token never;
    const auto removed =
        Engine{engine_.settings, never}.call("DELETE", "/containers/" + id_ + "?force=true&v=true");
    if (!removed || removed->status / 100 != 2)
      log::warn("a container is left in the engine until the agent starts again", {{"container", id_}});
  }

  /// Unpacks the files below `target` with tar: GNU tar follows no link of the archive and leaves no
  /// directory.
  Status unpack(const std::string& target) const {
    std::vector<std::string> command{"tar",
                                     "-x",
                                     "-p",
                                     "-C",
                                     target,
                                     "--numeric-owner",
                                     "--anchored",
                                     "--exclude=dev/*",
                                     "--exclude=./dev/*"};
    TRY_ASSIGN(Child tar, Child::spawn({.argv = std::move(command),
                                        .in = Stream::pipe(),
                                        .out = Stream::null(),
                                        .err = Stream::file(target + "/../tar.err"),
                                        .dies_with_us = true}));
    std::int64_t bytes = 0;
    storage::Exchange exchange = engine_.prepared("GET", "/containers/" + id_ + "/export");
    exchange.sink = [&](std::string_view piece) {
      bytes += static_cast<std::int64_t>(piece.size());
      return bytes <= engine_.settings.cache_bytes && write_all(tar.in().get(), piece);
    };
    const auto answer = storage::exchange(exchange);
    tar.in().reset();
    const auto ended = tar.wait(answer ? 60s : 0s);
    if (engine_.stop.stop_requested()) return fail(Code::kCancelled, "stopped");
    if (bytes > engine_.settings.cache_bytes)
      return fail(Code::kResourceExhausted, "the image has more than " +
                                                std::to_string(engine_.settings.cache_bytes) +
                                                " bytes (cache_size of the agent)");
    if (answer && answer->status != 200) return refused("reading the image", *answer);
    if (answer && ended && ended->ok()) return {};
    const std::string said = read_file(target + "/../tar.err", 1 << 20).value_or("");
    if (!said.empty() || answer)
      return fail(Code::kResourceExhausted, "unpacking the image: tar: " + make_utf8(said.substr(0, 300)));
    return tl::unexpected(answer.error());
  }

 private:
  CopyContainer(const Engine& engine, std::string id) : engine_(engine), id_(std::move(id)) {}
  const Engine& engine_;
  std::string id_;
};

/// Copies the image into the cache, as the directory `entry`.
Status copy(const Engine& engine, const Inspected& image, const std::string& cache,
            const std::string& entry) {
  TRY_ASSIGN(TemporaryDirectory work, TemporaryDirectory::create("building-image", cache));
  TRY(make_directories(work.path() + "/root"));
  TRY_ASSIGN(const CopyContainer container, CopyContainer::create(engine, image.id, cache));
  TRY(container.unpack(work.path() + "/root"));
  TRY(remove_tree(work.path() + "/tar.err"));
  return build::publish_entry(work, entry);
}

}  // namespace

ImageRequest image_request(const std::string& config, bool cuda) {
  const auto json = parse_json(config, {.bytes = 64 << 20, .depth = 64});
  if (!json || !json->is_object()) return {};
  const Json environment = json->value("environment", Json::object());
  if (!environment.is_object()) return {};
  const Json images = environment.value("image", Json());
  const Json name = images.is_object() ? images.value(cuda ? "cuda" : "cpu", Json()) : images;
  if (!name.is_string()) return {};
  const Json auth = environment.value("registry_auth", Json());
  return {.name = name.get<std::string>(),
          .pull = environment.value("force_pull_image", false),
          .registry_auth = auth.is_object() && !auth.empty() ? dump_json(auth) : ""};
}

std::string full_image_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  const std::string first = name.substr(0, slash);
  const bool registry =
      slash != std::string::npos && (first == "localhost" || first.find_first_of(".:") != std::string::npos);
  std::string full = registry                     ? name
                     : slash == std::string::npos ? std::string(kDefaultRegistry) + "/library/" + name
                                                  : std::string(kDefaultRegistry) + "/" + name;
  if (full.find('@') == std::string::npos && full.find(':', full.rfind('/')) == std::string::npos)
    full += ":latest";
  return full;
}

Result<Image> get_image(const ImageRequest& request, const Settings& settings, const std::string& cache,
                        const std::stop_token& stop, bool& is_new) {
  const std::string& name = request.name;
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
  // The name becomes a part of the path of a call.
  if (name.empty() || name.size() > kMaxName || name.find_first_not_of(kLetters) != std::string::npos ||
      name.find("..") != std::string::npos || name.front() == '/')
    return fail(Code::kInvalidArgument,
                "environment.image: \"" + make_utf8(name.substr(0, 100)) +
                    "\" is no name of an image, such as registry.example.org/team/name:tag");
  if (settings.container_engine.empty())
    return fail(Code::kNotFound,
                "environment.image is " + name + ", but agent " + settings.id +
                    " runs no images (container_engine is not set); leave environment.image out, "
                    "or choose another resource pool");
  const Engine engine{settings, stop};
  const std::string full = full_image_name(name);
  const bool allowed = may_pull(full, settings.image_registries);
  if (request.pull && allowed) TRY(pull(engine, full, request.registry_auth));
  auto image = inspect(engine, name);
  if (!image && image.error().code == Code::kNotFound) {
    if (!allowed)
      return fail(Code::kNotFound, "the container engine of this agent has no image " + name +
                                       ", and it may not be pulled (image_registries of the agent)");
    TRY(pull(engine, full, request.registry_auth));
    image = inspect(engine, full);
  }
  if (stop.stop_requested()) return fail(Code::kCancelled, "stopped");
  if (!image) return tl::unexpected(image.error());
  const std::string entry = cache + "/" + image->id;
  TRY(make_directories(cache, 0700));
  if (!path_exists(entry)) {
    TRY_ASSIGN(const FileLock lock, build::lock_entry(entry, mono_now() + kCopyPatience, stop));
    if (!path_exists(entry)) {
      TRY(copy(engine, *image, cache, entry));
      is_new = true;
    }
  }
  build::touch_entry(entry);
  return Image{entry, entry + "/root", std::move(image->env)};
}

void remove_copies(const Settings& settings, const std::string& cache) {
  if (settings.container_engine.empty()) return;
  const std::stop_token never;
  const Engine engine{settings, never};
  const std::string filters = dump_json({{"label", {std::string(kLabel) + "=" + cache}}});
  storage::Exchange list =
      engine.prepared("GET", "/containers/json?all=true&filters=" + storage::percent_encoded(filters));
  list.stall_timeout = kListStall;
  const auto answer = storage::exchange(list);
  const auto found = answer ? parse_json(answer->body, {.bytes = 16 << 20}) : tl::unexpected(answer.error());
  if (!found || answer->status != 200 || !found->is_array()) {
    log::warn("the container engine does not answer",
              {{"socket", settings.container_engine},
               {"reason", found ? "status " + std::to_string(answer->status) : found.error().message}});
    return;
  }
  for (const Json& container : *found) {
    const std::string id = container.is_object() ? container.value("Id", std::string()) : std::string();
    if (is_hex(id)) (void)engine.call("DELETE", "/containers/" + id + "?force=true&v=true");
  }
}

}  // namespace det::agent
