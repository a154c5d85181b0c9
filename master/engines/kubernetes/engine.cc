#include "master/engines/kubernetes/engine.h"

#include "common/base/log.h"
#include "master/engines/job_size.h"
#include "master/engines/kubernetes/gangs.h"

namespace det::engines {
namespace {

/// Limit on the wait for the lists of both watches.
constexpr auto kListLimit = std::chrono::seconds(5);
constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr auto kBetweenReleases = std::chrono::seconds(30);
/// Changes in memory: about 1 kB each.
constexpr std::size_t kMaxChanges = 4096;
/// Ended Jobs that one round deletes.
constexpr std::size_t kMaxDeletions = 4;

}  // namespace

Kubernetes::Kubernetes(ProviderConfig config, std::string instance, SendHttp http)
    : config_(std::move(config)),
      instance_(std::move(instance)),
      client_([this] { return read_access(config_); }, std::move(http), [this] { return stopped_.is_set(); }),
      changes_(kMaxChanges),
      jobs_(client_, true, selector(instance_), changes_),
      pods_(client_, false, selector(instance_), changes_),
      fleet_(config_.start_timeout) {}

Kubernetes::~Kubernetes() { stop(); }

void Kubernetes::stop() {
  stopped_.set();
  changes_.close();
  jobs_.stop();
  pods_.stop();
}

void Kubernetes::refresh() {
  if (!started_) {
    started_ = true;
    jobs_.start();
    pods_.start();
  }
  const MonoTime limit = mono_now() + kListLimit;
  for (;;) {
    const auto changes = changes_.pop_batch(kMaxChanges, Duration(0));
    for (const Change& change : changes) fleet_.apply(change, mono_now());
    if (!changes.empty()) continue;
    if (fleet_.complete() || !fleet_.problem().empty() || stopped_.is_set() || mono_now() >= limit) return;
    stopped_.wait_for(kPoll);
  }
}

Result<std::vector<EngineJob>> Kubernetes::list() {
  refresh();
  if (!fleet_.complete())
    return fail(Code::kUnavailable, fleet_.problem().empty() ? "no list within 5 s" : fleet_.problem());
  release_partial();
  if (const Status made = make_pod_groups(); !made) return tl::unexpected<Error>(made.error());
  auto outdated = fleet_.outdated(mono_now());
  if (outdated.size() > kMaxDeletions) outdated.resize(kMaxDeletions);
  for (const std::string& job : outdated) {
    if (const Status done = remove(job); !done) return tl::unexpected<Error>(done.error());
  }
  return fleet_.jobs(mono_now());
}

void Kubernetes::release_partial() {
  const MonoTime now = mono_now();
  const auto partial = now < release_at_ ? std::nullopt : fleet_.partial(now);
  if (!partial) return;
  release_at_ = now + kBetweenReleases;
  log::warn("a pilot got only some of its nodes and is released", {{"pilot", *partial}});
  if (remove(*partial)) fleet_.end(*partial, "Kubernetes had nodes for only some of its pods");
}

Status Kubernetes::make_pod_group(const Object& job) {
  // A server without this kind of PodGroup does not know its path.
  Status made = fail(Code::kNotFound, "no kind of PodGroup");
  for (const Resource& kind : pod_group_kinds(config_)) {
    const auto reply = client_.call("POST", kind, "", pod_group(config_, kind, job));
    if (reply || reply.error().code == Code::kAlreadyExists) return {};
    made = tl::unexpected<Error>(reply.error());
    if (reply.error().code != Code::kNotFound) return made;
  }
  return made;
}

Status Kubernetes::make_pod_groups() {
  std::set<std::string> names;
  for (const Object& job : fleet_.live()) {
    if (!has_pod_group(config_, job.nodes)) continue;
    names.insert(job.name);
    if (grouped_.contains(job.name)) continue;
    const Status made = make_pod_group(job);
    if (!made && made.error().code == Code::kUnavailable) return tl::unexpected<Error>(lost(made.error()));
    grouped_.insert(job.name);
    if (made) continue;
    log::warn("a PodGroup was refused", {{"pilot", job.name}, {"reason", made.error().message}});
    TRY(remove(job.name));
    fleet_.end(job.name, "its PodGroup was refused: " + made.error().message);
  }
  std::erase_if(grouped_, [&](const std::string& name) { return !names.contains(name); });
  return {};
}

Result<std::string> Kubernetes::owner() {
  // Read each time: a Job without its owner would be removed at once.
  auto map = client_.call("GET", kConfigMaps, "/" + instance_, nullptr);
  if (!map && map.error().code == Code::kNotFound)
    map = client_.call("POST", kConfigMaps, "", owner_map(instance_));
  if (!map) return tl::unexpected<Error>(map.error());
  const Json* const uid = find_path(*map, "metadata.uid");
  if (!uid || !uid->is_string())
    return fail(Code::kUnavailable, "the ConfigMap " + instance_ + " has no uid");
  return uid->get<std::string>();
}

Error Kubernetes::lost(Error error) {
  if (error.code != Code::kUnavailable) {
    error.code = Code::kInvalidArgument;
    return error;
  }
  fleet_.forget(error.message);
  jobs_.refresh();
  pods_.refresh();
  return error;
}

Result<std::string> Kubernetes::submit(const core::SubmitPilot& pilot) {
  const auto uid = owner();
  if (!uid) return tl::unexpected<Error>(lost(uid.error()));
  const Json job =
      pilot_job(with_slots(config_, pilot.slots), instance_, pilot.pool, pilot.name, pilot.nodes, *uid);
  const auto made = client_.call("POST", kJobs, "", job);
  // An earlier submission made the Job, and its reply was lost.
  const bool there = !made && made.error().code == Code::kAlreadyExists;
  if (!made && !there) return tl::unexpected<Error>(lost(made.error()));
  fleet_.expect(pilot.name, mono_now());
  return pilot.name;
}

Status Kubernetes::remove(const std::string& job) {
  // The pods are deleted by the garbage collector of the server, with their grace.
  const auto done = client_.call("DELETE", kJobs, "/" + job, {{"propagationPolicy", "Background"}});
  if (done || done.error().code == Code::kNotFound) return {};
  Error error = lost(done.error());
  error.code = Code::kUnavailable;
  return tl::unexpected<Error>(std::move(error));
}

Status Kubernetes::cancel(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    TRY(remove(id));
    fleet_.end(id, "it was canceled");
  }
  return {};
}

std::unique_ptr<Engine> make_kubernetes(const ProviderConfig& config, const std::string& instance) {
  return std::make_unique<Kubernetes>(config, instance, storage::exchange);
}

}  // namespace det::engines
