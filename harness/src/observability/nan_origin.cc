#include "harness/src/observability/nan_origin.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <execinfo.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "harness/src/base/symbolize.h"

namespace det {
namespace {

struct Origin {
  std::string operator_name;  ///< "" until an operator has made NaN
  std::vector<const void*> stack;
};
/// The callbacks are plain functions.
thread_local Origin* watching = nullptr;

bool has_nan(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.layout() == at::kStrided &&
         tensor.numel() > 0 && tensor.isnan().any().item<bool>();
}

bool has_nan(const c10::IValue& value) {
  if (value.isTensor()) return has_nan(value.toTensor());
  if (!value.isTensorList()) return false;
  const auto tensors = value.toTensorVector();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return has_nan(tensor); });
}

template <typename Values>
bool any_nan(const Values& values) {
  return std::any_of(values.begin(), values.end(), [](const c10::IValue& value) { return has_nan(value); });
}

/// An operator that calls others ends after them, so the innermost one is found. In-place operators have
/// their result among the inputs: the state before is asked for.
struct Inputs final : at::ObserverContext {
  bool have_nan = false;
};

std::unique_ptr<at::ObserverContext> before_operator(const at::RecordFunction& function) {
  auto inputs = std::make_unique<Inputs>();
  if (watching == nullptr || !watching->operator_name.empty()) return inputs;
  // The checks are operators, too.
  const at::RecordFunctionGuard off(false);
  inputs->have_nan = any_nan(function.inputs());
  return inputs;
}

void after_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  if (watching == nullptr || !watching->operator_name.empty() || context == nullptr) return;
  if (static_cast<Inputs&>(*context).have_nan) return;
  const at::RecordFunctionGuard off(false);
  if (!any_nan(function.outputs())) return;
  watching->operator_name = function.name();
  watching->stack.resize(kMaxFrames);
  const int count = ::backtrace(const_cast<void**>(watching->stack.data()), kMaxFrames);
  watching->stack.resize(static_cast<std::size_t>(count));
}

}  // namespace

struct NanOrigin::Impl {
  Origin origin;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};

NanOrigin::NanOrigin() : impl_(std::make_unique<Impl>()) {
  if (watching != nullptr) throw std::logic_error("NanOrigin: this thread is observed already");
  watching = &impl_->origin;
  impl_->handle = at::addThreadLocalCallback(at::RecordFunctionCallback(before_operator, after_operator)
                                                 .needsInputs(true)
                                                 .needsOutputs(true)
                                                 .scopes({at::RecordScope::FUNCTION}));
}

NanOrigin::~NanOrigin() {
  at::removeCallback(impl_->handle);
  watching = nullptr;
}

std::string NanOrigin::text() const {
  const Origin& origin = impl_->origin;
  if (origin.operator_name.empty()) return "";
  std::string made = "NaN comes from " + origin.operator_name;
  const auto lines = source_lines(origin.stack);
  for (const void* const address : origin.stack) {
    const auto found = lines.find(address);
    // Lines of inlined calls are separated by semicolons, the innermost first.
    if (found != lines.end() && !found->second.empty())
      return made + " in " + found->second.substr(0, found->second.find(';'));
  }
  return made;
}

}  // namespace det
