// Simulator tests: seeds that must pass, reproducible traces, and mutants that must be detected.
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "tests/sim/world.h"

namespace det::sim {
namespace {

// Sanitizers make a seed ten times slower and find memory errors in few seeds.
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kSeeds = 300;
#else
constexpr std::uint64_t kSeeds = 2000;
#endif

TEST_CASE("every seed keeps every rule and finishes") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Plan plan = draw_plan(seed);
    const Outcome outcome = simulate(plan);
    INFO(describe(plan));
    REQUIRE(outcome.failure == "");
  }
}

TEST_CASE("seeds that once broke a rule pass") {
  // 4170: a killed search resumed a trial before it received the trial's exit.
  // 2454: a run failed on an agent that was lost, between two failures of its trial.
  // 2666: trials waited for a build that was lost, and that another experiment made unnecessary.
  for (const std::uint64_t seed : {std::uint64_t{2454}, std::uint64_t{2666}, std::uint64_t{4170}})
    CHECK(simulate(draw_plan(seed)).failure == "");
}

TEST_CASE("a seed gives the same trace every time") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Plan plan = draw_plan(seed);
    REQUIRE(simulate(plan).trace_hash == simulate(plan).trace_hash);
  }
  REQUIRE(simulate(draw_plan(1)).trace_hash != simulate(draw_plan(2)).trace_hash);
}

#ifndef __SANITIZE_ADDRESS__
std::string first_failure(const Broken& broken, std::uint64_t seeds = 10000) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = simulate(draw_plan(seed, broken));
    if (!outcome.failure.empty()) return outcome.failure;
  }
  return "";
}

