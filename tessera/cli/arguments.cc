#include "tessera/cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace tessera::cli {

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::required(bool yes) {
  option_->required(yes);
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::in_range(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::non_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option Verb::option(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::option(const std::string& name, std::vector<std::string>& value,
                    const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::option(const std::string& name, int& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::option(const std::string& name, double& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::option(const std::string& name, std::optional<uint64_t>& value,
                    const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option Verb::find(const std::string& name) const { return Option(app_->get_option(name)); }

void Verb::footer(const std::string& text) { app_->footer(text); }

Parser::Parser(const std::string& name, const std::string& version, const std::string& description,
               const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->footer(footer);
}

Parser::~Parser() = default;

Verb Parser::verb(const std::string& name, const std::string& help) {
  verbs_.push_back(app_->add_subcommand(name, help));
  return Verb(verbs_.back());
}

bool Parser::has(const std::string& verb) const {
  return std::ranges::any_of(verbs_, [&](const CLI::App* v) { return v->get_name() == verb; });
}

Parser::Parsed Parser::parse(const std::vector<std::string>& arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& e) {
    return Done{app_->exit(e)};
  } catch (const CLI::ParseError& e) {
    const auto used = app_->get_subcommands();
    return Wrong{e.what(), used.empty() ? "" : used.front()->get_name()};
  }
  Chosen chosen;
  while (!verbs_[chosen.verb]->parsed()) ++chosen.verb;
  return chosen;
}

}  // namespace tessera::cli
