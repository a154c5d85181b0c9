#include "master/api/streams.h"

namespace det::api {
namespace {

constexpr Duration kLook = std::chrono::seconds(5);

}  // namespace

Streams::Id Streams::open(const char* method, Credentials credentials,
                          std::shared_ptr<const google::protobuf::Message> request, Cut cut) {
  const Id id = next_++;
  changes_.push({id, std::make_shared<const Stream>(
                         Stream{method, std::move(credentials), std::move(request), std::move(cut)})});
  // What changed between the caller's own check and this is seen at the next tick.
  ++generation_;
  return id;
}

void Streams::close(Id id) { changes_.push({id, nullptr}); }

void Streams::take_changes() {
  for (Change& change : changes_.pop_batch(1 << 16, Duration(0))) {
    if (change.opened)
      streams_[change.id] = std::move(change.opened);
    else
      streams_.erase(change.id);
  }
}

void Streams::tick(loop::Workers& workers, db::Pool& pool) {
  const std::uint64_t newest = generation_;
  take_changes();
  const MonoTime now = mono_now();
  if (newest == seen_ && now < next_look_) return;
  seen_ = newest;
  next_look_ = now + kLook;
  for (const auto& [id, stream] : streams_) {
    workers.try_post([stream = stream, &pool] {
      const auto allowed = authorize(stream->method, stream->credentials, pool, stream->request.get());
      // A database that is away takes nobody's rights.
      if (allowed || allowed.error().code == Code::kUnavailable ||
          allowed.error().code == Code::kResourceExhausted)
        return;
      stream->cut(allowed.error());
    });
  }
}

bool changes_rights(std::string_view method) {
  for (const std::string_view service :
       {"/det.v1.AuthService/", "/det.v1.UserService/", "/det.v1.TokenService/", "/det.v1.RoleService/",
        "/det.v1.WorkspaceService/", "/det.v1.ProjectService/", "/det.v1.JoinService/"})
    if (method.starts_with(service)) return true;
  return false;
}

}  // namespace det::api
