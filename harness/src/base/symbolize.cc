#include "harness/src/base/symbolize.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/process.h"

namespace det {
namespace {

constexpr int kPatienceMillis = 5'000;  // per module
constexpr int kMaxLines = 8;
constexpr std::size_t kMaxFunction = 96;

char addr2line[4096];  // "" when there is none
char executable[4096];

struct Frame {
  std::uintptr_t address = 0;    ///< within the call instruction
  const char* module = nullptr;  ///< path of its file; null when unknown or not the program's own
  std::uintptr_t offset = 0;     ///< address in the file
};
struct Frames {
  Frame frames[kMaxFrames];
  int count = 0;
};

bool is_own(std::string_view path) {
  if (path.empty() || path.starts_with("/usr/") || path.starts_with("/lib") || path.starts_with("linux-vdso"))
    return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view other : {"libdet", "det-harness", "libtorch", "libc10"})
    if (name.starts_with(other)) return false;
  return true;
}

/// Called for each loaded module.
int visit_module(dl_phdr_info* info, std::size_t, void* data) {
  auto& frames = *static_cast<Frames*>(data);
  const char* path = info->dlpi_name[0] == '\0' ? executable : info->dlpi_name;
  if (!is_own(path)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    for (int k = 0; k < frames.count; ++k) {
      Frame& frame = frames.frames[k];
      if (frame.address < begin || frame.address >= begin + segment.p_memsz) continue;
      frame.module = path;
      frame.offset = frame.address - info->dlpi_addr;
    }
  }
  return 0;
}

/// Runs addr2line and appends its output. No allocation: the process may have crashed in the allocator.
void run_addr2line(char* const* argv, CrashText<16384>& output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t child = ::vfork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(ends[1], 1);
    ::dup2(null, 2);
    ::execv(argv[0], argv);
    ::_exit(127);
  }
  ::close(ends[1]);
  char buffer[1024];
  pollfd wait{ends[0], POLLIN, 0};
  while (child > 0 && ::poll(&wait, 1, kPatienceMillis) > 0) {
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    output << std::string_view(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (child <= 0) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Adds a line "FUNCTION at PATH:LINE" of addr2line, unless its file is unknown or the system's.
void add_line(std::string_view line, Places& places, int& lines) {
  constexpr std::string_view kInlined = " (inlined by) ";
  if (line.starts_with(kInlined)) line.remove_prefix(kInlined.size());
  const std::size_t at = line.rfind(" at ");
  if (at == line.npos || lines == kMaxLines) return;
  std::string_view place = line.substr(at + 4), function = line.substr(0, at);
  place = place.substr(0, place.find(" (discriminator"));
  if (place.starts_with("?") || place.starts_with("/usr/") || place.ends_with(":?") || place.ends_with(":0"))
    return;
  // Inline functions of this library: the line that calls them is the program's own.
  if (place.find("/include/det/") != place.npos) return;
  place.remove_prefix(place.rfind('/') + 1);
  if (places.place.empty()) places.place << place;
  ++lines;
  places.stack << "  at " << function.substr(0, kMaxFunction) << (function.size() > kMaxFunction ? "…" : "")
               << " (" << place << ")\n";
}

/// Adds the lines of the frames of one module, beginning with frame `first`.
void add_module(Frames& frames, int first, Places& places, int& lines) {
  // Static: the stack of a signal handler is small. Handlers and reports of exceptions do not overlap.
  static char addresses[kMaxFrames][20];
  char* argv[kMaxFrames + 8];
  int count = 0;
  const char* const module = frames.frames[first].module;
  for (const char* word : {static_cast<const char*>(addr2line), "-C", "-f", "-p", "-i", "-e", module})
    argv[count++] = const_cast<char*>(word);
  for (int i = first; i < frames.count; ++i) {
    Frame& frame = frames.frames[i];
    if (frame.module != module) continue;
    CrashText<20> address;
    address.hex(frame.offset);
    std::memcpy(addresses[i], address.view().data(), address.view().size());
    addresses[i][address.view().size()] = '\0';
    argv[count++] = addresses[i];
    frame.module = nullptr;
  }
  argv[count] = nullptr;
  static CrashText<16384> output;
  output.clear();
  run_addr2line(argv, output);
  std::string_view rest = output.view();
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    add_line(rest.substr(0, end), places, lines);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
}

/// Adds the lines of each of `addresses` in the output of addr2line -a: its offset, then its lines.
void add_lines(std::string_view output, const std::vector<const void*>& addresses,
               std::unordered_map<const void*, std::string>& found) {
  std::size_t next = 0;
  int lines = 0;
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    std::string_view line = output.substr(0, end);
    output.remove_prefix(end == output.npos ? output.size() : end + 1);
    const std::size_t colon = line.find(": ");
    if (line.starts_with("0x") && colon != line.npos) {
      line.remove_prefix(colon + 2);
      ++next;
      lines = 0;
    }
    Places places;
    if (next == 0 || next > addresses.size()) continue;
    add_line(line, places, lines);
    // Without the indentation and the newline.
    std::string_view text = places.stack.view();
    if (text.empty()) continue;
    text = text.substr(5, text.size() - 6);
    std::string& all = found[addresses[next - 1]];
    all.append(all.empty() ? "" : ";").append(text);
  }
}

}  // namespace

void prepare_symbolize() {
  const ssize_t size = ::readlink("/proc/self/exe", executable, sizeof executable - 1);
  executable[size < 0 ? 0 : size] = '\0';
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const std::string file = std::string(rest.substr(0, end)) + "/addr2line";
    if (file.front() == '/' && file.size() < sizeof addr2line && ::access(file.c_str(), X_OK) == 0) {
      std::memcpy(addr2line, file.c_str(), file.size() + 1);
      return;
    }
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
}

void symbolize(void* const* frames, int count, Places& places) {
  if (addr2line[0] == '\0') return;
  static Frames own;
  own = Frames();
  // A return address may belong to the next line; the byte before it does not.
  for (; own.count < count && own.count < kMaxFrames; ++own.count)
    own.frames[own.count].address = reinterpret_cast<std::uintptr_t>(frames[own.count]) - 1;
  ::dl_iterate_phdr(visit_module, &own);
  int lines = 0;
  for (int i = 0; i < own.count && lines < kMaxLines; ++i)
    if (own.frames[i].module != nullptr) add_module(own, i, places, lines);
}

std::unordered_map<const void*, std::string> source_lines(std::vector<const void*> addresses) {
  std::unordered_map<const void*, std::string> found;
  if (addr2line[0] == '\0') return found;
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  // By module: addresses, and their offsets in the file. As in symbolize(), the byte before belongs to the
  // call.
  std::map<std::string, std::pair<std::vector<const void*>, std::vector<std::string>>> modules;
  for (const void* const address : addresses) {
    const char* const call = static_cast<const char*>(address) - 1;
    Dl_info info{};
    if (::dladdr(call, &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string path = std::string_view(info.dli_fname).find('/') == std::string_view::npos
                                 ? executable
                                 : std::string(info.dli_fname);
    if (!is_own(path)) continue;
    CrashText<20> offset;
    offset.hex(static_cast<std::uint64_t>(call - static_cast<const char*>(info.dli_fbase)));
    modules[path].first.push_back(address);
    modules[path].second.emplace_back(offset.view());
  }
  for (auto& [path, calls] : modules) {
    ProcessOptions options{.argv = {addr2line, "-a", "-C", "-f", "-p", "-i", "-e", path}};
    options.argv.insert(options.argv.end(), calls.second.begin(), calls.second.end());
    const auto done = run_process(options, {.timeout = std::chrono::milliseconds(2 * kPatienceMillis)});
    if (done && done->ok()) add_lines(done->out, calls.first, found);
  }
  return found;
}

}  // namespace det
