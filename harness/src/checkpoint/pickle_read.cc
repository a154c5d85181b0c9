// Pickle reader: a stack machine for the opcodes of PyTorch's files. It builds plain data and tensors and
// rejects every other name, so a file cannot run code. NumPy names build a marker, so that files with
// Python's random states load as long as those are not used.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <unordered_set>

#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/pickle_types.h"
#include "harness/src/checkpoint/zip.h"

namespace det::pickle {
namespace {

/// Maximum nesting of containers, and maximum dimensions of a tensor.
constexpr int kDepth = 64;
/// Callables that are replaced by their first argument.
constexpr std::array<std::string_view, 4> kWrappers{"torch._utils._rebuild_parameter",
                                                    "torch._utils._rebuild_parameter_with_state",
                                                    "torch.nn.parameter.Parameter", "torch.Size"};
/// Maximum number of values. Shared nodes count once per use, which bounds exponentially shared files.
constexpr std::size_t kNodes = 4'000'000;

struct Node;
/// Owned by the reader's arena: nodes may be shared and cyclic, so plain ownership would leak or recurse.
using NodePtr = Node*;
/// The object that MARK pushes; it delimits the items of a container.
struct Mark {};
struct Tuple {
  std::vector<NodePtr> items;
};
struct Sequence {
  std::vector<NodePtr> items;
};
struct Mapping {
  std::vector<std::pair<NodePtr, NodePtr>> items;
};
/// A reference to a Python class or function by name, such as "torch.FloatStorage". It is never resolved.
struct Global {
  std::string name;
};
/// The elements of one storage, shared by all tensors that view it.
struct Storage {
  torch::Tensor elements;  // one dimension
};
/// A value on the stack, before it becomes a Value.
struct Node {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, torch::Tensor, Mark, Tuple, Sequence,
               Mapping, Global, Storage, Foreign>
      data;
};

/// Reads one file. Used once.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), zip_(std::make_shared<ZipReader>(path)) {}

  Value load() {
    // All entries share one top-level folder; its name depends on the writer.
    for (const auto& [name, bytes] : zip_->entries()) {
      if (name.ends_with("/data.pkl")) folder_ = name.substr(0, name.size() - 8), in_ = bytes;
      if (name.ends_with("/byteorder") && bytes != "little") bad("was written on a big-endian machine");
    }
    if (folder_.empty()) bad("holds no data.pkl");
    while (step()) {
    }
    return to_value(*pop(), 0);
  }

 private:
  /// Throws std::runtime_error naming the file.
  [[noreturn]] void bad(const std::string& what) const { throw std::runtime_error(path_ + ": " + what); }

  std::string_view take(std::size_t count) {
    if (in_.size() - at_ < count) bad("data.pkl ends too early");
    at_ += count;
    return in_.substr(at_ - count, count);
  }
  /// Reads an unsigned little-endian integer of `count` bytes.
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (std::size_t i = 0; i < count; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
  }
  std::string line() {
    const std::size_t end = in_.find('\n', at_);
    if (end == std::string_view::npos) bad("data.pkl ends too early");
    std::string text(in_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  /// Reads the operand of LONG1: a length and a two's complement integer.
  std::int64_t long1() {
    const std::size_t count = number(1);
    if (count > 8) bad("holds a number beyond 64 bits");
    const std::uint64_t value = number(count);
    if (count == 0 || count == 8) return static_cast<std::int64_t>(value);
    // Sign-extends: flipping and subtracting the sign bit maps it to the high bits.
    const std::uint64_t sign = std::uint64_t{1} << (8 * count - 1);
    return static_cast<std::int64_t>((value ^ sign) - sign);
  }

  template <typename T>
  void push(T data) {
    stack_.push_back(&arena_.emplace_back(Node{std::move(data)}));
  }
  NodePtr pop() {
    if (stack_.empty()) bad("data.pkl is damaged (empty stack)");
    const NodePtr node = stack_.back();
    stack_.pop_back();
    return node;
  }
  /// Pops the items above the topmost mark, and the mark. Returns them in push order.
  std::vector<NodePtr> pop_to_mark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && !std::holds_alternative<Mark>(stack_[mark - 1]->data)) --mark;
    if (mark == 0) bad("data.pkl is damaged (no mark)");
    std::vector<NodePtr> items(stack_.begin() + mark, stack_.end());
    stack_.resize(mark - 1);
    return items;
  }
  template <typename T>
  T& top() {
    T* value = stack_.empty() ? nullptr : std::get_if<T>(&stack_.back()->data);
    if (value == nullptr) bad("data.pkl is damaged (unexpected kind of object)");
    return *value;
  }
  template <typename T>
  const T& get(const NodePtr& node) const {
    const T* value = std::get_if<T>(&node->data);
    if (value == nullptr) bad("data.pkl is damaged (unexpected kind of object)");
    return *value;
  }

