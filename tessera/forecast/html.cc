#include "tessera/forecast/html.h"

#include <nlohmann/json.hpp>

#include "tessera/chip/figures.h"

namespace tessera::forecast {
namespace {

using Json = nlohmann::ordered_json;

// The page; its script draws what stands in the element "data".
constexpr std::string_view kHead = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1d2126; --soft: #5c6670; --line: #d9dde1; --accent: #2458b8;
  --kernel: #3f7fd0; --launch: #a9b4c0; --memory: #2f9e77; --conversion: #d9822b; --copy: #c2447a; --host: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1e2226; --ink: #e6e9ec; --soft: #9aa5b0; --line: #353c43; --accent: #7fabf5;
    --kernel: #5b97e6; --launch: #66717d; --memory: #45b98f; --conversion: #e59a4c; --copy: #de6d9b; --host: #ef6b62;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 16px; }
h1 { font-size: 1.4rem; margin: 8px 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 10px; }
p { margin: 0 0 10px; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px; margin: 14px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 14px 0; }
.figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; }
.figure b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: .82rem; }
.figure.bad b { color: var(--host); }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px; }
.pair section { margin: 0; }
@media (max-width: 800px) { .pair { grid-template-columns: minmax(0, 1fr); } main { padding: 10px; } }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; }
.key { display: flex; flex-wrap: wrap; gap: 4px 14px; color: var(--soft); font-size: .82rem; margin-top: 8px; }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; vertical-align: -1px; }
.cells { display: flex; flex-wrap: wrap; gap: 2px; }
.cells a { display: block; height: 22px; min-width: 10px; border-radius: 2px; }
.cells a.mark { outline: 2px solid var(--conversion); outline-offset: -1px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: 5px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; vertical-align: top; }
td.wide { white-space: normal; min-width: 180px; }
th { cursor: pointer; user-select: none; color: var(--soft); font-weight: 600; }
th[aria-sort=ascending]::after { content: " \25B2"; }
th[aria-sort=descending]::after { content: " \25BC"; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.hit td { background: color-mix(in srgb, var(--accent) 18%, transparent); }
input { font: inherit; width: 100%; max-width: 340px; padding: 7px 10px; margin-bottom: 10px; color: var(--ink);
  background: var(--page); border: 1px solid var(--line); border-radius: 6px; }
.tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--page); padding: 5px 8px; border-radius: 5px;
  font-size: .8rem; max-width: 300px; z-index: 2; display: none; overflow-wrap: anywhere; }
</style>
)page";

constexpr std::string_view kBody = R"page(
<main>
<h1 id="title"></h1>
<p id="subtitle"></p>
<div class="figures" id="figures"></div>
<section><h2>Timeline</h2><p>One bar an operator, in order, as wide as it is expected to take.</p>
<div id="timeline"></div><div class="key" id="kinds"></div></section>
<div class="pair">
<section><h2>Roofline</h2><p>Work per byte of device memory against rate reached; the size of a dot is the time.</p><div id="roofline"></div></section>
<section><h2>Layouts</h2><p>The layout of each operator's result, in order. Outlined: a conversion or a copy.</p>
<div class="cells" id="map"></div><div class="key" id="layouts"></div></section>
</div>
<section id="advice-box"><h2>What would help</h2><div class="scroll" id="advice"></div></section>
<section><h2>Operators</h2><input id="filter" placeholder="filter: a name, kernel, layout, bound ..." aria-label="Filter operators">
<div class="scroll" id="operators"></div></section>
<section id="moves-box"><h2>Conversions, copies and fallbacks</h2><div class="scroll" id="moves"></div></section>
</main>
<div class="tip" id="tip"></div>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const make = (tag, text, name) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
};
const svg = (tag, attributes) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
};
const us = s => (s * 1e6).toFixed(s < 1e-5 ? 2 : 1);
const time = s => s < 1e-3 ? us(s) + " us" : s < 1 ? (s * 1e3).toFixed(3) + " ms" : s.toFixed(3) + " s";
const bytes = b => {
  let p = 0;
  for (; b >= 1024 && p < 5; ++p) b /= 1024;
  return (p ? b.toFixed(b < 10 ? 2 : 1) : b.toFixed(0)) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][p];
};
const percent = x => (x * 100).toFixed(1) + " %";
const rows = data.operators, totals = data.totals;
const kind = r => r.kind !== "kernel" ? r.kind : r.bound_by === "launch" ? "launch" : data.memories.includes(r.bound_by) ? "memory" : "kernel";
const kinds = {kernel: "bound by a unit or engine", memory: "bound by memory", launch: "bound by its launch",
  conversion: "layout conversion", copy: "copy", host: "on the host"};
