#include "cli/submit/trial_progress.h"

#include "cli/output/print.h"

namespace det::cli {
namespace {

std::string word_of(v1::State state) {
  switch (state) {
    case v1::STATE_UNSPECIFIED:
    case v1::STATE_ACTIVE:
    case v1::STATE_QUEUED:
      return "queued";
    case v1::STATE_PULLING:
      return "building";
    case v1::STATE_STARTING:
      return "starting";
    case v1::STATE_RUNNING:
      return "running";
    default:
      return state_text(state);
  }
}

}  // namespace

void TrialProgress::add(const TrialReading& reading, MonoTime now) {
  if (!known_ || word_of(reading.state) != word_of(last_.state)) {
    entered_ = now;
    throughput_.clear();
  }
  known_ = true;
  last_ = reading;
  throughput_.add(reading.batches, reading.progress, now);
}

std::string TrialProgress::text(MonoTime now, const std::string& reason) const {
  if (!known_) return "state unknown";
  const std::string word = word_of(last_.state);
  std::string text = word + " " + whole_seconds(now - entered_);
  if (word == "queued" && !reason.empty()) return text + ": " + reason;
  if (word != "running") return text;
  if (last_.batches > 0)
    text += ", batch " + std::to_string(last_.batches) + ", " + percentage(last_.progress);
  return text + throughput_.text(now);
}

}  // namespace det::cli
