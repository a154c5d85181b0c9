// Reception of code archives (tar.gz): in chunks after the request they belong to, or as files of a message.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>
#include <vector>

#include "common/archive/archive.h"
#include "det/v1/command.pb.h"
#include "det/v1/experiment.pb.h"
#include "master/api/auth/audit_record.h"
#include "master/api/auth/authorize.h"
#include "master/api/context.h"
#include "master/api/status.h"

namespace det::api {

/// A checked code archive and the list of its entries.
struct CodeArchive {
  std::string bytes;  ///< tar.gz; "" when there are no files
  std::vector<ArchiveItem> items;
};

/// Checks an uploaded `archive`, or packs `files` if there is none. Errors: kInvalidArgument when both are
/// given, for unsafe paths, and beyond the limits of common/archive/archive.h.
Result<CodeArchive> code_archive_of(const google::protobuf::RepeatedPtrField<v1::File>& files,
                                    std::optional<std::string> archive);

/// Maximum size of a chunk in bytes.
inline constexpr std::size_t kArchiveChunk = 1 << 20;

/// Appends a chunk. Errors: kInvalidArgument when the chunk exceeds kArchiveChunk, or the archive its limit.
Status add_chunk(const std::string& chunk, std::string& archive);

/// kResourceExhausted: the uploads of the caller, or all of them, exceed their memory (Context::uploads).
tl::unexpected<Error> too_many_uploads();

/// Longest time of an upload, from its call to its last chunk.
inline constexpr Duration kUploadTime = std::chrono::minutes(10);

/// Receives one upload: the request first, then chunks. The caller is authorized before anything is read, and
/// the bytes count against Context::uploads. `Part` is the stream's message; `take_first` returns its
/// request, or null for a chunk. `create` runs on the submit pool after the last chunk. Deletes itself.
template <typename Part, typename Request, typename Response>
class Upload : public grpc::ServerReadReactor<Part> {
 public:
  using TakeFirst = Request* (*)(Part&);
  using Create = Status (*)(const Context&, const Caller&, const Request&, std::optional<std::string> archive,
                            Response*);

  Upload(const Context& context, grpc::CallbackServerContext* call, const char* method, TakeFirst take_first,
         Create handler, Response* response)
      : context_(context),
        call_(call),
        credentials_(read_credentials(*call)),
        method_(method),
        take_first_(take_first),
        create_(handler),
        response_(response) {
    if (!context_.pools.steer.try_post([this] { admit(); })) this->Finish(to_grpc(busy()));
  }

  void OnReadDone(bool ok) override {
    if (!ok) return create();
    auto status = take();
    if (status && mono_now() - begun_ > kUploadTime)
      status = fail(Code::kDeadlineExceeded, "the upload took longer than 10 minutes");
    if (!status) return this->Finish(to_grpc(status.error()));
    this->StartRead(&part_);
  }
  void OnDone() override { delete this; }

 private:
  /// Authorizes the caller. Nothing is read, and so no chunk is buffered, before.
  void admit() {
    if (const Status writable = check_disk(context_, method_); !writable)
      return this->Finish(to_grpc(writable.error()));
    auto caller = authorize(method_, credentials_, *context_.sessions);
    if (!caller) return this->Finish(to_grpc(caller.error()));
    if (const Status allowed = check_roles(method_, *caller, context_.pool); !allowed)
      return this->Finish(to_grpc(allowed.error()));
    caller_ = std::move(*caller);
    memory_ = context_.uploads->take(budget_owner(caller_), 0);
    if (!memory_) return this->Finish(to_grpc(Status(too_many_uploads())));
    this->StartRead(&part_);
  }

  /// Handles one message of the stream.
  Status take() {
    if (!memory_->grow(static_cast<std::int64_t>(part_.ByteSizeLong()))) return too_many_uploads();
    if (!request_) {
      Request* const first = take_first_(part_);
      if (!first) return fail(Code::kInvalidArgument, "an upload begins with the request");
      request_ = std::move(*first);
      return {};
    }
    if (part_.part_case() != Part::kChunk)
      return fail(Code::kInvalidArgument, "only chunks may follow the request");
    return add_chunk(part_.chunk(), archive_);
  }

  /// Submits the upload after the last chunk.
  void create() {
    if (!request_)
      return this->Finish(to_grpc(Error{Code::kInvalidArgument, "an upload begins with the request", {}}));
    const bool taken = context_.pools.submit.try_post([this] {
      // A broken stream also ends with a failed read. Only a finished one may be submitted.
      if (call_->IsCancelled()) return this->Finish(grpc::Status::CANCELLED);
      std::optional<std::string> archive;
      // Without chunks the request may carry its files itself.
      if (!archive_.empty()) archive = std::move(archive_);
      const Status done = create_(context_, caller_, *request_, std::move(archive), response_);
      audit(context_.pool, caller_, method_, nullptr, done, response_);
      this->Finish(to_grpc(done));
    });
    if (!taken) this->Finish(to_grpc(busy()));
  }

  const Context& context_;
  grpc::CallbackServerContext* const call_;
  const Credentials credentials_;
  const char* const method_;
  const TakeFirst take_first_;
  const Create create_;
  Response* const response_;
  const MonoTime begun_ = mono_now();
  Caller caller_;
  std::optional<loop::Budget::Lease> memory_;
  Part part_;
  std::optional<Request> request_;
  std::string archive_;
};

}  // namespace det::api