const label = r => `${r.op}${r.steps.length ? " + " + r.steps.join(" + ") : ""}`;
const tip = at("tip");
function tips(element, row) {
  element.addEventListener("pointermove", e => {
    tip.textContent = `${row.name}: ${label(row)}, ${row.kernel} on ${row.device}, ${time(row.seconds.expected)}, bound by ${row.bound_by}`;
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = e.clientY + 14 + "px";
  });
  element.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  element.addEventListener("click", () => show(row.number));
}
at("title").textContent = document.title = `${data.title} on ${data.chip}`;
at("subtitle").textContent = `${data.kernels} kernels, ${data.precision}, layouts: ${data.layout.mode}` +
  (data.layout.mode === "optimal" ? data.layout.optimal ? " (no other choice costs less)" : " (with a gap)" : "");
const figure = (value, name, bad) => {
  const f = make("div", undefined, bad ? "figure bad" : "figure");
  f.append(make("b", value), make("span", name));
  at("figures").append(f);
};
figure(time(totals.seconds.expected), `a step; ${time(totals.seconds.low)} to ${time(totals.seconds.high)}`);
figure(percent(totals.mfu), `of the peak in ${totals.peak_type || "any type"}`);
figure(bytes(totals.peak_bytes), `of ${bytes(totals.capacity)}: ${totals.fits ? "it fits" : "too much"}`, !totals.fits);
figure(percent(totals.conversion_share), `in ${totals.conversions} layout conversions`, totals.conversion_share > .02);
figure(percent(totals.launch_share), `launching ${totals.launches} kernels`);
figure(String(totals.fallback_nodes), `operators on the host, ${totals.copies} copies`, totals.fallback_nodes > 0);
figure(percent(totals.coverage_flops), "of the work on the chip");
{
  const width = at("timeline").clientWidth || 1200, height = 64, all = totals.seconds.expected || 1;
  const s = svg("svg", {viewBox: `0 0 ${width} ${height + 18}`, role: "img", "aria-label": "timeline"});
  let x = 0;
  for (const r of rows) {
    const w = r.seconds.expected / all * width;
    const bar = svg("rect", {x: x.toFixed(2), y: 0, width: Math.max(w - (w > 3 ? .6 : 0), .3).toFixed(2), height, style: `fill:var(--${kind(r)})`});
    tips(bar, r);
    s.append(bar);
    x += w;
  }
  const ticks = width < 600 ? 2 : 4;
  for (let k = 0; k <= ticks; ++k) {
    const t = svg("text", {x: k * width / ticks, y: height + 14, "text-anchor": k === 0 ? "start" : k === ticks ? "end" : "middle"});
    t.textContent = time(all * k / ticks);
    s.append(t);
  }
  at("timeline").append(s);
  for (const [name, text] of Object.entries(kinds)) {
    const part = rows.filter(r => kind(r) === name).reduce((sum, r) => sum + r.seconds.expected, 0) / all;
    if (part === 0) continue;
    const e = make("span", `${text}: ${percent(part)}`), i = make("i");
    i.style.background = `var(--${name})`;
    e.prepend(i);
    at("kinds").append(e);
  }
}
{
  const dots = rows.filter(r => r.flops > 0 && r.bytes > 0 && r.kind === "kernel");
  const width = at("roofline").clientWidth || 560, height = 330, left = 52, bottom = 34;
  const s = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline"});
  const xs = dots.map(r => r.flops / r.bytes), ys = dots.map(r => r.flops / r.seconds.expected);
  const ridge = data.peak / data.bandwidth;
  const low = v => Math.floor(Math.log10(v)), high = v => Math.ceil(Math.log10(v));
  const x0 = low(Math.min(...xs, ridge)), x1 = Math.max(high(Math.max(...xs, ridge * 2)), x0 + 1);
  const y1 = high(data.peak || Math.max(...ys, 1)), y0 = Math.min(low(Math.min(...ys, data.peak)), y1 - 2);
  const X = v => left + (Math.log10(v) - x0) / (x1 - x0) * (width - left - 10);
  const Y = v => height - bottom - (Math.log10(v) - y0) / (y1 - y0) * (height - bottom - 10);
  const line = (a, b, c, d, style) => s.append(svg("line", {x1: a, y1: b, x2: c, y2: d, style}));
  const write = (x, y, text, anchor) => {
    const t = svg("text", {x, y, "text-anchor": anchor});
    t.textContent = text;
    s.append(t);
  };
  const steps = (a, b) => Math.max(1, Math.ceil((b - a) / 8));
  for (let k = x0; k <= x1; k += steps(x0, x1)) {
    line(X(10 ** k), 10, X(10 ** k), height - bottom, "stroke:var(--line)");
    write(X(10 ** k), height - bottom + 15, k < 0 ? (10 ** k).toFixed(-k) : String(10 ** k), k === x0 ? "start" : k === x1 ? "end" : "middle");
  }
  const unit = k => 10 ** (k - 3 * Math.floor(k / 3)) + " " + (["", "k", "M", "G", "T", "P"][Math.floor(k / 3)] ?? "");
  for (let k = y0; k <= y1; k += steps(y0, y1)) {
    line(left, Y(10 ** k), width - 10, Y(10 ** k), "stroke:var(--line)");
    write(left - 5, Y(10 ** k) + 4, k < 0 ? `1e${k}` : unit(k), "end");
  }
  write(width - 10, height - 2, "operations per byte", "end");
  write(left, 9, "operations per second", "start");
  if (data.peak > 0 && data.bandwidth > 0) {
    const from = Math.max(10 ** x0, 10 ** y0 / data.bandwidth);
    line(X(from), Y(from * data.bandwidth), X(ridge), Y(data.peak), "stroke:var(--memory);stroke-width:2");
    line(X(ridge), Y(data.peak), X(10 ** x1), Y(data.peak), "stroke:var(--kernel);stroke-width:2");
  }
  dots.forEach((r, k) => {
    const radius = 2.5 + 9 * Math.sqrt(r.seconds.expected / (totals.seconds.expected || 1));
    const dot = svg("circle", {cx: X(xs[k]).toFixed(1), cy: Y(ys[k]).toFixed(1), r: radius.toFixed(1),
      style: `fill:var(--${kind(r)});fill-opacity:.6;stroke:var(--card)`});
    tips(dot, r);
    s.append(dot);
  });
  at("roofline").append(s);
}
{
  const names = [...new Set(rows.map(r => r.out[0] ?? "none"))];
  const colour = name => name === "ND" ? "var(--launch)" : name === "none" ? "var(--line)" : `hsl(${(names.indexOf(name) * 137 + 205) % 360} 55% 52%)`;
  const most = Math.max(...rows.map(r => r.seconds.expected));
  for (const r of rows) {
    const cell = make("a");
    cell.style.background = colour(r.out[0] ?? "none");
    cell.style.width = Math.max(10, 60 * r.seconds.expected / most) + "px";
    if (r.kind === "conversion" || r.kind === "copy") cell.className = "mark";
    tips(cell, r);
    at("map").append(cell);
  }
  for (const name of names) {
    const e = make("span", `${name}: ${rows.filter(r => (r.out[0] ?? "none") === name).length}`), i = make("i");
    i.style.background = colour(name);
    e.prepend(i);
    at("layouts").append(e);
  }
}
// Columns: heading, text of a row, number to sort by (or nothing).
function table(place, list, columns) {
  const t = make("table"), head = make("tr"), body = make("tbody");
  let sorted = -1, falling = false;
  const fill = () => {
    body.replaceChildren(...list.map(r => {
      const line = make("tr");
      if (r.number !== undefined) line.dataset.number = r.number;
      for (const [, text, number, wide] of columns) line.append(make("td", text(r), number ? "number" : wide ? "wide" : ""));
      return line;
    }));
  };
  columns.forEach(([name, text, number], k) => {
    const h = make("th", name, number ? "number" : "");
    h.tabIndex = 0;
    const sort = () => {
      falling = sorted === k ? !falling : Boolean(number);
      sorted = k;
      const key = number ?? text;
      list = [...list].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (falling ? -1 : 1));
      for (const other of head.children) other.removeAttribute("aria-sort");
      h.setAttribute("aria-sort", falling ? "descending" : "ascending");
      fill();
      if (place === "operators") filter();
    };
    h.addEventListener("click", sort);
    h.addEventListener("keydown", e => { if (e.key === "Enter") sort(); });
    head.append(h);
  });
  fill();
  const top = make("thead");
  top.append(head);
  t.append(top, body);
  at(place).append(t);
}
const padding = r => r.padding_bytes > 0 && r.operand_bytes > 0 ? r.padding_bytes / r.operand_bytes : 0;
function filter() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const line of at("operators").querySelectorAll("tbody tr"))
    line.hidden = !words.every(w => line.textContent.toLowerCase().includes(w));
}
function show(number) {
  at("filter").value = "";
  filter();
  for (const line of document.querySelectorAll("tr.hit")) line.classList.remove("hit");
  const line = at("operators").querySelector(`tr[data-number="${number}"]`);
  if (!line) return;
  line.classList.add("hit");
  line.scrollIntoView({block: "center"});
}
table("operators", rows, [
  ["#", r => String(r.number), r => r.number],
  ["operator", label, undefined, true],
  ["us", r => us(r.seconds.expected), r => r.seconds.expected],
  ["from", r => us(r.seconds.low), r => r.seconds.low],
  ["to", r => us(r.seconds.high), r => r.seconds.high],
  ["bound by", r => r.bound_by],
  ["kernel", r => r.kernel],
  ["layouts", r => `${r.in.slice(0, 3).join(", ")} \u2192 ${r.out.join(", ")}`],
  ["tile", r => r.tile],
  ["padding", r => padding(r) ? percent(padding(r)) : "", padding],
  ["MFLOP", r => (r.flops * 1e-6).toFixed(2), r => r.flops],
  ["device", r => r.device],
  ["source", r => r.name, undefined, true],
]);
at("filter").addEventListener("input", filter);
const moves = rows.filter(r => r.kind !== "kernel");
if (moves.length) table("moves", moves, [
  ["what", r => r.kind],
  ["source", r => r.name, undefined, true],
  ["operator", r => r.op],
  ["layouts", r => `${r.in.slice(0, 2).join(", ")} \u2192 ${r.out.join(", ")}`],
  ["us", r => us(r.seconds.expected), r => r.seconds.expected],
  ["bytes", r => bytes(r.conversion_bytes ?? 0), r => r.conversion_bytes ?? 0],
  ["why", r => r.reason ?? "", undefined, true],
]); else at("moves-box").hidden = true;
if (data.advice.length) table("advice", data.advice, [
  ["change", a => a.change, undefined, true],
  ["saves", a => time(a.saved), a => a.saved],
  ["then", a => time(a.after), a => a.after],
  ["because", a => a.why, undefined, true],
]); else at("advice-box").hidden = true;
</script>
</body>
</html>
)page";

