// tessera layout: how a tensor lies in memory, in any format.
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/cli/commands.h"
#include "tessera/cli/layout_text.h"
#include "tessera/cli/terminal.h"
#include "tessera/layout/formats.h"
#include "tessera/layout/runs.h"
#include "tessera/layout/view.h"
#include "tessera/layout/xla.h"
#include "tessera/op/type.h"

namespace tessera::cli {
namespace {

using layout::BoundLayout;
using layout::FormatInfo;
using layout::FormatRequest;

constexpr int64_t kOrder = 1024;  // places listed in JSON

struct LayoutArguments {
  std::string type, to, from, letters, svg, dtype = "f16";
  int groups = 1, input = 0, hidden = 0, rows = 32;
  bool list = false, json = false;
};

// What was asked for, bound.
struct Asked {
  FormatRequest request;
  std::string to_text, from_text;  // as written; empty: row-major
  BoundLayout to, from;
};

std::string type_text(const FormatRequest& r) {
  return fmt::format("{}[{}]", name_of(r.dtype), fmt::join(r.extents, ","));
}

// The tensor's type; of XLA's notation also its layout.
Result<FormatRequest> request_of(const LayoutArguments& a, std::string* to) {
  FormatRequest request{
      .letters = a.letters, .groups = a.groups, .input = a.input, .hidden = a.hidden};
  if (layout::is_xla(a.type)) {
    TRY_ASSIGN(const layout::XlaLayout xla, layout::parse_xla(a.type));
    if (!xla.dtype)
      return error(Code::kInvalidArgument, "'{}' is no type with sizes, as f16[20,28]{{1,0}}",
                   a.type);
    request.dtype = *xla.dtype;
    request.extents = xla.extents;
    if (to->empty()) *to = a.type.substr(a.type.find('{'));
    return request;
  }
  auto type = op::Type::parse(a.type);
  if (!type) return error(std::move(type).error().at(fmt::format("type '{}'", a.type)));
  if (!type->is_tensor() || !type->is_static() || type->dtype == DType::kString)
    return error(Code::kInvalidArgument, "'{}' is no type with sizes, as f16[20,28]", a.type);
  request.dtype = type->dtype;
  request.extents = type->dims();
  return request;
}

Result<BoundLayout> bound(const std::string& text, const FormatRequest& request,
                          std::string_view letters, std::string_view option) {
  const auto bind = [&]() -> Result<BoundLayout> {
    TRY_ASSIGN(const layout::Layout parsed, layout::layout_from(text, request, letters));
    return BoundLayout::bind(parsed, request.dtype, request.extents);
  };
  auto result = bind();
  if (!result)
    return error(std::move(result).error().at(
        fmt::format("{} '{}' of {}", option, text, type_text(request))));
  return result;
}

Result<Asked> asked(const LayoutArguments& a) {
  std::string to_text = a.to;
  TRY_ASSIGN(const FormatRequest request, request_of(a, &to_text));
  if (to_text.empty())
    return error(Code::kInvalidArgument,
                 "--to is missing: a format (tessera layout --list), an expression as "
                 "'mn: n/16 m/16 m%16 n%16', or XLA's '{{1,0:T(8,128)}}'");
  // An expression without letters has those of the other side.
  std::string letters;
  if (const auto other = layout::layout_from(a.from, request); !a.from.empty() && other)
    letters = other->letters();
  TRY_ASSIGN(const BoundLayout to, bound(to_text, request, letters, "--to"));
  std::string from_text = a.from;
  if (from_text.empty()) {
    const layout::Layout rows = layout::Layout::plain(request.dtype, to.layout().rank());
    from_text =
        layout::Layout::make(to.layout().letters(), {rows.axes().begin(), rows.axes().end()})
            ->to_string();
  }
  TRY_ASSIGN(const BoundLayout from, bound(from_text, request, to.layout().letters(), "--from"));
  return Asked{request, to_text, a.from, to, from};
}

// ---- figures

double tax(const BoundLayout& layout) {
  const double own = static_cast<double>(layout.elements()) * layout.bits() / 8;
  return own > 0 ? static_cast<double>(layout.bytes().value) / own : 1;
}

std::vector<std::string> axis_texts(const BoundLayout& b) {
  std::vector<std::string> texts;
  for (const layout::Expr& axis : b.layout().axes())
    texts.push_back(layout::Layout::make(b.layout().letters(), {axis})->expression());
  return texts;
}

Json json_of(const BoundLayout& b, const std::string& text) {
  Json axes = Json::array();
  const std::vector<std::string> texts = axis_texts(b);
  for (size_t i = 0; i < texts.size(); ++i)
    axes.push_back(
        {{"axis", texts[i]}, {"size", b.physical_extents()[i]}, {"stride", b.strides()[i]}});
  Json j{{"layout", b.layout().to_string()}};
  if (!text.empty()) j["name"] = text;
  j["shape"] = std::vector<int64_t>(b.physical_extents().begin(), b.physical_extents().end());
  j["axes"] = std::move(axes);
  j["places"] = b.places();
  j["padding"] = b.padding();
  j["bytes"] = b.bytes().value;
  j["tax"] = tax(b);
  return j;
}

Json order_json(const BoundLayout& b) {
  Json order = Json::array();
  for (const int64_t element : layout::order_of(b, kOrder))
    order.push_back(element == layout::Picture::kPadding ? Json() : Json(element));
  return order;
}

Result<Json> json_of(const Asked& a) {
  TRY_ASSIGN(const layout::Runs runs, layout::runs_of(a.from, a.to));
  TRY_ASSIGN(const bool same, layout::same_places(a.from, a.to));
  TRY_ASSIGN(const auto names, layout::matching_formats(a.to, a.request));
  return Json{{"schema", "tessera.layout/1"},
              {"type", type_text(a.request)},
              {"elements", a.to.elements()},
              {"to", json_of(a.to, a.to_text)},
              {"from", json_of(a.from, a.from_text)},
              {"formats", names},
              {"same_places", same},
              {"conversion",
               {{"read_bytes", runs.read.value},
                {"written_bytes", runs.written.value},
                {"run_bytes", runs.common}}},
              {"order", order_json(a.to)}};
}

std::string figures(const Asked& a, const layout::Runs& runs, bool same,
                    const std::vector<std::string_view>& names) {
  const BoundLayout& b = a.to;
  const FormatInfo* named = layout::find_format(a.to_text);
  std::string text =
      fmt::format("{} as {}{}\n\n", type_text(a.request),
                  named ? fmt::format("{}, ", named->name) : "", b.layout().to_string());
  Table axes({"physical axis", ">size", ">stride"});
  const std::vector<std::string> texts = axis_texts(b);
  for (size_t i = 0; i < texts.size(); ++i)
    axes.add({texts[i], std::to_string(b.physical_extents()[i]), std::to_string(b.strides()[i])});
  if (!axes.empty()) text += axes.str() + "\n";
  text += fmt::format("{} elements in {} places, {} of them padding\n", b.elements(), b.places(),
                      b.padding());
  text += fmt::format("{} B, layout tax {:.2f}\n", b.bytes().value, tax(b));
  if (!names.empty()) text += fmt::format("the same as {}\n", fmt::join(names, ", "));
  const std::string from = a.from.layout().to_string();
  if (same)
    text += fmt::format("from {}: the same places, nothing to move\n", from);
  else
    text += fmt::format("from {}: {} B read, {} B written, {:g} B in a row on both sides\n", from,
                        runs.read.value, runs.written.value, runs.common);
  return text;
}

Result<std::string> report(const Asked& a, int rows) {
  TRY_ASSIGN(const layout::Runs runs, layout::runs_of(a.from, a.to));
  TRY_ASSIGN(const bool same, layout::same_places(a.from, a.to));
  TRY_ASSIGN(const auto names, layout::matching_formats(a.to, a.request));
  std::string text = figures(a, runs, same, names);
  if (rows == 0 || a.to.elements() == 0) return text;
  const int width = columns();
  return text + "\n" + text_of(layout::picture_of(a.to, limits_for(width, rows)), width);
}

// ---- the list

struct Listed {
  const FormatInfo* format = nullptr;
  std::string refused = {};                          // empty: taken
  std::optional<BoundLayout> layout = std::nullopt;  // of the request or of a sample
};

Result<std::vector<Listed>> listed(const LayoutArguments& a) {
  std::optional<FormatRequest> request;
  const auto dtype = dtype_from_name(a.dtype);
  if (!dtype) return error(Code::kInvalidArgument, "--dtype '{}' is no element type", a.dtype);
  if (!a.type.empty()) {
    std::string unused;
    TRY_ASSIGN(request, request_of(a, &unused));
  }
  std::vector<Listed> list;
  for (const FormatInfo& format : layout::formats()) {
    Listed row{.format = &format};
    const FormatRequest r = request ? *request : layout::sample_request(format, *dtype);
    const auto made = layout::format_layout(format.name, r);
    if (!made) {
      row.refused = made.error().message;
    } else if (auto b = BoundLayout::bind(*made, r.dtype, r.extents)) {
      row.layout = *std::move(b);
    } else {
      row.refused = b.error().message;
    }
    // Formats that do not take the tensor's type are left out.
    if (!request || row.layout) list.push_back(std::move(row));
  }
  return list;
}

Json json_of(const Listed& row) {
  Json j{{"name", row.format->name}};
  if (!row.format->alias.empty()) j["alias"] = row.format->alias;
  if (row.format->acl_format >= 0) j["acl_format"] = row.format->acl_format;
  j["letters"] = row.format->letters;
  j["batched"] = row.format->batched;
  j["summary"] = row.format->summary;
  if (row.layout) {
    j["layout"] = row.layout->layout().to_string();
    j["extents"] = std::vector<int64_t>(row.layout->extents().begin(), row.layout->extents().end());
    j["shape"] = std::vector<int64_t>(row.layout->physical_extents().begin(),
                                      row.layout->physical_extents().end());
    j["tax"] = tax(*row.layout);
  } else {
    j["refused"] = row.refused;
  }
  return j;
}

Status print_list(const LayoutArguments& a) {
  TRY_ASSIGN(const auto list, listed(a));
  if (a.json) {
    Json formats = Json::array();
    for (const Listed& row : list) formats.push_back(json_of(row));
    return print_json({{"schema", "tessera.layout/1"}, {"formats", std::move(formats)}});
  }
  Table table({"format", "also", "expression", "of", "is", ">tax", ">acl", "for"});
  for (const Listed& row : list) {
    const auto dims = [](std::span<const int64_t> sizes) {
      return fmt::format("{}", fmt::join(sizes, " x "));
    };
    table.add({std::string(row.format->name), std::string(row.format->alias),
               row.layout ? row.layout->layout().to_string() : row.refused,
               row.layout ? dims(row.layout->extents()) : "",
               row.layout ? dims(row.layout->physical_extents()) : "",
               row.layout ? fmt::format("{:.2f}", tax(*row.layout)) : "",
               row.format->acl_format < 0 ? "" : std::to_string(row.format->acl_format),
               std::string(row.format->summary)});
  }
  return print_text(table.str());
}

Status print_layout(const LayoutArguments& a) {
  if (a.type.empty())
    return error(Code::kInvalidArgument, "TYPE is missing, as f16[20,28]; --list shows formats");
  TRY_ASSIGN(const Asked what, asked(a));
  if (!a.svg.empty()) {
    const std::string title =
        fmt::format("{} as {}", type_text(what.request), what.to.layout().to_string());
    TRY(write_file(a.svg, layout::to_svg(layout::picture_of(what.to), title)));
  }
  if (a.json) {
    TRY_ASSIGN(const Json json, json_of(what));
    return print_json(json);
  }
  TRY_ASSIGN(const std::string text, report(what, a.rows));
  return print_text(text);
}

}  // namespace

Job layout_command(Parser& parser) {
  Verb verb = parser.verb("layout", "Show how a tensor lies in memory, in any chip's format");
  auto a = std::make_shared<LayoutArguments>();
  verb.option("type", a->type,
              "Type with sizes, as f16[20,28]; also XLA's f16[20,28]{1,0:T(8,128)}")
      .type_name("TYPE");
  verb.option("--to", a->to, "Format, expression, or XLA's notation").type_name("LAYOUT");
  verb.option("--from", a->from, "What it is made from; row-major if not said").type_name("LAYOUT");
  verb.option("--letters", a->letters, "Logical axes in order, in the format's letters: nhwc")
      .type_name("LETTERS");
  verb.option("--groups", a->groups, "Of the convolution, for FRACTAL_Z").type_name("N").positive();
  verb.option("--input", a->input, "Input size, for the RNN formats").type_name("N").non_negative();
  verb.option("--hidden", a->hidden, "Hidden size, for the RNN formats")
      .type_name("N")
      .non_negative();
  verb.option("--rows", a->rows, "Most rows of each picture; 0: no picture")
      .type_name("N")
      .shows_default()
      .in_range(0, 100000);
  verb.option("--svg", a->svg, "Write the picture to a file").type_name("FILE");
  verb.flag("--list", a->list, "List the formats; with TYPE, those that take it");
  verb.option("--dtype", a->dtype, "Element type of the list without TYPE")
      .type_name("DTYPE")
      .shows_default();
  verb.flag("--json", a->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  tessera layout 'f16[20,28]' --to nz\n  tessera layout 'f16[4,4]' --to "
      "'mn: n/2 m/2 m%2 n%2'\n  tessera layout 'bf16[20,300]{1,0:T(8,128)(2,1)}' --svg tiles.svg\n"
      "  tessera layout 'f16[1,3,224,224]' --list");
  return {[a]() -> Result<int> {
    TRY(a->list ? print_list(*a) : print_layout(*a));
    return kFine;
  }};
}

}  // namespace tessera::cli
