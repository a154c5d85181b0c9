// Reads of AllocationService. The calls of processes are in allocation_calls.cc and allocation_gather.cc.
#include "master/api/cluster/allocation.h"

#include "common/base/text.h"
#include "det/v1/allocation.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/tasks/task.h"
#include "master/core/build_id.h"
#include "master/db/queries/allocations.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/trials.h"
#include "master/db/store/allocation_parts.h"

namespace det::api {
namespace {

void part_to_proto(const core::AllocationPart& part, v1::AllocationPart* out) {
  out->set_agent_id(part.agent.value);
  for (const int slot : part.slots) out->add_slots(slot);
  out->set_state(std::string(core::allocation_state_name(part.state)));
  if (!part.exit) return;
  out->set_exit_kind(std::string(db::exit_kind_name(part.exit->kind)));
  out->set_exit_message(part.exit->message);
}

}  // namespace

AllocationService::AllocationService(const Context& context)
    : Service(context, v1::AllocationService::full_name) {
  unary(v1::AllocationService::GetTrialAllocations, &AllocationService::GetTrialAllocations);
  unary(v1::AllocationService::GetAllocation, &AllocationService::GetAllocation);
  deferred(v1::AllocationService::AllocationAllGather, &AllocationService::AllocationAllGather);
  unary(v1::AllocationService::AllocationWaiting, &AllocationService::AllocationWaiting);
  unary(v1::AllocationService::MarkAllocationResourcesDaemon,
        &AllocationService::MarkAllocationResourcesDaemon);
  unary(v1::AllocationService::AllocationPendingPreemptionSignal,
        &AllocationService::AllocationPendingPreemptionSignal);
  unary(v1::AllocationService::AllocationRendezvousInfo, &AllocationService::AllocationRendezvousInfo);
  deferred(v1::AllocationService::AllocationPreemptionSignal, &AllocationService::AllocationPreemptionSignal);
  unary(v1::AllocationService::AckAllocationPreemptionSignal,
        &AllocationService::AckAllocationPreemptionSignal);
  unary(v1::AllocationService::PostAllocationAcceleratorData,
        &AllocationService::PostAllocationAcceleratorData);
  unary(v1::AllocationService::PostAllocationProxyAddress, &AllocationService::PostAllocationProxyAddress);
  unary(v1::AllocationService::AllocationReady, &AllocationService::AllocationReady);
}

Status AllocationService::GetTrialAllocations(const Caller&, const v1::GetTrialAllocationsRequest& request,
                                              v1::GetTrialAllocationsResponse* response) {
  const TrialId id(request.trial_id());
  TRY(db::get_trial(context_.pool, id));
  TRY_ASSIGN(const auto rows, db::list_allocations(context_.pool, id));
  for (const db::AllocationRow& row : rows) {
    v1::TrialAllocation* out = response->add_allocations();
    out->set_id(row.id.value);
    out->set_run(static_cast<int>(row.run));
    const bool build = core::is_build(row.id);
    out->set_state(build && !row.ended ? "BUILDING" : row.state);
    for (const core::AllocationPart& part : row.parts) part_to_proto(part, out->add_parts());
    // Agent and slots at the top level are those of the first part: clients that ignore gangs read them.
    if (out->parts_size() > 0) {
      out->set_agent_id(out->parts(0).agent_id());
      *out->mutable_slots() = out->parts(0).slots();
    }
    out->set_resource_pool(row.pool);
    to_proto(row.started, out->mutable_start_time());
    if (row.ended) to_proto(*row.ended, out->mutable_end_time());
    // Empty while the allocation lives.
    out->set_exit_kind(row.exit_kind.value_or(""));
    if (row.exit_code) out->mutable_exit_code()->set_value(static_cast<int>(*row.exit_code));
    // The message of a build that succeeds is the digest of its library.
    const bool built = build && row.exit_kind == "SUCCEEDED";
    out->set_exit_message(built ? "built" : row.exit_message.value_or(""));
  }
  return {};
}

Status AllocationService::GetAllocation(const Caller&, const v1::GetAllocationRequest& request,
                                        v1::GetAllocationResponse* response) {
  const std::string& id = request.allocation_id();
  // Allocation ids are "<task>.<run>".
  const TaskId task(id.substr(0, id.rfind('.')));
  const auto facts = db::get_task(context_.pool, task);
  if (!facts && facts.error().code != Code::kNotFound) return tl::unexpected(facts.error());
  if (facts) {
    TRY_ASSIGN(const auto rows, db::list_allocations(context_.pool, facts->key));
    for (const db::AllocationRow& row : rows) {
      if (row.id.value != id) continue;
      to_proto(row, task, response->mutable_allocation());
      return {};
    }
  }
  return fail(Code::kNotFound, "allocation " + make_utf8(id) + " not found");
}

}  // namespace det::api
