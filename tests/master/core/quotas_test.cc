// Quotas of users and workspaces that the core enforces: slots and experiments.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

using Scope = scheduler::QuotaKey::Scope;

constexpr std::int64_t kAnn = 7, kVision = 3;
const scheduler::QuotaKey kOfAnn{Scope::kUser, kAnn}, kOfVision{Scope::kWorkspace, kVision};

struct Shop : Bench {
  std::optional<Result<ReplyValue>> set(const scheduler::QuotaKey& of, QuotaResource resource,
                                        std::optional<std::int64_t> limit) {
    return step(SetQuota{.of = of, .resource = resource, .limit = limit});
  }
  std::optional<Result<ReplyValue>> create(std::int64_t user, std::int64_t workspace,
                                           const std::string& pool = "", int slots = 1) {
    auto its = config(slots);
    its->resources.resource_pool = pool;
    return step(SubmitExperiment{.request_id = RequestId("shop" + std::to_string(++number_)),
                                 .owner = UserId(user),
                                 .workspace = workspace,
                                 .config = its});
  }
  void connect_to(const std::string& agent, const std::string& pool, std::size_t slots) {
    AgentConnected input{.agent = AgentId(agent),
                         .instance = agent,
                         .pool = pool,
                         .slots = std::vector<Device>(slots),
                         .session = 1000 + static_cast<std::uint64_t>(++number_)};
    const std::uint64_t session = input.session;
    step(input);
    sessions[agent] = session;
  }
  void end(TrialId trial) {
    const Allocation& allocation = *live(trial);
    const AgentId agent = allocation.parts[0].agent;
    step(AllocationUpdated{agent,
                           sessions.at(agent.value),
                           {allocation.id, AllocationState::kTerminated, Exit{ExitKind::kSucceeded, 0, ""}}});
  }
  std::map<std::string, std::uint64_t> sessions;

 private:
  int number_ = 0;
};

TEST_CASE("a request beyond the slots of its user waits until one of the user's allocations ends") {
  Shop shop;
  shop.connect_to("a", "", 4);
  REQUIRE(*shop.set(kOfAnn, QuotaResource::kSlots, 1));
  REQUIRE(*shop.create(kAnn, 1));
  REQUIRE(*shop.create(kAnn, 1));
  REQUIRE(*shop.create(8, 1));
  CHECK(shop.live(TrialId(1)));
  CHECK_FALSE(shop.live(TrialId(2)));
  CHECK(shop.live(TrialId(3)));
  shop.end(TrialId(1));
  CHECK(shop.live(TrialId(2)));
}

TEST_CASE("a quota of slots counts the allocations in all pools") {
  Shop shop;
  shop.connect_to("a", "", 4);
  shop.connect_to("b", "other", 4);
  REQUIRE(*shop.set(kOfVision, QuotaResource::kSlots, 2));
  REQUIRE(*shop.create(kAnn, kVision));
  REQUIRE(*shop.create(8, kVision, "other"));
  REQUIRE(*shop.create(9, kVision, "other"));
  CHECK(shop.live(TrialId(1)));
  CHECK(shop.live(TrialId(2)));
  CHECK_FALSE(shop.live(TrialId(3)));
  SECTION("an end in one pool admits a request of another") {
    shop.end(TrialId(1));
    CHECK(shop.live(TrialId(3)));
  }
  SECTION("a higher quota admits it at once") {
    REQUIRE(*shop.set(kOfVision, QuotaResource::kSlots, 3));
    CHECK(shop.live(TrialId(3)));
  }
  SECTION("a removed quota admits it at once") {
    REQUIRE(*shop.set(kOfVision, QuotaResource::kSlots, std::nullopt));
    CHECK(shop.live(TrialId(3)));
  }
  SECTION("the move of an experiment that runs to another workspace admits a request of another pool") {
    REQUIRE(*shop.step(PlaceExperiments{.experiments = {ExperimentId(1)}, .workspace = 4}));
    CHECK(shop.live(TrialId(3)));
  }
  SECTION("another workspace is not limited") {
    REQUIRE(*shop.step(PlaceExperiments{.experiments = {ExperimentId(3)}, .workspace = 4}));
    CHECK(shop.live(TrialId(3)));
  }
}

