// Bookkeeping shared by all search methods: which trials exist, how they closed, when the search is over.
#include "common/searcher/searcher.h"

#include <algorithm>
#include <cmath>

#include "common/searcher/state.h"

namespace det::searcher {
namespace {

/// Streams of the experiment's seed for request ids and trial seeds, independent of the search's own draws.
constexpr std::uint64_t kIdStream = 1, kSeedStream = 2;
/// Progress of a trial is kept in millionths, so that sums are exact.
constexpr std::int64_t kWholeProgress = 1'000'000;

Result<std::unique_ptr<SearchMethod>> make_method(const expconf::ExperimentConfig& config, Fault fault) {
  const std::string& name = config.searcher.name;
  if (name == "single") return make_single(config);
  if (name == "random") return make_random(config);
  if (name == "grid") return make_grid(config);
  if (name == "async_halving" || name == "adaptive_asha") return make_halving(config, fault);
  return fail(Code::kUnimplemented, "searcher.name: there is no searcher \"" + name +
                                        "\"; use single, random, grid, async_halving or adaptive_asha");
}

/// TrialState continues with the exit reasons after the open states, in the same order.
TrialState as_state(ExitReason reason) {
  return static_cast<TrialState>(static_cast<int>(reason) + static_cast<int>(TrialState::kCompleted));
}
static_assert(static_cast<int>(TrialState::kInvalidHp) - static_cast<int>(TrialState::kCompleted) ==
              static_cast<int>(ExitReason::kInvalidHp));

std::string no_trial(TrialNumber trial) { return "this search has no trial number " + std::to_string(trial); }

}  // namespace

RequestId request_id(std::uint32_t experiment_seed, TrialNumber trial) {
  return RequestId(Random{experiment_seed | kIdStream << 32, 2 * std::uint64_t{trial}}.uuid());
}

std::uint32_t trial_seed(std::uint32_t experiment_seed, TrialNumber trial) {
  return static_cast<std::uint32_t>(Random{experiment_seed | kSeedStream << 32, trial}.next() >> 33);
}

std::int64_t Book::open() const {
  return count(TrialState::kRunning) + count(TrialState::kStopping) + count(TrialState::kHeld);
}

void Book::set(TrialNumber trial, TrialState state) {
  --counts[static_cast<std::size_t>(states[trial])];
  ++counts[static_cast<std::size_t>(state)];
  states[trial] = state;
}

double MethodContext::score(double metric) const {
  if (std::isnan(metric)) return kWorst;
  return std::clamp(config_.searcher.smaller_is_better ? metric : -metric, -kWorst, kWorst);
}

TrialNumber MethodContext::create() { return create(sampler_.next(random_)); }

TrialNumber MethodContext::create(Sample sample) {
  const auto trial = static_cast<TrialNumber>(book_.states.size());
  book_.states.push_back(TrialState::kRunning);
  ++book_.counts[static_cast<std::size_t>(TrialState::kRunning)];
  sampler_.created(trial, sample);
  actions_.emplace_back(Create{trial, std::move(sample)});
  return trial;
}

void MethodContext::stop(TrialNumber trial) {
  book_.set(trial, TrialState::kStopping);
  actions_.emplace_back(Stop{trial});
}

void MethodContext::hold(TrialNumber trial) {
  book_.set(trial, TrialState::kHeld);
  actions_.emplace_back(Hold{trial});
}

void MethodContext::resume(TrialNumber trial) {
  book_.behind.erase(trial);
  book_.set(trial, TrialState::kRunning);
  actions_.emplace_back(Resume{trial});
}

Searcher::Searcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Searcher::Searcher(Searcher&&) noexcept = default;
Searcher& Searcher::operator=(Searcher&&) noexcept = default;
Searcher::~Searcher() = default;

Result<Searcher> Searcher::create(std::shared_ptr<const expconf::ExperimentConfig> config, Fault fault) {
  auto state = std::make_unique<State>();
  TRY_ASSIGN(state->method, make_method(*config, fault));
  state->sampler = config->searcher.sampler == "tpe" ? make_tpe_sampler(config->hyperparameters)
                                                     : make_random_sampler(config->hyperparameters, fault);
  state->fault = fault;
  state->random.seed = config->experiment_seed;
  state->book.max_trials = config->searcher.max_trials;
  state->book.max_time = longest_training(config->searcher);
  state->config = std::move(config);
  return Searcher(std::move(state));
}

/// Updates the book, then calls the method. Events that change nothing are dropped.
void Searcher::State::handle(const Event& event, MethodContext& context) {
  if (std::holds_alternative<Started>(event)) {
    if (!book.states.empty()) return;
    method->start(context);
  } else if (auto* validated = std::get_if<Validated>(&event)) {
    if (validated->trial >= book.states.size()) return;
    const TrialState now = book.states[validated->trial];
    const bool again = now == TrialState::kStopping && fault == Fault::kHearsStopped;
    if (now == TrialState::kRunning || now == TrialState::kHeld || again)
      method->validated(*validated, context);
  } else if (auto* exited = std::get_if<Exited>(&event)) {
    if (exited->trial >= book.states.size() || !is_open(book.states[exited->trial])) return;
    const TrialState before = book.states[exited->trial];
    const bool behind = book.behind.erase(exited->trial) > 0 && fault != Fault::kLeavesBehind;
    // For the method, the trial has been running all the time.
    if (behind && before == TrialState::kRunning && exited->reason == ExitReason::kCompleted)
      return context.resume(exited->trial);
    // A stopped trial had already trained long enough: an error during its shutdown does not count.
    Exited known = *exited;
    if (before == TrialState::kStopping && known.reason == ExitReason::kErrored)
      known.reason = ExitReason::kCompleted;
    book.set(known.trial, as_state(known.reason));
    set_progress(exited->trial, 0);
    // Limits the replacements of invalid trials, see kFreeReplacements.
    book.too_many_invalid |=
        book.count(TrialState::kInvalidHp) > kFreeReplacements + kReplacementsPerTrial * book.valid() &&
        fault != Fault::kEndlessReplacement;
    method->exited(known, before, context);
  } else if (auto* extended = std::get_if<Extended>(&event)) {
    Book before;
    before.max_trials = book.max_trials;
    before.max_time = book.max_time;
    book.max_trials = extended->max_trials.value_or(book.max_trials);
    book.max_time = extended->max_time.value_or(book.max_time);
    for (const TrialNumber trial : extended->behind)
      if (trial < book.states.size() && book.states[trial] == TrialState::kRunning) book.behind.insert(trial);
    shut_down = false;
    method->extended(before, context);
  } else {
    const TrialNumber trial = std::get<Retried>(event).trial;
    shut_down = false;
    method->retried(trial, context);
  }
}

std::vector<Action> Searcher::handle(const Event& event) {
  std::vector<Action> actions;
  const bool asked = std::holds_alternative<Extended>(event) || std::holds_alternative<Retried>(event);
  // Extended and Retried revive a search that is over; all other events are ignored after Shutdown.
  if (asked ? !check(event) : state_->shut_down) return actions;
  Book& book = state_->book;
  MethodContext context(*state_->config, book, *state_->sampler, state_->random, actions);
  state_->handle(event, context);
  // The search is over when its last trial has closed and the method has created no other.
  if (book.states.empty() || book.open() > 0 || state_->shut_down) return actions;
  state_->shut_down = true;
  const std::int64_t valid = book.valid();
  const std::int64_t errored = book.count(TrialState::kErrored), canceled = book.count(TrialState::kCanceled);
  const bool refused = book.too_many_invalid || (valid == 0 && book.created() > 1);
  std::string reason;
  if (refused)
    reason = std::to_string(book.count(TrialState::kInvalidHp)) + " of " + std::to_string(book.created()) +
             " trials refused their hyperparameters as invalid; narrow the ranges or mend the check";
  actions.emplace_back(Shutdown{canceled > 0 && canceled == valid,
                                refused || (errored > 0 && errored == valid), std::move(reason)});
  return actions;
}

Status Searcher::check(const Event& event) const {
  const Book& book = state_->book;
  if (auto* retried = std::get_if<Retried>(&event)) {
    if (retried->trial >= book.states.size()) return fail(Code::kInvalidArgument, no_trial(retried->trial));
    const TrialState state = book.states[retried->trial];
    if (state == TrialState::kErrored || (retried->canceled && state == TrialState::kCanceled)) return {};
    return fail(Code::kFailedPrecondition, "trial number " + std::to_string(retried->trial) +
                                               " did not fail" +
                                               (retried->canceled ? " and was not canceled" : "") +
                                               "; only trials that did can be retried");
  }
  auto* extended = std::get_if<Extended>(&event);
  if (extended == nullptr) return {};
  if (book.states.empty())
    return fail(Code::kFailedPrecondition, "the search has not started; edit its configuration");
  if (extended->max_trials) TRY(state_->method->check_more_trials());
  const std::int64_t trials = extended->max_trials.value_or(book.max_trials);
  const std::int64_t time = extended->max_time.value_or(book.max_time);
  if (trials < book.max_trials)
    return fail(Code::kInvalidArgument, "max_trials can only grow: it is " + std::to_string(book.max_trials));
  if (trials > kMaxTrials)
    return fail(Code::kInvalidArgument, "max_trials must be at most " + std::to_string(kMaxTrials));
  if (time < book.max_time || time > kMaxTime)
    return fail(Code::kInvalidArgument, "max_time can only grow, up to " + std::to_string(kMaxTime) +
                                            ": it is " + std::to_string(book.max_time));
  if (trials == book.max_trials && time == book.max_time)
    return fail(Code::kInvalidArgument, "give max_trials or max_time a larger value than it has");
  if (time > book.max_time) TRY(state_->method->check_more_time(time));
  return {};
}

void Searcher::State::set_progress(TrialNumber trial, double value) {
  if (trial >= book.states.size()) return;
  if (progress.size() <= trial) progress.resize(book.states.size());
  // A closed trial counts through its state, so its own progress is 0.
  const double share = std::isnan(value) || !is_open(book.states[trial]) ? 0 : std::clamp(value, 0.0, 1.0);
  const auto parts = static_cast<std::uint32_t>(std::llround(share * kWholeProgress));
  running += static_cast<std::int64_t>(parts) - static_cast<std::int64_t>(progress[trial]);
  progress[trial] = parts;
}

void Searcher::set_progress(TrialNumber trial, double progress) { state_->set_progress(trial, progress); }

double Searcher::progress() const {
  if (state_->shut_down) return 1;
  const double running = static_cast<double>(state_->running) / kWholeProgress;
  return std::clamp(state_->method->progress(state_->book, running), 0.0, 1.0);
}

std::int64_t Searcher::max_trials() const { return state_->book.max_trials; }
std::int64_t Searcher::max_time() const { return state_->book.max_time; }

std::vector<BracketState> Searcher::brackets() const { return state_->method->brackets(); }

TrialNumber Searcher::created() const { return static_cast<TrialNumber>(state_->book.states.size()); }

bool Searcher::awaits(TrialNumber trial) const {
  return trial < state_->book.states.size() && is_open(state_->book.states[trial]);
}

}  // namespace det::searcher
