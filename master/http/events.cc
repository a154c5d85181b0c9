// Clients of the event stream.
#include "master/http/events.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "common/archive/gzip.h"
#include "common/base/json.h"

namespace det::http {
namespace {

using Kind = loop::Change::Kind;
// 15 s at four ticks a second.
constexpr int kHeartbeatTicks = 60;
constexpr std::size_t kMaxPending = 512;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kExperiment:
      return "experiment";
    case Kind::kTrial:
    case Kind::kAllocation:
      return "trial";
    case Kind::kMetrics:
      return "metrics";
    case Kind::kCheckpoint:
      return "checkpoint";
    case Kind::kLogs:
      return "logs";
    case Kind::kAgent:
      return "agent";
    case Kind::kCommand:
      return "command";
  }
  return "";
}

/// True when the later event makes the earlier one redundant.
bool same_subject(const loop::Change& a, const loop::Change& b) {
  // A state makes an edit redundant neither way: they are about different fields.
  const bool names_state =
      a.name.empty() == b.name.empty() && (a.kind == Kind::kExperiment || a.kind == Kind::kTrial ||
                                           a.kind == Kind::kAllocation || a.kind == Kind::kCommand);
  return a.kind == b.kind && a.experiment == b.experiment && a.trial == b.trial && a.task == b.task &&
         (names_state || a.name == b.name);
}

}  // namespace

std::string event_text(const loop::Event& event) {
  const loop::Change& change = event.change;
  Json data = Json::object();
  if (change.experiment.value) data["experimentId"] = change.experiment.value;
  if (change.trial.value) data["trialId"] = change.trial.value;
  if (!change.task.value.empty()) data["taskId"] = change.task.value;
  switch (change.kind) {
    case Kind::kTrial:
      data["batches"] = change.steps_completed;
      [[fallthrough]];
    case Kind::kExperiment:
      if (change.name.empty()) break;
      data["state"] = "STATE_" + change.name;
      data["progress"] = change.progress;
      if (change.same_state) data["sameState"] = true;
      break;
    case Kind::kMetrics:
      data["group"] = change.name;
      data["batches"] = change.steps_completed;
      break;
    case Kind::kCheckpoint:
      data["uuid"] = change.name;
      break;
    case Kind::kAgent:
      data["agentId"] = change.name;
      break;
    case Kind::kAllocation:
    case Kind::kCommand:
    case Kind::kLogs:
      break;
  }
  std::string text = "id: " + std::to_string(event.id) + "\nevent: " + std::string(kind_name(change.kind)) +
                     "\ndata: " + dump_json(data) + "\n\n";
  // Every change of the job queue or of the assigned slots appears as one of these two kinds.
  if (change.kind == Kind::kExperiment || change.kind == Kind::kAllocation)
    text += "event: job\ndata: " + dump_json(Json{{"experimentId", change.experiment.value}}) + "\n\n";
  return text;
}