TEST_CASE("every disabled safety rule is detected") {
  using core::Mutant;
  const std::pair<const char*, Mutant> mutants[] = {
      {"slot freed at kill", Mutant::kSlotFreedAtKill},
      {"lost counted", Mutant::kLostCounted},
      {"a token sent but not stored", Mutant::kTokenForgotten},
      {"a token that outlives its allocation", Mutant::kTokenOutlives},
      {"restart not counted", Mutant::kRestartNotCounted},
      {"a trial that is always lost runs again", Mutant::kLostForever},
      {"a final failure run again", Mutant::kFinalRunAgain},
      {"a repeated failure run again", Mutant::kRepeatRunAgain},
      {"canceled retries run", Mutant::kCanceledRunAgain},
      {"no reconnect deadline", Mutant::kNoReconnectDeadline},
      {"validation twice", Mutant::kValidationTwice},
      {"NaN best", Mutant::kNanBest},
      {"checkpoint moves back", Mutant::kCheckpointMovesBack},
      {"no preemption deadline", Mutant::kNoPreemptDeadline},
      {"detached trial scheduled", Mutant::kDetachedScheduled},
      {"detached trial waited for without end", Mutant::kDetachedForever},
      {"a stopped trial keeps its slots", Mutant::kStopKeepsSlots},
      {"a missing metric fails the search", Mutant::kMissingMetricFatal},
      {"a trial at a rung is given slots", Mutant::kHeldScheduled},
      {"max_slots ignored", Mutant::kMaxSlotsIgnored},
      {"the quota of a user ignored", Mutant::kQuotaIgnored},
      {"quotas forgotten", Mutant::kQuotaForgotten},
      {"a disabled agent given work", Mutant::kDisabledScheduled},
      {"a stopping agent given work", Mutant::kStoppingScheduled},
      {"a move in the queue without effect", Mutant::kMoveKeepsPosition},
      {"a gang outlives its part", Mutant::kGangOutlivesPart},
      {"a gang's slots freed at its first exit", Mutant::kGangFreedAtFirst},
      {"a gang ends as its last part", Mutant::kLastExitCounts},
      {"the error of a lost agent's peers counted", Mutant::kPeerErrorCounted},
      {"a lost command runs again", Mutant::kCommandRunsAgain},
      {"a waiting command forgotten", Mutant::kCommandForgotten},
      {"a command preempted", Mutant::kCommandPreempted},
      {"the kill of a command lost", Mutant::kCommandKillLost},
      {"a paused command runs on", Mutant::kPausedCommandRuns},
      {"slots given to a build", Mutant::kBuildTakesSlots},
      {"a compile error repeated by the next trial", Mutant::kBuildErrorRepeated},
      {"trials left waiting for a build", Mutant::kBuildNotHandedOver},
      {"more pilots than max_pilots", Mutant::kPilotsUnbounded},
      {"a pilot released while it works", Mutant::kPilotBusyReleased},
      {"an idle pilot never released", Mutant::kPilotNeverReleased},
      {"a lost submission not repeated", Mutant::kPilotNotRepeated},
      {"the number of a pilot used twice", Mutant::kPilotNumberReused},
      {"work for an agent of an ended pilot", Mutant::kZombieScheduled},
      {"work for an agent of a pilot that ends soon", Mutant::kEndingScheduled},
      {"a leftover pilot runs on", Mutant::kZombieNotCanceled},
      {"a refused pilot replaced at once", Mutant::kPilotRefusedAtOnce},
      {"a pilot for one allocation takes any work", Mutant::kPilotShared},
      {"a pilot for one allocation used twice", Mutant::kPilotUsedAgain},
      {"the use of a pilot forgotten", Mutant::kPilotUseForgotten},
      {"a pilot outlives its allocation", Mutant::kSurplusNotReleased},
      {"the settings of an agent that has left stay", Mutant::kLeftNotForgotten},
      {"the first message of an earlier connection accepted", Mutant::kOldHelloAccepted},
      {"work for an agent with a problem", Mutant::kProblemScheduled},
      {"work for a slot with a problem", Mutant::kFaultScheduled},
      {"work for an excluded agent", Mutant::kExcludedScheduled},
      {"link groups unknown to the scheduler", Mutant::kLinkForgotten},
      {"a failure on a slot with a fault counted", Mutant::kFaultCounted},
      {"work for an enabled slot before its check", Mutant::kCheckSkipped},
      {"a damaged checkpoint stays the newest", Mutant::kDamageForgotten},
      {"work for an agent that still runs what is over", Mutant::kLeftoversForgotten},
  };
  for (const auto& [name, mutant] : mutants) {
    DYNAMIC_SECTION(name) { CHECK(first_failure({.rule = mutant}) != ""); }
  }
  const std::pair<const char*, searcher::Fault> faults[] = {
      {"reports of stopped trials count", searcher::Fault::kHearsStopped},
      {"rungs are counted by logarithms", searcher::Fault::kFloatLogarithm},
      {"hyperparameters are drawn in any order", searcher::Fault::kUnorderedDraws},
      {"trials that run keep the old length", searcher::Fault::kLeavesBehind},
      {"invalid trials are replaced for ever", searcher::Fault::kEndlessReplacement},
  };
  for (const auto& [name, fault] : faults) {
    DYNAMIC_SECTION(name) { CHECK(first_failure({.search = fault}) != ""); }
  }
  const std::pair<const char*, BoundaryMutant> boundary[] = {
      {"reply before durable", BoundaryMutant::kReplyBeforeDurable},
      {"send before durable", BoundaryMutant::kSendBeforeDurable},
      {"short agent wait", BoundaryMutant::kShortAgentWait},
      {"no run fence", BoundaryMutant::kNoRunFence},
      {"impostor accepted", BoundaryMutant::kImpostorAccepted},
      {"request id ignored", BoundaryMutant::kRequestIdIgnored},
      {"a command made twice", BoundaryMutant::kCommandTwice},
      {"the service of agents forgotten", BoundaryMutant::kServiceForgotten},
      {"preemption acknowledgment forgotten", BoundaryMutant::kPreemptAckForgotten},
      {"the end of a broken gang forgotten", BoundaryMutant::kGangKillForgotten},
      {"half a gang started", BoundaryMutant::kGangHalfStarted},
      {"start not repeated", BoundaryMutant::kStartNotRepeated},
      {"kill not repeated", BoundaryMutant::kKillNotRepeated},
      {"forgets to forget", BoundaryMutant::kForgetsToForget},
      {"archive forgotten", BoundaryMutant::kArchiveForgotten},
      {"canceled retries forgotten", BoundaryMutant::kRetriesForgotten},
      {"excluded agents forgotten", BoundaryMutant::kExcludedForgotten},
      {"rows beyond a damaged checkpoint stay", BoundaryMutant::kDamageKeepsRows},
      {"pilots forgotten", BoundaryMutant::kPilotsForgotten},
      {"the cancellation of a pilot not repeated", BoundaryMutant::kCancelNotRepeated},
      {"a metric is stored after its decision", BoundaryMutant::kMetricAfterDecision},
  };
  for (const auto& [name, mutant] : boundary) {
    DYNAMIC_SECTION(name) { CHECK(first_failure({.boundary = mutant}) != ""); }
  }
}
#endif

}  // namespace
}  // namespace det::sim
