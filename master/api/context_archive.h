// Owns how a context comes into the master: packed by the client, in chunks behind the request that it
// belongs to, or as files in a message.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "det/v1/experiment.pb.h"
#include "master/api/authorize.h"
#include "master/api/context.h"
#include "master/api/status.h"

namespace det::api {

struct ContextArchive {
  std::string bytes;  ///< tar.gz; "" when there is no context
  std::vector<ArchiveItem> items;
};

/// Checked. `archive`: as it came in chunks; then there must be no files, which are packed otherwise.
Result<ContextArchive> context_of(const google::protobuf::RepeatedPtrField<v1::File>& files,
                                  std::optional<std::string> archive);

/// The most bytes of a chunk.
inline constexpr std::size_t kContextChunk = 1 << 20;

/// kInvalidArgument when it is too long or makes the archive so.
Status add_chunk(const std::string& chunk, std::string& archive);

/// Gathers the parts of one upload. The caller is known before the first chunk is kept. `Part` is a message
/// with a `chunk` and the request; `take_first` gives the request, null when the part is not one.
template <typename Part, typename Request, typename Response>
class Upload : public grpc::ServerReadReactor<Part> {
 public:
  using TakeFirst = Request* (*)(Part&);
  using Create = Status (*)(const Context&, const Caller&, const Request&, std::optional<std::string> archive,
                            Response*);

  Upload(const Context& context, grpc::CallbackServerContext* call, const char* method, TakeFirst take_first,
         Create create, Response* response)
      : context_(context),
        call_(call),
        credentials_(read_credentials(*call)),
        method_(method),
        take_first_(take_first),
        create_(create),
        response_(response) {
    const bool taken = context_.workers.try_post([this] {
      auto caller = authorize(method_, credentials_, *context_.sessions);
      if (!caller) return this->Finish(to_grpc(caller.error()));
      caller_ = std::move(*caller);
      this->StartRead(&part_);
    });
    if (!taken) busy();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return create();
    auto status = take();
    if (!status) return this->Finish(to_grpc(status.error()));
    this->StartRead(&part_);
  }
  void OnDone() override { delete this; }

 private:
  void busy() {
    this->Finish(to_grpc(Error{Code::kUnavailable, "the master is busy; try again in a moment", {}}));
  }

  Status take() {
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

  void create() {
    if (!request_)
      return this->Finish(to_grpc(Error{Code::kInvalidArgument, "an upload begins with the request", {}}));
    const bool taken = context_.workers.try_post([this] {
      // A broken stream looks like the end of the chunks.
      if (call_->IsCancelled()) return this->Finish(grpc::Status::CANCELLED);
      std::optional<std::string> archive;
      if (!archive_.empty()) archive = std::move(archive_);
      const Status done = create_(context_, caller_, *request_, std::move(archive), response_);
      audit(context_.pool, caller_, method_, nullptr, done);
      this->Finish(to_grpc(done));
    });
    if (!taken) busy();
  }

  const Context& context_;
  grpc::CallbackServerContext* const call_;
  const Credentials credentials_;
  const char* const method_;
  const TakeFirst take_first_;
  const Create create_;
  Response* const response_;
  Caller caller_;
  Part part_;
  std::optional<Request> request_;
  std::string archive_;
};

}  // namespace det::api