  /// Runs one opcode; returns false at STOP. The opcodes are split over step(), container() and object().
  bool step() {
    const char opcode = take(1)[0];
    switch (opcode) {
      case '\x80':
        (void)take(1);
        break;  // PROTO
      case '\x95':
        (void)take(8);
        break;  // FRAME
      case 'N':
        push(std::monostate{});
        break;  // NONE
      case '\x88':
        push(true);
        break;  // NEWTRUE
      case '\x89':
        push(false);
        break;  // NEWFALSE
      case 'J':
        push(std::int64_t{static_cast<std::int32_t>(number(4))});
        break;  // BININT
      case 'K':
        push(static_cast<std::int64_t>(number(1)));
        break;  // BININT1
      case 'M':
        push(static_cast<std::int64_t>(number(2)));
        break;  // BININT2
      case '\x8a':
        push(long1());
        break;  // LONG1
      case 'G':
        push(std::bit_cast<double>(__builtin_bswap64(number(8))));
        break;  // BINFLOAT
      case 'X':
        push(std::string(take(number(4))));
        break;  // BINUNICODE
      case '\x8c':
        push(std::string(take(number(1))));
        break;  // SHORT_BINUNICODE
      case '(':
        push(Mark{});
        break;  // MARK
      case ')':
        push(Tuple{});
        break;  // EMPTY_TUPLE
      case ']':
        push(Sequence{});
        break;  // EMPTY_LIST
      case '}':
        push(Mapping{});
        break;  // EMPTY_DICT
      case '.':
        return false;  // STOP
      default:
        container(opcode);
    }
    return true;
  }

  void container(char opcode) {
    switch (opcode) {
      case 't':
        push(Tuple{pop_to_mark()});
        break;      // TUPLE
      case '\x85':  // TUPLE1, 2, 3
      case '\x86':
      case '\x87': {
        const std::size_t count = static_cast<unsigned char>(opcode) - 0x84;
        if (stack_.size() < count) bad("data.pkl is damaged (empty stack)");
        std::vector<NodePtr> items(stack_.end() - count, stack_.end());
        stack_.resize(stack_.size() - count);
        push(Tuple{std::move(items)});
        break;
      }
      case 'a': {  // APPEND
        const NodePtr item = pop();
        top<Sequence>().items.push_back(item);
        break;
      }
      case 'e': {  // APPENDS
        const std::vector<NodePtr> items = pop_to_mark();
        auto& list = top<Sequence>().items;
        list.insert(list.end(), items.begin(), items.end());
        break;
      }
      case 's': {  // SETITEM
        const NodePtr value = pop(), key = pop();
        top<Mapping>().items.emplace_back(key, value);
        break;
      }
      case 'u': {  // SETITEMS
        const std::vector<NodePtr> items = pop_to_mark();
        for (std::size_t i = 0; i + 1 < items.size(); i += 2)
          top<Mapping>().items.emplace_back(items[i], items[i + 1]);
        break;
      }
      default:
        object(opcode);
    }
  }

  void object(char opcode) {
    switch (opcode) {
      case 'c': {  // GLOBAL
        const std::string module = line();
        push(Global{module + "." + line()});
        break;
      }
      case '\x93': {  // STACK_GLOBAL
        const NodePtr name = pop(), module = pop();
        push(Global{get<std::string>(module) + "." + get<std::string>(name)});
        break;
      }
      case '\x81':  // NEWOBJ
      case 'R':
        reduce();
        break;  // REDUCE
      case 'b':
        build();
        break;  // BUILD
      case 'Q':
        push(storage(pop()));
        break;  // BINPERSID
      case 'q':
        memo_[number(1)] = keep();
        break;  // BINPUT
      case 'r':
        memo_[number(4)] = keep();
        break;  // LONG_BINPUT
      case '\x94': {
        const std::size_t next = memo_.size();
        memo_[next] = keep();
        break;
      }  // MEMOIZE
      case 'h':
        recall(number(1));
        break;  // BINGET
      case 'j':
        recall(number(4));
        break;  // LONG_BINGET
      default:
        bad("data.pkl holds opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
            ", which plain data does not need; refused");
    }
  }

