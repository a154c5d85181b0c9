#include "master/engines/kubernetes/watch.h"

#include "common/base/clock.h"
#include "common/base/log.h"

namespace det::engines {
namespace {

/// Objects in one page of a list.
constexpr const char* kPage = "&limit=200";
/// Most pages of a list: 100,000 objects.
constexpr int kMaxPages = 500;
/// Time after which the server ends a stream, in s. A dead connection is noticed soon after it.
constexpr const char* kStreamTime = "&timeoutSeconds=50";
constexpr std::size_t kMaxLine = 4 << 20;
constexpr JsonLimits kLineLimits{.bytes = kMaxLine, .depth = 64};
/// Least time between lists, and between streams that end at once.
constexpr auto kPause = std::chrono::seconds(1);

std::string field(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}
std::string version_of(const Json& json) {
  const auto metadata = json.find("metadata");
  return metadata == json.end() || !metadata->is_object() ? "" : field(*metadata, "resourceVersion");
}

}  // namespace

Watch::Watch(const Client& client, bool of_jobs, std::string selector, Queue<Change>& out)
    : client_(client),
      of_jobs_(of_jobs),
      resource_(of_jobs ? kJobs : kPods),
      selector_("?labelSelector=" + std::move(selector)),
      out_(out) {}

void Watch::start() {
  thread_ = std::thread([this] {
    while (!stop_.is_set()) {
      if (const Status end = cycle(); !end)
        log::debug("a watch of Kubernetes ended",
                   {{"of", resource_.plural}, {"reason", end.error().message}});
      stop_.wait_for(kPause);
    }
  });
}

void Watch::stop() {
  stop_.set();
  refresh_ = true;
  if (thread_.joinable()) thread_.join();
}

void Watch::put(Change change) {
  change.of_jobs = of_jobs_;
  out_.push(std::move(change));
}

Status Watch::cycle() {
  refresh_ = stop_.is_set();
  TRY_ASSIGN(std::string version, list());
  while (!stop_.is_set()) {
    const MonoTime start = mono_now();
    TRY(follow(version));
    if (mono_now() < start + kPause) stop_.wait_for(kPause);
  }
  return {};
}

Result<std::string> Watch::list() {
  Change all{.kind = Change::Kind::kAll};
  const auto lost = [&](const std::string& problem) {
    put({.kind = Change::Kind::kLost, .problem = problem});
    return fail(Code::kUnavailable, problem);
  };
  std::string next;
  for (int page = 0; page < kMaxPages; ++page) {
    const auto reply = client_.call("GET", resource_,
                                    selector_ + kPage + (next.empty() ? "" : "&continue=" + next), nullptr);
    if (!reply) return lost(reply.error().message);
    const auto items = reply->find("items");
    if (items == reply->end() || !items->is_array()) return lost("the server's list has no items");
    for (const Json& item : *items) all.objects.push_back(read(item));
    next = field((*reply)["metadata"], "continue");
    if (!next.empty()) continue;
    // The version of the list, not the largest one of its items: those may be older or of other shards.
    std::string version = version_of(*reply);
    if (version.empty()) return lost("the server's list has no resourceVersion");
    put(std::move(all));
    return version;
  }
  return lost("the server's list does not end");
}

Status Watch::follow(std::string& version) {
  std::string rest;
  Status problem;
  const auto sink = [&](std::string_view piece) {
    rest += piece;
    std::size_t start = 0;
    for (std::size_t end = rest.find('\n'); end != rest.npos && problem; end = rest.find('\n', start)) {
      if (end > start) problem = take(std::string_view(rest).substr(start, end - start), version);
      start = end + 1;
    }
    rest.erase(0, start);
    if (rest.size() > kMaxLine) problem = fail(Code::kDataLoss, "an event is longer than 4 MiB");
    return static_cast<bool>(problem);
  };
  Status end = client_.stream(
      resource_, selector_ + "&watch=1&allowWatchBookmarks=true&resourceVersion=" + version + kStreamTime,
      sink, [this] { return refresh_.load(); });
  TRY(problem);
  return end;
}

Status Watch::take(std::string_view line, std::string& version) {
  const auto event = parse_json(line, kLineLimits);
  if (!event || !event->is_object()) return fail(Code::kDataLoss, "an event is not JSON");
  const std::string type = field(*event, "type");
  const auto object = event->find("object");
  if (object == event->end() || !object->is_object()) return fail(Code::kDataLoss, "an event has no object");
  if (type == "ERROR") return fail(Code::kOutOfRange, field(*object, "message"));
  const std::string now = version_of(*object);
  if (now.empty()) return fail(Code::kDataLoss, "an event has no resourceVersion");
  version = now;
  if (type == "ADDED" || type == "MODIFIED") {
    put({.kind = Change::Kind::kSet, .objects = {read(*object)}});
  } else if (type == "DELETED") {
    put({.kind = Change::Kind::kRemoved, .objects = {read(*object)}});
  } else if (type != "BOOKMARK") {
    return fail(Code::kDataLoss, "an event has type \"" + type + "\"");
  }
  return {};
}

}  // namespace det::engines