/// One stream. All members run on the serial worker; the exchange is thread-safe.
class EventStream::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(Request request, std::shared_ptr<Exchange> exchange, const Gateway& gateway)
      : request_(std::move(request)), exchange_(std::move(exchange)), gateway_(gateway) {}

  const Request& request() const { return request_; }
  bool open() const { return open_; }

  /// Sends the head. `after`: the number of the last event that the client does not get.
  void begin(loop::Workers& serial, std::uint64_t after) {
    serial_ = &serial;
    Response head{
        200,
        {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}},
        ""};
    if (request_.accepts_gzip()) {
      head.headers.emplace_back("Content-Encoding", "gzip");
      gzip_.emplace();
    }
    head.body = encoded("id: " + std::to_string(after) + "\nretry: 2000\n\n");
    exchange_->begin(std::move(head), [weak = weak_from_this(), &serial] {
      serial.try_post([weak] {
        if (auto self = weak.lock()) self->open_ = false;
      });
    });
  }

  void add(const std::shared_ptr<const loop::Event>& event) {
    if (!open_) return;
    // An empty event reports a gap in the subscription; a slow reader causes a gap as well.
    if (!event || pending_.size() >= kMaxPending) {
      pending_.clear();
      missed_ = true;
    }
    if (event) collect(event);
    flush();
  }

  void heartbeat() {
    if (open_ && !writing_) write(":\n\n");
  }

  /// Sends the events that were collected since the last tick.
  void tick() {
    collecting_ = false;
    flush();
  }

  /// Discards cached permissions; they are queried again when needed. Replies to earlier queries become
  /// stale.
  void forget_rights() {
    sees_all_ = false;
    seen_ = {};
    hidden_ = {};
    ++rights_;
  }

  void end() {
    if (std::exchange(open_, false)) exchange_->end();
  }

 private:
  /// True for changes that every user may see.
  static bool is_public(const loop::Change& change) { return change.kind == Kind::kAgent; }
  static bool contains(const Gateway::Subjects& subjects, const loop::Change& change) {
    return change.experiment.value != 0 ? subjects.experiments.contains(change.experiment.value)
                                        : subjects.tasks.contains(change.task.value);
  }
  bool may_see(const loop::Change& change) const {
    return sees_all_ || is_public(change) || contains(seen_, change);
  }
  bool is_known(const loop::Change& change) const { return may_see(change) || contains(hidden_, change); }

  /// Queries the permissions that are missing for the pending events. Returns true when the events must wait.
  bool ask() {
    Gateway::Subjects asked;
    for (const auto& event : pending_) {
      const loop::Change& change = event->change;
      if (is_known(change)) continue;
      if (change.experiment.value != 0)
        asked.experiments.insert(change.experiment.value);
      else if (!change.task.value.empty())
        asked.tasks.insert(change.task.value);
    }
    // An event without an id is visible only to a reader that sees everything: find out once per round.
    const bool named = !asked.experiments.empty() || !asked.tasks.empty();
    if (!named && (rights_asked_ == rights_ || pending_.empty())) return false;
    asking_ = true;
    rights_asked_ = rights_;
    gateway_.visible(request_, asked, [self = shared_from_this(), asked, round = rights_](auto visible) {
      self->serial_->try_post([self, asked, round, visible] { self->answered(asked, round, visible); });
    });
    return true;
  }

  void answered(const Gateway::Subjects& asked, int round, const Result<Gateway::Visible>& visible) {
    asking_ = false;
    if (!visible) {
      // These events are lost to this reader; "reset" makes it reload.
      pending_.clear();
      missed_ = true;
    } else if (round == rights_) {
      // Replies from before forget_rights() are ignored.
      sees_all_ = !*visible;
      add(hidden_, asked);
      if (*visible) add(seen_, **visible);
    }
    flush();
  }

  /// Replaces earlier events that the event makes redundant. One of them may have had a new state.
  void collect(std::shared_ptr<const loop::Event> event) {
    bool same_state = event->change.same_state;
    std::erase_if(pending_, [&](const auto& other) {
      const bool redundant = same_subject(other->change, event->change);
      if (redundant) same_state = same_state && other->change.same_state;
      return redundant;
    });
    if (same_state != event->change.same_state) {
      auto copy = std::make_shared<loop::Event>(*event);
      copy->change.same_state = same_state;
      event = std::move(copy);
    }
    pending_.push_back(std::move(event));
  }

  static void add(Gateway::Subjects& to, const Gateway::Subjects& more) {
    to.experiments.insert(more.experiments.begin(), more.experiments.end());
    to.tasks.insert(more.tasks.begin(), more.tasks.end());
  }

  void flush() {
    if (writing_ || asking_ || collecting_ || !open_ || ask()) return;
    std::string text;
    if (std::exchange(missed_, false)) text += "event: reset\ndata: {}\n\n";
    for (const auto& event : pending_)
      if (may_see(event->change)) text += event_text(*event);
    pending_.clear();
    if (text.empty()) return;
    collecting_ = true;
    write(text);
  }

  std::string encoded(const std::string& text) { return gzip_ ? gzip_->add(text) : text; }

  void write(const std::string& text) {
    writing_ = true;
    exchange_->write(encoded(text), [self = shared_from_this()](bool sent) {
      self->serial_->try_post([self, sent] {
        self->writing_ = false;
        if (!sent) self->open_ = false;
        self->flush();
      });
    });
  }

  const Request request_;
  std::shared_ptr<Exchange> exchange_;
  loop::Workers* serial_ = nullptr;
  std::vector<std::shared_ptr<const loop::Event>> pending_;
  bool open_ = true, writing_ = false, missed_ = false, asking_ = false;
  /// Set from a write to the next tick: changes of one object within it become one event.
  bool collecting_ = false;
  std::optional<GzipStream> gzip_;  ///< Empty for clients that do not decode gzip.
  const Gateway& gateway_;
  // Cached permissions of the reader. seen_ takes precedence over hidden_.
  bool sees_all_ = false;
  Gateway::Subjects seen_, hidden_;
  int rights_ = 0, rights_asked_ = -1;
};

