// Parts of the benchmarks of a real master: a user, and a stub agent with the trials that the master assigns
// to it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/queue.h"
#include "det/v1/agent.methods.h"
#include "det/v1/experiment.methods.h"
#include "figure.h"

namespace bench {

/// Opens a separate connection for each number: a connection carries at most 100 concurrent calls.
std::shared_ptr<grpc::Channel> connect(const std::string& address, int number = 0);
void check(const grpc::Status& status, const char* what);

/// Joins as an agent with the join token of the master, which lies beside its password file. Returns the
/// token that the agent's calls carry.
std::string join_as(const std::string& address, const std::string& password_file, const std::string& agent);
/// Identifies a call as one of the agent with this token.
void sign_agent(grpc::ClientContext& context, const std::string& token);

/// A logged-in admin.
class User {
 public:
  User(const std::string& address, const std::string& password_file);
  void sign(grpc::ClientContext& context) const { context.AddMetadata("authorization", "Bearer " + token_); }
  /// Returns when the experiment is stored.
  int submit(const std::string& searcher) const;
  std::string token() const { return token_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
};

/// A stub agent: collects start commands, and reports the end of every allocation as soon as it is stopped.
class Agent {
 public:
  struct Started {
    det::v1::StartAllocation allocation;
    Clock::time_point when;
  };
  Agent(const std::string& address, const std::string& name, int slots, const std::string& token);
  ~Agent();
  Started next();  ///< Blocks.
  void say(const std::string& allocation, det::v1::AllocationUpdate::State state);

 private:
  void read();
  void write();
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<det::v1::AgentMessage, det::v1::AgentCommand>> link_;
  det::Queue<Started> started_{1 << 16};
  det::Queue<det::v1::AgentMessage> outgoing_{1 << 16};
  std::thread reader_, writer_;
};

inline double percentile(std::vector<double> values, double at) {
  auto place = values.begin() + static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace bench
