// Values as people and files see them: figures, file names, expected answers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/cli/terminal.h"
#include "tessera/op/tensor.h"

namespace tessera::cli {

struct Figures {
  std::optional<double> min, max, mean;  // of the numbers that are not NaN; none if there are none
  int64_t nan = 0, inf = 0;
};
// Of strings: nothing. Complex numbers count by their absolute value.
Figures figures(const op::Tensor& tensor);

// A name as a file's, without ending: letters, digits, '_', '-', '+' and inner dots stand for
// themselves, other bytes are
// "%xx". One-to-one up to 180 bytes; longer ones end in "%%" and a hash. Neither '#' nor '@' nor
// '/' is in it.
std::string file_stem(std::string_view name);

// Writes values to a folder, each tensor to a file of its own: .npy, or a TensorProto .pb for types
// that numpy lacks. The items of a sequence get "#0", "#1", ... behind the stem. Without a folder
// it only describes.
class ValueWriter {
 public:
  // Makes the folder unless `folder` is empty.
  static Result<ValueWriter> make(std::string folder);
  // {"name", "dtype", "shape", "file", "min", "max", "mean", "nan", "inf"}, or {"name", "items"} of
  // a sequence, or
  // {"name", "value"} of an optional. "file" is relative to the folder. A value of the same name
  // gets "@1" behind the stem.
  Result<Json> write(const op::Value& value, const std::string& name);

 private:
  explicit ValueWriter(std::string folder) : folder_(std::move(folder)) {}
  Result<Json> write(const op::Value& value, const std::string& name, const std::string& stem);
  // What an earlier run left under a name that would now mean something else.
  void remove_stale(const std::string& stem, const std::string& keep) const;
  std::string folder_;
  std::set<std::string> used_;
};

// Rows for a table of what write() described: name, type, shape, min, max, mean, NaN, Inf, file.
Table table_of(const Json& outputs);

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

struct Difference {
  int64_t count = 0, mismatched = 0;
  double max_absolute = 0, max_relative = 0;
  std::string
      first;  // the first mismatch, or in what else the values differ: "at [0,3]: 1.5, expected 2"
  bool equal() const { return mismatched == 0 && first.empty(); }
};
// |actual - expected| <= absolute + relative * |expected| for each number; NaN equals NaN, strings
// must be equal.
Difference compare(const op::Value& actual, const op::Value& expected, const Tolerance& tolerance);

// What the folder has for this output: named as ValueWriter does, else output_<index>.pb.
// kNotFound.
Result<op::Value> read_expected(const std::string& folder, const std::string& name, size_t index,
                                const op::Type& type);

}  // namespace tessera::cli
