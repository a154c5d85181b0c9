// Creation, extension and storage of halving searches. One bracket is async_halving, several brackets are
// adaptive_asha.
#include "common/searcher/halving.h"

namespace det::searcher {
namespace {

constexpr std::size_t kMaxSnapshotRungs = 200;

/// Appends the unsigned integers of the array at `key` to `list`. Returns false if there is no such array or
/// an item is larger than `most`.
bool read_list(const nlohmann::json& json, const char* key, std::uint64_t most,
               std::vector<std::uint64_t>& list) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) return false;
  for (const auto& item : *it) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > most) return false;
    list.push_back(item.get<std::uint64_t>());
  }
  return true;
}

}  // namespace

std::int64_t longest_training(const expconf::SearcherConfig& config) {
  if (config.max_time) return *config.max_time;
  return config.max_length ? config.max_length->count : 0;
}

Result<std::unique_ptr<SearchMethod>> make_halving(const expconf::ExperimentConfig& config, Fault fault) {
  TRY_ASSIGN(const auto plan, plan_brackets(config.searcher, fault));
  return config.searcher.rung_policy == "promote" ? make_promoting_asha(config, plan)
                                                  : make_stopping_asha(config, plan);
}

Status Halving::check_more_time(std::int64_t max_time) const {
  for (const Run& run : runs_) {
    const auto above = rungs_above(run.levels.back().length, max_time, config_.divisor);
    if (run.levels.size() + above.size() > static_cast<std::size_t>(kMaxBracketRungs))
      return fail(Code::kInvalidArgument,
                  "max_time " + std::to_string(max_time) + " gives a bracket more than " +
                      std::to_string(kMaxBracketRungs) +
                      " rungs; use a smaller max_time, or create an experiment with it");
  }
  return {};
}

/// More trials: each bracket grows to its share of the new total. More time: each bracket gets rungs above
/// its top, and the trials that completed the old top become candidates for promotion.
void Halving::extended(const Book& before, MethodContext& context) {
  const Book& book = context.book();
  if (book.max_trials > before.max_trials) {
    std::vector<std::int64_t> rungs, shares{book.max_trials};
    for (const Run& run : runs_) rungs.push_back(static_cast<std::int64_t>(run.levels.size()));
    if (runs_.size() > 1) shares = share_trials(book.max_trials, config_.divisor, rungs);
    for (std::size_t i = 0; i < runs_.size(); ++i)
      runs_[i].max_trials = std::max(runs_[i].max_trials, shares[i]);
  }
  if (book.max_time > before.max_time) {
    std::vector<std::size_t> tops;
    for (Run& run : runs_) {
      tops.push_back(run.levels.size());
      for (std::int64_t length : rungs_above(run.levels.back().length, book.max_time, config_.divisor))
        run.levels.push_back({length, Rung(Divisor(config_.divisor), least_), {}});
    }
    for (TrialNumber trial = 0; trial < places_.size(); ++trial) {
      const Place& place = places_[trial];
      const TrialState state = context.state(trial);
      if (place.entries == tops[place.bracket] && !place.failed &&
          (state == TrialState::kCompleted || state == TrialState::kStopping))
        wait(trial);
    }
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) fill(static_cast<std::uint8_t>(i), context);
}

nlohmann::json Halving::snapshot() const {
  auto json = nlohmann::json{{"bracket", nlohmann::json::array()}, {"entries", nlohmann::json::array()},
                             {"reached", nlohmann::json::array()}, {"flags", nlohmann::json::array()},
                             {"scores", nlohmann::json::array()},  {"runs", nlohmann::json::array()}};
  for (const Place& place : places_) {
    json["bracket"].push_back(place.bracket);
    json["entries"].push_back(place.entries);
    json["reached"].push_back(place.reached);
    json["flags"].push_back((place.failed ? 1u : 0u) + (place.waits ? 2u : 0u) + (place.again ? 4u : 0u));
    // Scores are one flat list, the latest of each trial first; `entries` gives the count of each trial.
    for (std::uint32_t at = place.result; at != kNone; at = results_[at].below)
      json["scores"].push_back(results_[at].score);
  }
  for (const Run& run : runs_) {
    nlohmann::json lengths = nlohmann::json::array();
    for (const Level& level : run.levels) lengths.push_back(level.length);
    json["runs"].push_back({{"max_trials", run.max_trials}, {"rungs", std::move(lengths)}});
  }
  return json;
}

