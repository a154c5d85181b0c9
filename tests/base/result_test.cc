#include "common/base/result.h"

#include "common/base/ids.h"
#include "need.h"

using namespace det;

namespace {
Result<int> half(int number) {
  if (number % 2 != 0) return fail(Code::kInvalidArgument, "odd");
  return number / 2;
}
Result<int> quarter(int number) {
  TRY_ASSIGN(const int once, half(number));
  TRY_ASSIGN(const int twice, half(once));
  return twice;
}
Status check_quarter(int number) {
  TRY(quarter(number));
  return {};
}
}  // namespace

TEST_CASE("TRY returns the first error and passes values through", "[result]") {
  CHECK(need(quarter(12)) == 3);
  REQUIRE_FALSE(quarter(6));
  CHECK(quarter(6).error().message == "odd");
  CHECK(check_quarter(8).has_value());
  CHECK(check_quarter(7).error().code == Code::kInvalidArgument);
}

TEST_CASE("a problem prints as file, position, path, code and message", "[result]") {
  const Problem problem{
      "E-CFG-RANGE", "searcher.max_trials", "must be an integer >= 1, got 0", "const.yaml", 14, 16};
  CHECK(to_string(problem) ==
        "const.yaml:14:16  searcher.max_trials  E-CFG-RANGE  must be an integer >= 1, got 0");
  const auto failure = fail({problem, {"E-CFG-MISSING", "", "config is empty", "", 0, 0}});
  CHECK(failure.value().message == to_string(problem) + "\nE-CFG-MISSING  config is empty");
  CHECK(failure.value().problems.size() == 2);
}

TEST_CASE("every code has its gRPC name and its HTTP status", "[result]") {
  struct Row {
    Code code;
    const char* name;
    int status;
  };
  const std::vector<Row> rows{{Code::kCancelled, "Canceled", 499},
                              {Code::kUnknown, "Unknown", 500},
                              {Code::kInvalidArgument, "InvalidArgument", 400},
                              {Code::kDeadlineExceeded, "DeadlineExceeded", 504},
                              {Code::kNotFound, "NotFound", 404},
                              {Code::kAlreadyExists, "AlreadyExists", 409},
                              {Code::kPermissionDenied, "PermissionDenied", 403},
                              {Code::kResourceExhausted, "ResourceExhausted", 429},
                              {Code::kFailedPrecondition, "FailedPrecondition", 400},
                              {Code::kAborted, "Aborted", 409},
                              {Code::kOutOfRange, "OutOfRange", 400},
                              {Code::kUnimplemented, "Unimplemented", 501},
                              {Code::kInternal, "Internal", 500},
                              {Code::kUnavailable, "Unavailable", 503},
                              {Code::kDataLoss, "DataLoss", 500},
                              {Code::kUnauthenticated, "Unauthenticated", 401}};
  int number = 0;
  for (const Row& row : rows) {
    CHECK(static_cast<int>(row.code) == ++number);
    CHECK(code_name(row.code) == row.name);
    CHECK(http_status(row.code) == row.status);
  }
}

TEST_CASE("strong ids compare and hash by value, and distinct types do not convert", "[ids]") {
  CHECK(TrialId(3) < TrialId(4));
  CHECK(std::hash<TrialId>{}(TrialId(3)) == std::hash<TrialId>{}(TrialId(3)));
  CHECK_FALSE(std::is_convertible_v<TrialId, ExperimentId>);
  CHECK_FALSE(std::is_constructible_v<ExperimentId, TrialId>);
}
