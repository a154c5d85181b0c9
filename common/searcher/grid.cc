#include "common/searcher/grid.h"

#include <algorithm>
#include <cmath>

#include "common/searcher/full_training.h"

namespace det::searcher {
namespace {

using expconf::Hyperparameter;
using Type = Hyperparameter::Type;

/// Number of values of an axis; 0 for a range without `count`. An int range has no more values than integers.
std::int64_t axis_size(const Hyperparameter& leaf) {
  if (leaf.type == Type::kCategorical) return static_cast<std::int64_t>(leaf.values.size());
  if (!leaf.count) return 0;
  if (leaf.type != Type::kInt) return *leaf.count;
  const auto ints = static_cast<std::uint64_t>(leaf.int_max) - static_cast<std::uint64_t>(leaf.int_min);
  return ints < static_cast<std::uint64_t>(*leaf.count) ? static_cast<std::int64_t>(ints) + 1 : *leaf.count;
}

/// Number `index` of `size` evenly spaced numbers from low to high; the middle if size is 1.
double spaced(double low, double high, std::int64_t index, std::int64_t size) {
  if (size == 1) return low + (high - low) / 2;
  return low + static_cast<double>(index) * (high - low) / static_cast<double>(size - 1);
}

/// The values along one axis.
std::vector<Sample::Value> axis(const Hyperparameter& leaf) {
  std::vector<Sample::Value> values(static_cast<std::size_t>(axis_size(leaf)));
  const auto size = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < size; ++i) {
    Sample::Value& value = values[static_cast<std::size_t>(i)];
    if (leaf.type == Type::kCategorical)
      value.whole = i;
    else if (leaf.type == Type::kDouble)
      value.real = spaced(leaf.min, leaf.max, i, size);
    else if (leaf.type == Type::kLog)
      value.real = std::pow(leaf.base, spaced(leaf.min, leaf.max, i, size));
    else
      value.whole =
          std::llround(spaced(static_cast<double>(leaf.int_min), static_cast<double>(leaf.int_max), i, size));
  }
  return values;
}

/// Reports every range without `count`.
void without_count(const expconf::HyperparameterMap& space, const std::string& prefix,
                   std::vector<Problem>& problems) {
  for (const auto& [name, parameter] : space) {
    const std::string path = prefix + "." + name;
    if (parameter.type == Type::kNested)
      without_count(parameter.children, path, problems);
    else if (parameter.type != Type::kConst && axis_size(parameter) == 0)
      problems.push_back({"E-CFG-MISSING", path, "grid search is in use but count was not provided"});
  }
}

class GridSearch final : public FullTraining {
 public:
  GridSearch(std::int64_t concurrency, std::vector<std::vector<Sample::Value>> axes)
      : FullTraining(concurrency), axes_(std::move(axes)), size_(grid_size(axes_)) {}
  Status check_more_trials() const override {
    return fail(
        Code::kFailedPrecondition,
        "a grid search has tried every point of its grid; give it more max_time, or create one with more");
  }

 protected:
  /// Takes points from the end of the product. A failed or invalid point is not replaced.
  bool create_next(MethodContext& context) override {
    if (context.book().created() >= size_) return false;
    context.create(grid_point(axes_, size_ - 1 - context.book().created()));
    return true;
  }
  std::int64_t total(const Book& book) const override { return size_ - book.count(TrialState::kInvalidHp); }

 private:
  std::vector<std::vector<Sample::Value>> axes_;
  std::int64_t size_;
};

}  // namespace

Result<std::vector<std::vector<Sample::Value>>> grid_axes(const expconf::HyperparameterMap& space) {
  std::vector<Problem> problems;
  without_count(space, "hyperparameters", problems);
  if (!problems.empty()) return fail(std::move(problems));
  std::int64_t points = 1;
  for (const Hyperparameter* leaf : leaves(space)) {
    // Divided, not multiplied: the product of the axis sizes may exceed 64 bits.
    if (axis_size(*leaf) > kMaxGridPoints / points)
      return fail({Problem{
          "E-CFG-LIMIT", "hyperparameters",
          "the grid has more than " + std::to_string(kMaxGridPoints) + " points; lower the counts"}});
    points *= axis_size(*leaf);
  }
  std::vector<std::vector<Sample::Value>> axes;
  for (const Hyperparameter* leaf : leaves(space)) axes.push_back(axis(*leaf));
  return axes;
}

std::int64_t grid_size(const std::vector<std::vector<Sample::Value>>& axes) {
  std::int64_t size = 1;
  for (const auto& values : axes) size *= static_cast<std::int64_t>(values.size());
  return size;
}

Sample grid_point(const std::vector<std::vector<Sample::Value>>& axes, std::int64_t index) {
  Sample sample;
  sample.values.resize(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const auto size = static_cast<std::int64_t>(axes[i].size());
    sample.values[i] = axes[i][static_cast<std::size_t>(index % size)];
    index /= size;
  }
  return sample;
}

Result<std::unique_ptr<SearchMethod>> make_grid(const expconf::ExperimentConfig& config) {
  TRY_ASSIGN(auto axes, grid_axes(config.hyperparameters));
  return std::make_unique<GridSearch>(config.searcher.max_concurrent_trials, std::move(axes));
}

}  // namespace det::searcher
