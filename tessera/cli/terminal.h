// What people see: text and tables on stdout, errors and progress on stderr. Colours and progress
// on terminals only, colours never with NO_COLOR.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tessera/base/result.h"

namespace tessera::cli {

using Json = nlohmann::ordered_json;

// kResourceExhausted when stdout takes no more (disk full, closed pipe).
Status print_text(std::string_view text);
// With a newline behind it. Text that is not UTF-8 is replaced.
Status print_json(const Json& json);
void print_error(std::string_view text);

std::string bold(std::string_view text);
std::string red(std::string_view text);
std::string green(std::string_view text);
// On one of `kHues` backgrounds, counted around.
inline constexpr int kHues = 8;
std::string painted(std::string_view text, int64_t hue);
// Of the terminal, or of lines that suit a file.
int columns();

// Printable: control characters become "\x1b".
std::string visible(std::string_view text);

// Left-aligned columns; those of numbers are right-aligned. Cells are made visible.
class Table {
 public:
  // A heading that begins with '>' marks a column of numbers.
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string str() const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// A line "what ... 3 s" on a terminal's stderr, from the second second on until the scope ends.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void set(std::string what);

 private:
  void work(const std::stop_token& stop);
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::jthread thread_;
};

}  // namespace tessera::cli