struct EventStream::Parts {
  struct Entry {
    std::shared_ptr<Client> client;
    loop::Hub::Subscription subscription;
  };
  loop::Hub& hub;
  loop::Workers& serial;
  const Gateway& gateway;
  const std::function<std::uint64_t()> rights;
  std::vector<Entry> clients;
  std::uint64_t rights_seen = 0;
  int ticks = 0;
  bool closed = false;
};

EventStream::EventStream(loop::Hub& hub, loop::Workers& serial, const Gateway& gateway,
                         std::function<std::uint64_t()> rights)
    : parts_(new Parts{hub, serial, gateway, std::move(rights), {}}) {}
EventStream::~EventStream() = default;

void EventStream::handle(Request request, const std::shared_ptr<Exchange>& exchange) {
  if (request.method != "GET") return exchange->respond(message_response(405, "only GET here"));
  Parts* parts = parts_.get();
  auto shared = std::make_shared<Request>(std::move(request));
  parts->gateway.check_session(*shared, [parts, shared, exchange](Status status) {
    if (!status) return exchange->respond(error_response(status.error()));
    parts->serial.post([parts, shared, exchange] {
      if (parts->closed) return;
      // Last-Event-ID is untrusted; a malformed one starts at the current event.
      std::uint64_t after = 0;
      const std::string_view last = shared->header("last-event-id");
      std::from_chars(last.data(), last.data() + last.size(), after);
      if (after == 0) after = parts->hub.last();
      auto client = std::make_shared<Client>(std::move(*shared), exchange, parts->gateway);
      // Subscribed before the head is sent: a client that reads data after the head misses no change.
      const auto subscription = parts->hub.subscribe(
          [client, serial = &parts->serial](const std::shared_ptr<const loop::Event>& event) {
            serial->post([client, event] { client->add(event); });
          },
          after);
      client->begin(parts->serial, after);
      parts->clients.push_back({std::move(client), subscription});
    });
  });
}

void EventStream::tick() {
  // Drop clients that have disconnected.
  std::erase_if(parts_->clients, [this](const Parts::Entry& entry) {
    if (!entry.client->open()) parts_->hub.unsubscribe(entry.subscription);
    return !entry.client->open();
  });
  for (const Parts::Entry& entry : parts_->clients) entry.client->tick();
  const std::uint64_t rights = parts_->rights ? parts_->rights() : 0;
  const bool changed = std::exchange(parts_->rights_seen, rights) != rights;
  const bool beat = ++parts_->ticks % kHeartbeatTicks == 0;
  if (!beat && !changed) return;
  // Permissions may change without notice, so every heartbeat checks them.
  for (const Parts::Entry& entry : parts_->clients) {
    if (beat) entry.client->heartbeat();
    entry.client->forget_rights();
    parts_->gateway.check_session(
        entry.client->request(), [client = entry.client, serial = &parts_->serial](Status status) {
          const bool refused = !status && status.error().code == Code::kUnauthenticated;
          if (refused) serial->try_post([client] { client->end(); });
        });
  }
}

void EventStream::close() {
  parts_->closed = true;
  for (const Parts::Entry& entry : parts_->clients) {
    parts_->hub.unsubscribe(entry.subscription);
    entry.client->end();
  }
  parts_->clients.clear();
}

}  // namespace det::http