TEST_CASE("commands count towards the quota of slots") {
  Shop shop;
  shop.connect_to("a", "", 4);
  REQUIRE(*shop.set(kOfAnn, QuotaResource::kSlots, 1));
  auto config = std::make_shared<expconf::CommandConfig>();
  config->entrypoint = {"true"};
  config->slots = 1;
  for (const char* task : {"one", "two"})
    REQUIRE(*shop.step(SubmitCommand{.task = TaskId(task), .owner = UserId(kAnn), .config = config}));
  CHECK(shop.core().allocations().size() == 1);
}

TEST_CASE("quotas survive a restart") {
  Shop shop;
  shop.connect_to("a", "", 4);
  REQUIRE(*shop.set(kOfAnn, QuotaResource::kSlots, 1));
  REQUIRE(*shop.set(kOfAnn, QuotaResource::kLogBytes, 5000));
  REQUIRE(*shop.create(kAnn, 1));
  const AllocationId running = shop.live(TrialId(1))->id;
  shop.restart();
  CHECK(shop.core().quotas().size() == 2);
  shop.connect("a", 4, {{running, AllocationState::kRunning, std::nullopt}}, "a");
  REQUIRE(*shop.create(kAnn, 1));
  CHECK_FALSE(shop.live(TrialId(2)));
}

TEST_CASE("a further experiment beyond the quota is refused, and a repeat is not") {
  Shop shop;
  REQUIRE(*shop.set(kOfVision, QuotaResource::kExperiments, 1));
  const SubmitExperiment first{
      .request_id = RequestId("first"), .owner = UserId(kAnn), .workspace = kVision, .config = shop.config()};
  REQUIRE(*shop.step(first));
  CHECK(code_of(shop.create(8, kVision)) == Code::kResourceExhausted);
  CHECK(*shop.create(8, 1));
  CHECK(*shop.step(first));
  shop.act(ExperimentId(1), ExperimentAction::kKill);
  REQUIRE(shop.experiment(ExperimentId(1)).state == State::kCanceled);
  CHECK(*shop.create(8, kVision));
  SECTION("an ended one is not continued beyond it") {
    ContinueSearch again{.experiment = ExperimentId(1), .canceled = true};
    again.ended = std::make_shared<const Recovered>(shop.disk().recover(ExperimentId(1)));
    CHECK(code_of(shop.step(again)) == Code::kResourceExhausted);
    REQUIRE(*shop.set(kOfVision, QuotaResource::kExperiments, 2));
    CHECK(*shop.step(again));
  }
}

TEST_CASE("the refusal of an experiment names the quota") {
  Shop shop;
  REQUIRE(*shop.set(kOfAnn, QuotaResource::kExperiments, 0));
  const auto refused = shop.create(kAnn, 1);
  REQUIRE((refused && !*refused));
  CHECK(refused->error().message ==
        "the user has 0 active experiments, and its quota is 0; end one, or let an administrator raise the "
        "quota");
}

TEST_CASE("a negative limit is refused") {
  Shop shop;
  CHECK(code_of(shop.set(kOfAnn, QuotaResource::kSlots, -1)) == Code::kInvalidArgument);
  CHECK(shop.core().quotas().empty());
}

TEST_CASE("the names of resources and scopes are read back") {
  for (const QuotaResource resource : kQuotaResources)
    CHECK(parse_resource(resource_name(resource)) == resource);
  for (const Scope scope : {Scope::kUser, Scope::kWorkspace}) CHECK(parse_scope(scope_name(scope)) == scope);
  CHECK_FALSE(parse_resource("gpus"));
}

}  // namespace
}  // namespace det::core
