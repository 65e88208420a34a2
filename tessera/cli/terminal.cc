#include "tessera/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

namespace tessera::cli {
namespace {

std::string styled(std::string_view text, std::string_view style) {
  static const bool colours = [] {
    const char* no = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) && !(no && *no) && !(term && std::string_view(term) == "dumb");
  }();
  return colours ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : std::string(text);
}

// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Status print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return error(Code::kResourceExhausted, "cannot write to the standard output: {}",
                 std::strerror(errno));
  return {};
}

Status print_json(const Json& json) {
  return print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string bold(std::string_view text) { return styled(text, "1"); }
std::string red(std::string_view text) { return styled(text, "31"); }
std::string green(std::string_view text) { return styled(text, "32"); }

std::string painted(std::string_view text, int64_t hue) {
  constexpr std::array<std::string_view, kHues> kStyles{"30;48;5;153", "30;48;5;223", "30;48;5;157",
                                                        "30;48;5;218", "30;48;5;189", "30;48;5;229",
                                                        "30;48;5;159", "30;48;5;252"};
  return styled(text, kStyles[static_cast<size_t>(hue) % kHues]);
}

int columns() {
  constexpr int kInFiles = 100;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kInFiles;
}

std::string visible(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = visible(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < headings_.size(); ++c) {
    widths.push_back(width_of(headings_[c]));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string room(widths[c] - width_of(cells[c]), ' ');
      out += right_[c] ? room + cells[c] : cells[c] + room;
      out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::string out = bold(line(headings_)) + "\n";
  for (const auto& row : rows_) out += line(row) + "\n";
  return out;
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (::isatty(STDERR_FILENO))
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Progress::set(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::work(const std::stop_token& stop) {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (auto wait = 1000ms;; wait = 200ms) {
    wake_.wait_for(lock, stop, wait, [] { return false; });
    if (stop.stop_requested()) break;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
    print_error(fmt::format("\r\x1b[K{} ... {} s", visible(what_), seconds.count()));
    shown = true;
  }
  if (shown) print_error("\r\x1b[K");
}

}  // namespace tessera::cli