Status Halving::restore(const nlohmann::json& snapshot, const Book& book) {
  const Error damaged{Code::kDataLoss, "stored search: the brackets are damaged", {}};
  const auto runs = snapshot.is_object() ? snapshot.find("runs") : snapshot.end();
  if (!snapshot.is_object() || runs == snapshot.end() || !runs->is_array() || runs->size() != runs_.size())
    return tl::unexpected(damaged);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    std::vector<std::uint64_t> lengths;
    const auto& run = (*runs)[i];
    if (!run.is_object() || !run.contains("max_trials") || !run["max_trials"].is_number_integer() ||
        !read_list(run, "rungs", std::numeric_limits<std::int64_t>::max(), lengths) || lengths.empty() ||
        lengths.size() > kMaxSnapshotRungs)
      return tl::unexpected(damaged);
    runs_[i].max_trials = run["max_trials"].get<std::int64_t>();
    runs_[i].levels.clear();
    for (std::uint64_t length : lengths)
      runs_[i].levels.push_back(
          {static_cast<std::int64_t>(length), Rung(Divisor(config_.divisor), least_), {}});
  }
  return restore_places(snapshot, book);
}

Status Halving::restore_places(const nlohmann::json& snapshot, const Book& book) {
  const Error damaged{Code::kDataLoss, "stored search: the places of the trials are damaged", {}};
  std::vector<std::uint64_t> brackets, entries, reached, flags;
  const auto scores = snapshot.find("scores");
  if (!read_list(snapshot, "bracket", runs_.size() - 1, brackets) ||
      !read_list(snapshot, "entries", kMaxSnapshotRungs, entries) ||
      !read_list(snapshot, "reached", kMaxSnapshotRungs, reached) ||
      !read_list(snapshot, "flags", 7, flags) || scores == snapshot.end() || !scores->is_array() ||
      brackets.size() != book.states.size() || entries.size() != brackets.size() ||
      reached.size() != brackets.size() || flags.size() != brackets.size())
    return tl::unexpected(damaged);
  std::size_t next = 0;
  places_.resize(brackets.size());
  for (TrialNumber trial = 0; trial < places_.size(); ++trial) {
    Place& place = places_[trial];
    place.bracket = static_cast<std::uint8_t>(brackets[trial]);
    Run& run = run_of(trial);
    if (entries[trial] > run.levels.size() || next + entries[trial] > scores->size())
      return tl::unexpected(damaged);
    // Oldest first, so that enter() rebuilds the rungs and the links between results.
    for (std::size_t i = entries[trial]; i-- > 0;) {
      if (!(*scores)[next + i].is_number()) return tl::unexpected(damaged);
      enter(trial, (*scores)[next + i].get<double>());
    }
    next += entries[trial];
    place.reached = static_cast<std::uint8_t>(reached[trial]);
    place.failed = flags[trial] & 1;
    place.again = flags[trial] & 4;
    if ((flags[trial] & 3) != 0 && place.entries == 0) return tl::unexpected(damaged);
    if (flags[trial] & 2) wait(trial);
    // The counters of a bracket are not stored: they follow from the states of its trials.
    const TrialState state = book.states[trial];
    ++run.created;
    run.invalid += state == TrialState::kInvalidHp;
    run.closed += !is_open(state);
    run.held += state == TrialState::kHeld;
    run.live += state == TrialState::kRunning || place.again;
  }
  return {};
}

}  // namespace det::searcher
