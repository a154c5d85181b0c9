#include "harness/src/trainer/profile_on_request.h"

#include <zlib.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "common/base/clock.h"
#include "common/storage/media_limits.h"

namespace det {
namespace {

/// Events of a request: about 60 MB of JSON, 5 MB of gzip. Recording ends with the batch that exceeds it.
constexpr std::size_t kMaxProfileEvents = 250'000;
constexpr const char* kStepName = "batch ";

/// Compresses as gzip; "" when zlib fails.
std::string gzip_text(const std::string& text) {
  z_stream stream{};
  // 15 bits of window, + 16: a gzip header.
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string out(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool done = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(done ? stream.total_out : 0);
  ::deflateEnd(&stream);
  return out;
}

/// Removes everything after the first `batches` steps.
void cut_trace(Trace& trace, std::int64_t batches) {
  std::vector<std::int64_t> ends;
  for (const TraceEvent& event : trace.events)
    if (event.kind == TraceEvent::Kind::kStep) ends.push_back(event.end);
  std::sort(ends.begin(), ends.end());
  if (static_cast<std::int64_t>(ends.size()) <= batches) return;
  const std::int64_t end = ends[static_cast<std::size_t>(batches) - 1];
  std::erase_if(trace.events, [&](const TraceEvent& event) { return event.end > end; });
  std::erase_if(trace.memory, [&](const TraceMemory& memory) { return memory.time > end; });
}

}  // namespace

PackedTrace pack_trace(Trace trace, std::int64_t wall_offset, std::size_t most) {
  std::int64_t batches = std::count_if(trace.events.begin(), trace.events.end(), [](const TraceEvent& event) {
    return event.kind == TraceEvent::Kind::kStep;
  });
  const StackText stacks = stack_text_of(trace);
  while (batches > 0) {
    std::string bytes = gzip_text(chrome_trace(trace, wall_offset, stacks));
    if (bytes.empty()) return {};
    if (bytes.size() <= most) return {std::move(bytes), batches};
    // The size is about proportional to the number of steps; a tenth less converges in a few rounds.
    const double fits =
        static_cast<double>(batches) * static_cast<double>(most) / static_cast<double>(bytes.size());
    batches = std::min(batches - 1, static_cast<std::int64_t>(fits * 0.9));
    if (batches > 0) cut_trace(trace, batches);
  }
  return {};
}

ProfileOnRequest::~ProfileOnRequest() {
  client_.refuse_profiles("the training loop has ended");
  if (recorder_) stop_phases();
  if (writer_.joinable()) writer_.join();
}

void ProfileOnRequest::stop_phases() {
  instruments_.phases->observe(nullptr);
  if (std::exchange(owns_phases_, false)) instruments_.phases.reset();
}

void ProfileOnRequest::begin_batch(std::int64_t step) {
  if (!recorder_) {
    auto request = client_.take_profile_request();
    if (!request) return;
    start(std::move(*request), step);
  }
  batch_begin_ = mono_now_ns();
}

void ProfileOnRequest::start(ProfileRequest request, std::int64_t step) {
  request_ = std::move(request);
  first_ = step;
  recorded_ = 0;
  ProfilerOptions options;
  options.record_shapes = request_.record_shapes;
  options.profile_memory = request_.profile_memory;
  options.with_stack = request_.with_stack;
  recorder_ = TraceRecorder::try_record(options, TraceRecorder::Purpose::kRequest);
  if (!recorder_)
    return report(ProfileProgress::State::kFailed, "the trial records a trace of its own; try again later");
  if (!instruments_.phases) {
    instruments_.phases = std::make_unique<PhaseClock>();
    owns_phases_ = true;
  }
  instruments_.phases->observe([this](Phase phase, std::int64_t begin) {
    if (phase != Phase::kOther) recorder_->add(to_string(phase), TraceEvent::Kind::kPhase, begin);
  });
  report(ProfileProgress::State::kRecording);
}

void ProfileOnRequest::end_batch() {
  if (!recorder_) return;
  recorder_->add(kStepName + std::to_string(first_ + recorded_), TraceEvent::Kind::kStep, batch_begin_);
  ++recorded_;
  if (recorded_ == request_.batches) return send_trace("");
  if (recorder_->size() > kMaxProfileEvents)
    return send_trace("a trace has at most " + std::to_string(kMaxProfileEvents) + " events");
  report(ProfileProgress::State::kRecording);
}

void ProfileOnRequest::finish() {
  // A request is taken at the start of a batch, so at least one batch is recorded.
  if (recorder_) send_trace("training has ended");
  client_.refuse_profiles("the training loop has ended");
  if (writer_.joinable()) writer_.join();
}

/// The thread owns its trace: training goes on with the next batch.
void ProfileOnRequest::send_trace(std::string shortfall) {
  Trace trace = recorder_->take();
  recorder_.reset();
  stop_phases();
  report(ProfileProgress::State::kStoring);
  if (writer_.joinable()) writer_.join();
  writer_ = std::thread([&client = client_, trace = std::move(trace), request = request_, first = first_,
                         recorded = recorded_, shortfall = std::move(shortfall),
                         offset = trace_wall_offset()]() mutable {
    PackedTrace packed = pack_trace(std::move(trace), offset, kMaxMediaBytes);
    ProfileProgress progress{.id = request.id, .batches = packed.batches, .message = shortfall};
    if (packed.batches < recorded)
      progress.message = "a trace has at most " + std::to_string(kMaxMediaBytes >> 20) + " MiB, compressed";
    if (packed.batches == 0) {
      progress.state = ProfileProgress::State::kFailed;
      return client.report_profile(progress);
    }
    const std::string last = std::to_string(first + packed.batches - 1);
    client.report_media({.kind = "FILE",
                         .name = "profile/" + request.id,
                         .steps_completed = first + packed.batches,
                         .caption = "trace of batches " + std::to_string(first) + " to " + last,
                         .content = std::move(packed.bytes),
                         .file_name = "batches-" + std::to_string(first) + "-" + last + ".pt.trace.json.gz",
                         .done = [&client, progress](const Status& stored) mutable {
                           progress.state =
                               stored ? ProfileProgress::State::kDone : ProfileProgress::State::kFailed;
                           if (!stored) progress.message = stored.error().message;
                           client.report_profile(progress);
                         }});
  });
}

void ProfileOnRequest::report(ProfileProgress::State state, std::string message) {
  client_.report_profile(
      {.id = request_.id, .state = state, .batches = recorded_, .message = std::move(message)});
}

}  // namespace det