  NodePtr keep() {
    if (stack_.empty()) bad("data.pkl is damaged (empty stack)");
    return stack_.back();
  }
  /// Pushes a memoized object again.
  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) bad("data.pkl is damaged (unknown memo)");
    stack_.push_back(found->second);
  }

  /// Runs REDUCE or NEWOBJ for the few callables that are known. Any other name is an error: this is the
  /// check that keeps files from running code.
  void reduce() {
    const NodePtr arguments = pop(), callable = pop();
    const std::string& name = get<Global>(callable).name;
    const auto& items = get<Tuple>(arguments).items;
    if (name == "collections.OrderedDict" && items.empty()) {
      push(Mapping{});
    } else if (name == "collections.Counter" && items.size() == 1) {
      push(Mapping{get<Mapping>(items[0])});
    } else if (name == "torch._utils._rebuild_tensor_v2" && items.size() >= 4) {
      push(tensor(items));
    } else if (std::find(kWrappers.begin(), kWrappers.end(), name) != kWrappers.end() && !items.empty()) {
      stack_.push_back(items[0]);
    } else if (name == "torch.device" && !items.empty()) {
      push(get<std::string>(items[0]));
    } else if (name.starts_with("numpy.") || name == "_codecs.encode") {
      push(Foreign{name});
    } else {
      bad("wants to call " + name + ", which is not plain data; refused");
    }
  }

  /// Runs BUILD and discards the attributes, which are those of an OrderedDict
  /// (`_metadata`) or a NumPy object.
  void build() {
    (void)pop();
    const NodePtr object = keep();
    if (!std::holds_alternative<Foreign>(object->data)) (void)get<Mapping>(object);
  }

  /// Resolves ("storage", class, key, location, number of elements) to the bytes of data/<key>.
  Storage storage(const NodePtr& id) {
    const auto& items = get<Tuple>(id).items;
    if (items.size() < 5 || get<std::string>(items[0]) != "storage") bad("data.pkl is damaged (storage)");
    const std::string& key = get<std::string>(items[2]);
    if (const auto known = storages_.find(key); known != storages_.end()) return known->second;
    const std::string& class_name = get<Global>(items[1]).name;
    const auto entry = zip_->entries().find(folder_ + "data/" + key);
    if (entry == zip_->entries().end()) bad("data/" + key + " is missing");
    for (const StorageClass& known : kStorageClasses) {
      if (class_name != "torch." + std::string(known.name)) continue;
      // The count must match the entry's size exactly; tensors are checked against it later.
      const std::int64_t count = get<std::int64_t>(items[4]);
      const std::size_t width = torch::elementSize(known.type);
      if (count < 0 || entry->second.size() % width != 0 ||
          static_cast<std::uint64_t>(count) != entry->second.size() / width) {
        bad("data/" + key + " has " + std::to_string(entry->second.size()) + " bytes, not those of " +
            std::to_string(count) + " elements");
      }
      return storages_[key] = Storage{elements(entry->second, count, known.type)};
    }
    bad("holds elements of type " + class_name + ", which is not supported");
  }

  /// Returns a view of the mapped file, or a copy when the elements are not aligned (PyTorch aligns them). A
  /// view keeps the mapping alive.
  torch::Tensor elements(std::string_view bytes, std::int64_t count, torch::ScalarType type) {
    if (count == 0) return torch::empty({0}, type);
    void* data = const_cast<char*>(bytes.data());
    const bool aligned = reinterpret_cast<std::uintptr_t>(data) % torch::elementSize(type) == 0;
    if (aligned)
      return torch::from_blob(
          data, {count}, [zip = zip_](void*) {}, type);
    torch::Tensor copy = torch::empty({count}, type);
    std::memcpy(copy.data_ptr(), data, bytes.size());
    return copy;
  }

  std::vector<std::int64_t> numbers(const NodePtr& node) const {
    std::vector<std::int64_t> values;
    for (const NodePtr& item : get<Tuple>(node).items) values.push_back(get<std::int64_t>(item));
    return values;
  }

  /// Builds a tensor as a strided view of its storage after checking that the view lies inside. Negative
  /// strides are rejected. The arithmetic is 128-bit, so hostile sizes cannot overflow it.
  torch::Tensor tensor(const std::vector<NodePtr>& items) {
    const torch::Tensor& all = get<Storage>(items[0]).elements;
    const std::int64_t offset = get<std::int64_t>(items[1]);
    const std::vector<std::int64_t> sizes = numbers(items[2]), strides = numbers(items[3]);
    __int128 last = offset, count = 1;
    bool valid = offset >= 0 && sizes.size() == strides.size() && sizes.size() <= kDepth, empty = false;
    for (std::size_t i = 0; valid && i < sizes.size(); ++i) {
      empty = empty || sizes[i] == 0;
      last += static_cast<__int128>(sizes[i] - 1) * strides[i];
      count *= std::max<std::int64_t>(sizes[i], 1);
      valid = sizes[i] >= 0 && strides[i] >= 0 && count <= std::numeric_limits<std::int64_t>::max();
    }
    if (!valid || (!empty && (count > all.numel() || last >= all.numel())))
      bad("a tensor does not fit its data");
    return all.as_strided(sizes, strides, offset);
  }

  /// Converts a node tree to a Value. Throws for cycles (by the depth limit) and duplicate keys.
  Value to_value(const Node& node, int depth) {
    if (depth > kDepth || ++nodes_ > kNodes) bad("is nested too deeply or too large");
    if (const auto* v = std::get_if<bool>(&node.data)) return *v;
    if (const auto* v = std::get_if<std::int64_t>(&node.data)) return *v;
    if (const auto* v = std::get_if<double>(&node.data)) return *v;
    if (const auto* v = std::get_if<std::string>(&node.data)) return *v;
    if (const auto* v = std::get_if<torch::Tensor>(&node.data)) return *v;
    if (const auto* v = std::get_if<Tuple>(&node.data)) return to_list(v->items, depth);
    if (const auto* v = std::get_if<Sequence>(&node.data)) return to_list(v->items, depth);
    if (const auto* v = std::get_if<Mapping>(&node.data)) {
      Dict dict;
      std::unordered_set<std::string> seen;
      for (const auto& [key, item] : v->items) {
        // Python's optimizers use parameter numbers as keys.
        const auto* index = std::get_if<std::int64_t>(&key->data);
        std::string name = index != nullptr ? std::to_string(*index) : get<std::string>(key);
        if (!seen.insert(name).second) bad("holds the key \"" + name + "\" twice");
        dict.add(std::move(name), to_value(*item, depth + 1));
      }
      return dict;
    }
    if (const auto* v = std::get_if<Foreign>(&node.data)) return *v;
    // An element type such as torch.float32 becomes its name.
    const auto* global = std::get_if<Global>(&node.data);
    if (global != nullptr && global->name.starts_with("torch.")) return global->name;
    if (!std::holds_alternative<std::monostate>(node.data)) bad("holds something that is not plain data");
    return {};
  }
  List to_list(const std::vector<NodePtr>& items, int depth) {
    List list;
    for (const NodePtr& item : items) list.push_back(to_value(*item, depth + 1));
    return list;
  }

  std::string path_;
  std::shared_ptr<ZipReader> zip_;  ///< shared with the tensors that view it
  std::string folder_;              ///< with a trailing slash
  std::string_view in_;             ///< data.pkl
  std::size_t at_ = 0;              ///< read position in `in_`
  std::deque<Node> arena_;
  std::vector<NodePtr> stack_;
  std::map<std::uint64_t, NodePtr> memo_;
  std::map<std::string, Storage> storages_;
  std::size_t nodes_ = 0;  ///< values built so far, see kNodes
};

}  // namespace

Value load(const std::string& path) { return Reader(path).load(); }

}  // namespace det::pickle
