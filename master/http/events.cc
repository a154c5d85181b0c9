// Owns the clients of the event stream.
#include "master/http/events.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"

namespace det::http {
namespace {

using Kind = loop::Change::Kind;
constexpr int kHeartbeatTicks = 15;
constexpr std::size_t kMostPending = 512;

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
  }
  return "";
}

/// Two events of which the later makes the earlier one needless.
bool same_subject(const loop::Change& a, const loop::Change& b) {
  return kind_name(a.kind) == kind_name(b.kind) && a.experiment == b.experiment && a.trial == b.trial &&
         a.task == b.task && (a.kind != Kind::kCheckpoint || a.name == b.name) &&
         (a.kind != Kind::kAgent || a.name == b.name);
}

}  // namespace

std::string event_text(const loop::Event& event) {
  const loop::Change& change = event.change;
  Json data = Json::object();
  if (change.experiment.value) data["experimentId"] = change.experiment.value;
  if (change.trial.value) data["trialId"] = change.trial.value;
  if (!change.task.value.empty()) data["taskId"] = change.task.value;
  switch (change.kind) {
    case Kind::kExperiment:
    case Kind::kTrial:
      data["state"] = "STATE_" + change.name;
      break;
    case Kind::kMetrics:
      data["group"] = change.name;
      break;
    case Kind::kCheckpoint:
      data["uuid"] = change.name;
      break;
    case Kind::kAgent:
      data["agentId"] = change.name;
      break;
    case Kind::kAllocation:
    case Kind::kLogs:
      break;
  }
  return "id: " + std::to_string(event.id) + "\nevent: " + std::string(kind_name(change.kind)) +
         "\ndata: " + dump_json(data) + "\n\n";
}

/// One stream. All members on the serial worker, but for what the exchange takes from any thread.
class EventStream::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(Request request, std::shared_ptr<Exchange> exchange)
      : request_(std::move(request)), exchange_(std::move(exchange)) {}

  const Request& request() const { return request_; }
  bool open() const { return open_; }

  void begin(loop::Workers& serial) {
    serial_ = &serial;
    Response head{
        200,
        {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}},
        "retry: 2000\n\n"};
    exchange_->begin(std::move(head), [weak = weak_from_this(), &serial] {
      serial.try_post([weak] {
        if (auto self = weak.lock()) self->open_ = false;
      });
    });
  }

  void add(const std::shared_ptr<const loop::Event>& event) {
    if (!open_) return;
    if (!event || pending_.size() >= kMostPending) {
      pending_.clear();
      missed_ = true;
    }
    if (event) {
      std::erase_if(pending_, [&](const auto& other) { return same_subject(other->change, event->change); });
      pending_.push_back(event);
    }
    flush();
  }

  void heartbeat() {
    if (open_ && !writing_) write(":\n\n");
  }

  void end() {
    if (std::exchange(open_, false)) exchange_->end();
  }

 private:
  void flush() {
    if (writing_ || !open_) return;
    std::string text;
    if (std::exchange(missed_, false)) text += "event: reset\ndata: {}\n\n";
    for (const auto& event : pending_) text += event_text(*event);
    pending_.clear();
    if (!text.empty()) write(std::move(text));
  }

  void write(std::string text) {
    writing_ = true;
    exchange_->write(std::move(text), [self = shared_from_this()](bool sent) {
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
  bool open_ = true, writing_ = false, missed_ = false;
};

struct EventStream::Parts {
  struct Entry {
    std::shared_ptr<Client> client;
    loop::Hub::Subscription subscription;
  };
  loop::Hub& hub;
  loop::Workers& serial;
  const Gateway& gateway;
  std::vector<Entry> clients;
  int ticks = 0;
  bool closed = false;
};

EventStream::EventStream(loop::Hub& hub, loop::Workers& serial, const Gateway& gateway)
    : parts_(new Parts{hub, serial, gateway, {}}) {}
EventStream::~EventStream() = default;

void EventStream::handle(Request request, std::shared_ptr<Exchange> exchange) {
  if (request.method != "GET") return exchange->respond(message_response(405, "only GET here"));
  Parts* parts = parts_.get();
  auto shared = std::make_shared<Request>(std::move(request));
  parts->gateway.check_session(*shared, [parts, shared, exchange](Status status) {
    if (!status) return exchange->respond(error_response(status.error()));
    parts->serial.post([parts, shared, exchange] {
      if (parts->closed) return;
      std::uint64_t after = 0;
      const std::string_view last = shared->header("last-event-id");
      std::from_chars(last.data(), last.data() + last.size(), after);
      auto client = std::make_shared<Client>(std::move(*shared), exchange);
      client->begin(parts->serial);
      const auto subscription = parts->hub.subscribe(
          [client, serial = &parts->serial](const std::shared_ptr<const loop::Event>& event) {
            serial->post([client, event] { client->add(event); });
          },
          after);
      parts->clients.push_back({std::move(client), subscription});
    });
  });
}

void EventStream::tick() {
  std::erase_if(parts_->clients, [this](const Parts::Entry& entry) {
    if (!entry.client->open()) parts_->hub.unsubscribe(entry.subscription);
    return !entry.client->open();
  });
  if (++parts_->ticks % kHeartbeatTicks != 0) return;
  for (const Parts::Entry& entry : parts_->clients) {
    entry.client->heartbeat();
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
