// Subcommands and their options. CLI11, which parses them, costs seconds in every source that
// includes it, so that only arguments.cc does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera::cli {

// A handle; each setter returns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& type_name(const std::string& name);  // in the help, for the value: MODEL
  Option& required(bool yes = true);
  Option& shows_default();              // the variable's value now, in the help
  Option& one_value_each();             // of a list: --dim a=1 --dim b=2
  Option& in_range(int low, int high);  // inclusive
  Option& one_of(const std::vector<std::string>& values);
  Option& positive();
  Option& non_negative();

 private:
  CLI::Option* option_;
};

// A subcommand; a handle. Variables are written when the line is parsed and outlive that. A name
// without dashes is positional.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  Option option(const std::string& name, std::string& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& name, int& value, const std::string& help);
  Option option(const std::string& name, double& value, const std::string& help);
  Option option(const std::string& name, std::optional<uint64_t>& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  Option find(const std::string& name) const;  // one that is there
  void footer(const std::string& text);        // of the help

 private:
  CLI::App* app_;
};

// The program's line.
class Parser {
 public:
  Parser(const std::string& name, const std::string& version, const std::string& description,
         const std::string& footer);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Verb verb(const std::string& name, const std::string& help);
  bool has(const std::string& verb) const;

  // Which of the verbs, in the order of their making, the line asks for.
  struct Chosen {
    size_t verb = 0;
  };
  // Help or the version was asked for and printed.
  struct Done {
    int exit_code = 0;
  };
  struct Wrong {
    std::string message;
    std::string verb;  // whose options are wrong; empty: none was reached
  };
  using Parsed = std::variant<Chosen, Done, Wrong>;
  Parsed parse(const std::vector<std::string>& arguments);  // without the program's name

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<CLI::App*> verbs_;
};

}  // namespace tessera::cli
