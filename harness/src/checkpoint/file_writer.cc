// File writer: direct I/O with several blocks in flight.
#include "harness/src/checkpoint/file_writer.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string_view>
#include <utility>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/checkpoint/checksum.h"

namespace det {
namespace {

/// Block size of writes, page size to align buffers to, and blocks in flight.
constexpr std::uint64_t kBlock = 4 << 20, kHugePage = 2 << 20;
constexpr unsigned kDepth = 4;

Status write_at(int fd, std::string_view bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(path);
    if (wrote == 0) return fail(Code::kUnavailable, path + ": the disk takes no more bytes");
    bytes.remove_prefix(wrote), offset += wrote;
  }
  return {};
}

/// The kernel AIO context of this thread; 0 where AIO is not available. It lives as long as the thread
/// because destroying one takes tens of milliseconds. Uses the system calls directly; libaio would only wrap
/// them.
class Queue {
 public:
  static aio_context_t of_this_thread() {
    static thread_local const Queue queue;
    return queue.context_;
  }
  ~Queue() {
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
  }
  Queue(const Queue&) = delete;

 private:
  Queue() {
    if (::syscall(SYS_io_setup, kDepth, &context_) != 0) context_ = 0;
  }
  aio_context_t context_ = 0;
};

/// Writes of blocks of one file in progress.
class Pipeline {
 public:
  Pipeline(int fd, bool direct, const std::string& path)
      : fd_(fd), path_(path), context_(direct ? Queue::of_this_thread() : 0) {}
  /// Waits for all writes: they read memory that the owner may free.
  ~Pipeline() {
    while (used_ > 0) (void)reap();
  }
  Pipeline(const Pipeline&) = delete;

  Status submit(std::string_view bytes, std::uint64_t offset) {
    // Without AIO every write is synchronous.
    if (context_ == 0) return write_at(fd_, bytes, offset, path_);
    if (used_ == kDepth) TRY(reap());
    Slot& slot = *std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.bytes.empty(); });
    slot.bytes = bytes, slot.offset = offset, slot.block = {};
    slot.block.aio_data = reinterpret_cast<std::uintptr_t>(&slot);
    slot.block.aio_lio_opcode = IOCB_CMD_PWRITE;
    slot.block.aio_fildes = fd_;
    slot.block.aio_buf = reinterpret_cast<std::uintptr_t>(bytes.data());
    slot.block.aio_nbytes = bytes.size();
    slot.block.aio_offset = static_cast<std::int64_t>(offset);
    iocb* blocks[] = {&slot.block};
    if (::syscall(SYS_io_submit, context_, 1, blocks) != 1) {
      // The queue is full or the file does not support AIO.
      slot.bytes = {};
      return write_at(fd_, bytes, offset, path_);
    }
    ++used_;
    return {};
  }
  Status drain() {
    while (used_ > 0) TRY(reap());
    return {};
  }

 private:
  struct Slot {
    iocb block{};
    std::string_view bytes;  ///< empty: free
    std::uint64_t offset = 0;
  };
  /// Waits for one block. A short write is completed synchronously.
  Status reap() {
    io_event event{};
    while (::syscall(SYS_io_getevents, context_, 1, 1, &event, nullptr) != 1) {
    }  // interrupted; other errors cannot occur with our own context
    --used_;
    Slot& slot = *reinterpret_cast<Slot*>(event.data);
    const std::string_view bytes = std::exchange(slot.bytes, {});
    if (event.res < 0) {
      errno = static_cast<int>(-event.res);
      return fail_errno(path_);
    }
    const auto wrote = static_cast<std::uint64_t>(event.res);
    return write_at(fd_, bytes.substr(wrote), slot.offset + wrote, path_);
  }
  int fd_;
  const std::string& path_;
  const aio_context_t context_;
  std::array<Slot, kDepth> slots_{};
  unsigned used_ = 0;
};

}  // namespace

void PageBuffer::reserve(std::uint64_t bytes) {
  if (bytes <= capacity_) return;
  release();
  const std::uint64_t wanted = round_up(bytes, kHugePage);
  // Huge pages reduce the number of page faults of a large buffer.
  void* memory = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  (void)::madvise(memory, wanted, MADV_HUGEPAGE);
  data_ = static_cast<char*>(memory), capacity_ = wanted;
}

void PageBuffer::release() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
  data_ = nullptr, capacity_ = 0;
}

Result<std::uint64_t> write_image(const std::string& path, char* image, std::uint64_t size,
                                  const std::function<void(std::uint64_t end)>& seal) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  UniqueFd file(::open(path.c_str(), kFlags | O_DIRECT, 0644));
  const bool direct = static_cast<bool>(file);
  // Some file systems, such as tmpfs, do not support O_DIRECT.
  if (!direct && errno == EINVAL) file.reset(::open(path.c_str(), kFlags, 0644));
  if (!file) return fail_errno(path);
  const std::uint64_t padded = direct ? round_up(size, kDirectAlignment) : size;
  // Allocates the space first: a full disk fails early, and writes inside the file's size can proceed in
  // parallel.
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(padded)) != 0 && errno == ENOSPC)
    return fail_errno(path);
  std::uint64_t crc = 0;
  {
    Pipeline pipeline(file.get(), direct, path);
    for (std::uint64_t at = 0; at < size; at += kBlock) {
      const std::uint64_t end = std::min(at + kBlock, size);
      seal(end);
      beat();
      crc = crc64_of({image + at, static_cast<std::size_t>(end - at)}, crc);
      TRY(pipeline.submit({image + at, static_cast<std::size_t>(std::min(at + kBlock, padded) - at)}, at));
    }
    TRY(pipeline.drain());
  }
  // A direct write is padded to the alignment; the padding is cut off.
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0 || ::fsync(file.get()) != 0)
    return fail_errno(path);
  return crc;
}

}  // namespace det