// Inside of a script element nothing may end it.
std::string embedded(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
  return safe;
}

}  // namespace

std::string to_html(const Forecast& f, const std::vector<Advice>& advice,
                    const std::string& title) {
  const Json whole = Json::parse(to_json(f, -1));
  Json data{{"title", title},
            {"chip", f.options.device->name},
            {"kernels", whole["kernels"]},
            {"precision", f.options.precision
                              ? "in " + std::string(tessera::name_of(*f.options.precision))
                              : std::string("types as in the model")},
            {"layout", whole["layout"]},
            {"totals", whole["totals"]},
            {"operators", whole["operators"]}};
  for (size_t k = 0; k < f.rows.size(); ++k) {
    data["operators"][k].erase("origin");
    data["operators"][k]["operand_bytes"] = f.rows[k].operand_bytes;
  }
  double peak = 0;
  for (const chip::Peak& p : chip::peaks(*f.options.device))
    if (p.type == f.totals.peak_type) peak = std::max(peak, p.flops_per_second);
  data["peak"] = peak;
  data["bandwidth"] = f.options.device->bandwidth_of(f.options.device->device_memory());
  data["memories"] = Json::array({"memory"});
  for (const auto& [name, memory] : f.options.device->memory) data["memories"].push_back(name);
  data["advice"] = Json::array();
  for (const Advice& a : advice)
    data["advice"].push_back(
        {{"change", a.change}, {"why", a.why}, {"saved", a.saved.value}, {"after", a.after.value}});
  return fmt::format(
      "{}<title>Tessera</title>\n</head>\n<body>\n<script type=\"application/json\" "
      "id=\"data\">{}</script>{}",
      kHead, embedded(data), kBody);
}

}  // namespace tessera::forecast
