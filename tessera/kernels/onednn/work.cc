#include "tessera/kernels/onednn/work.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tessera::kernels::onednn {
namespace {

constexpr int64_t kMostItems = 8;
// Not to be preferred to our own kernels on a guess.
constexpr double kUnmeasured = 0.25, kMoreBytes = 1.25;

bool windowed(Kind kind) {
  return kind == Kind::kConv || kind == Kind::kAveragePool || kind == Kind::kAveragePoolPadding;
}

// Rows [from, to) of y along its first spatial axis, and the rows of x under them.
void cut_rows(Spec& s, int64_t from, int64_t to, int64_t& x_offset) {
  const auto a = static_cast<size_t>(3 - (s.rank - 2));
  const int64_t in = s.x.dims[2], span = (s.kernel[a] - 1) * s.dilation[a] + 1;
  const int64_t begin = from * s.stride[a] - s.pad[a],
                end = (to - 1) * s.stride[a] - s.pad[a] + span;
  const int64_t first = std::clamp<int64_t>(begin, 0, in), last = std::clamp<int64_t>(end, 0, in);
  s.pad[a] = first - begin;
  s.pad_end[a] = end - last;
  s.x.dims[2] = last - first;
  x_offset = first * s.x.strides[2];
}

// A batch of one has the stride of a packed one: oneDNN's kernels know layouts by all strides.
void pack_batch(Place& place, int64_t rank) {
  if (place.dims[0] != 1) return;
  place.strides[0] = 1;
  for (int64_t a = 1; a < rank; ++a)
    place.strides[0] = std::max(place.strides[0], place.dims[a] * place.strides[a]);
}

void cut_place(Place& place, int64_t axis, int64_t from, int64_t count, int64_t& offset) {
  if (place.dims[axis] == 1) return;
  offset = from * place.strides[axis];
  place.dims[axis] = count;
}

int64_t ranges_before_posts(const Spec& s) {
  return 2 + (s.weights_rank > 0) + s.has_scale + s.has_bias;
}

template <class T>
T* at(const tessera_launch* launch, int64_t range, int64_t offset) {
  return static_cast<T*>(launch->ranges[range].data) + offset;
}

// Axes of more than one element, the widest stride first, neighbours that lie as one merged.
struct Run {
  int rank = 0;
  int64_t dims[kMaxAxes] = {}, strides[kMaxAxes] = {};

  Run(const Place& place, int64_t axes) {
    std::vector<int64_t> order;
    for (int64_t a = 0; a < axes; ++a)
      if (place.dims[a] != 1) order.push_back(a);
    std::ranges::sort(order,
                      [&](int64_t a, int64_t b) { return place.strides[a] > place.strides[b]; });
    for (int64_t a : order) {
      const int64_t n = place.dims[a], step = place.strides[a];
      const bool merges = rank > 0 && strides[rank - 1] == n * step;
      if (merges) --rank;
      dims[rank] = merges ? dims[rank] * n : n;
      strides[rank++] = step;
    }
  }
};

void relu(float* y, const Run& run, int axis = 0) {
  if (axis == run.rank) {
    if (*y < 0) *y = 0;
    return;
  }
  const int64_t n = run.dims[axis], step = run.strides[axis];
  if (axis + 1 == run.rank && step == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] < 0 ? 0 : y[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) relu(y + i * step, run, axis + 1);
}

Status run_item(const tessera_launch* launch, const Work& work, int64_t index) {
  const Item item = item_of(work, index);
  TRY_ASSIGN(const auto primitive,
             Primitive::get(item.spec, work.spec.any_weights ? &work.weights : nullptr));
  Primitive::Data data = {};
  data.x = at<const float>(launch, 0, item.x);
  auto* y = at<float>(launch, 1, item.y);
  data.y = y;
  int64_t range = 2;
  if (item.spec.weights_rank > 0) data.w = at<const float>(launch, range++, item.w);
  if (item.spec.has_scale) data.scale = at<const float>(launch, range++, 0);
  if (item.spec.has_bias) data.bias = at<const float>(launch, range++, 0);
  for (int64_t i = 0; i < item.spec.posts; ++i)
    data.posts[i] = at<const float>(launch, item.spec.post[i].range, item.posts[i]);
  TRY(primitive->run(data));
  if (work.relu) relu(y, Run(item.spec.y, item.spec.rank));
  return {};
}

}  // namespace

Item item_of(const Work& work, int64_t index) {
  Item item;
  std::memset(static_cast<void*>(&item), 0, sizeof item);
  item.spec = work.spec;
  if (work.items == 1) return item;
  Spec& s = item.spec;
  const int64_t all = s.y.dims[work.axis], from = index * work.step,
                count = std::min(work.step, all - from);
  if (windowed(s.kind) && work.axis == 2)
    cut_rows(s, from, from + count, item.x);
  else
    cut_place(s.x, work.axis, from, count, item.x);
  cut_place(s.y, work.axis, from, count, item.y);
  if (s.kind == Kind::kDot && work.axis < s.rank - 2)
    cut_place(s.w, work.axis, from, count, item.w);
  for (int64_t i = 0; i < s.posts; ++i)
    cut_place(s.post[i].operand, work.axis, from, count, item.posts[i]);
  pack_batch(s.x, s.rank);
  pack_batch(s.y, s.rank);
  for (int64_t i = 0; i < s.posts; ++i) pack_batch(s.post[i].operand, s.rank);
  return item;
}

void cut_images(Work& work, double work_in_all, double least) {
  const Spec& s = work.spec;
  const bool rows = s.x.dims[0] == 1 && s.x.strides[1] == 1 && s.y.strides[1] == 1;
  cut(work, rows ? 2 : 0, work_in_all, least);
}

void cut(Work& work, int64_t axis, double work_in_all, double least) {
  const int64_t all = work.spec.y.dims[axis];
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(work_in_all / least), 1,
                                             std::min(kMostItems, std::max<int64_t>(all, 1)));
  work.axis = axis;
  work.step = cpu::ceil_div(all, wanted);
  work.items = cpu::ceil_div(all, std::max<int64_t>(work.step, 1));
  // No item may see padding alone.
  for (int64_t i = 0; i < work.items; ++i)
    if (item_of(work, i).spec.x.dims[axis] < 1) {
      work.step = all;
      work.items = 1;
    }
}

std::optional<Place> place_of(const Operand& o, int64_t rank) {
  const auto strides = cpu::logical_strides(o);
  if (!strides || rank > kMaxAxes || o.rank() > rank) return std::nullopt;
  Place place = {};
  const int64_t lead = rank - o.rank();
  for (int64_t a = rank; a-- > 0;) {
    const auto i = static_cast<size_t>(a - lead);
    place.dims[a] = a < lead ? 1 : o.dims[i];
    place.strides[a] =
        a < lead ? (a + 1 < rank ? place.dims[a + 1] * place.strides[a + 1] : 1) : (*strides)[i];
  }
  return place;
}

void add_steps(const Problem& p, Work& work, Reason& why) {
  if (!p.fused() || !why.fine()) return;
  Spec& s = work.spec;
  const auto count = std::ssize(p.steps);
  why.need(count <= kMaxPostOps, "{} steps, need at most {}", count, kMaxPostOps);
  why.need(p.results.size() == 1 && p.results[0] == std::ssize(p.in) + count,
           "another result than the last leaves the group");
  int64_t range = ranges_before_posts(s);
  for (int64_t i = 0; why.fine() && i < count; ++i) {
    const op::Step& step = p.steps[static_cast<size_t>(i)];
    const int64_t before = std::ssize(p.in) + i;
    if (i + 1 == count && step.op->name == "relu") {
      work.relu = 1;
      return;
    }
    const bool add = step.op->name == "add";
    if (!why.need((add || step.op->name == "mul") && step.in.size() == 2,
                  "step {} is {}, need add, mul or, as the last, relu", i, step.op->name))
      return;
    const int other = step.in[step.in[0] == before ? 1 : 0];
    why.need((step.in[0] == before) != (step.in[1] == before),
             "step {} does not read the result once", i);
    if (!why.need(other >= 0 && other < std::ssize(p.in), "step {} reads value {}, need an input",
                  i, other))
      return;
    const Operand& o = p.in[static_cast<size_t>(other)];
    why.need(o.dtype == DType::kF32 && o.present, "step {} reads {}, need f32", i,
             name_of(o.dtype));
    const auto place = place_of(o, s.rank);
    if (!why.need(place.has_value() && step.out.dims == p.anchor_result().dims,
                  "step {} reads layout '{}'", i, o.layout))
      return;
    PostOp& post = s.post[s.posts++];
    post.kind = add ? PostKind::kAdd : PostKind::kMul;
    post.range = range++;
    post.rank = s.rank;
    post.operand = *place;
  }
}

void settle(Work& work, Reason& why) {
  if (!why.fine()) return;
  for (int64_t i = 0; i < work.items; ++i) {
    const bool packed = work.spec.any_weights != 0;
    const auto made =
        Primitive::get(item_of(work, i).spec, packed && i > 0 ? &work.weights : nullptr);
    if (!why.need(made.has_value(), "{}", made ? "" : made.error().message)) return;
    if (packed && i == 0)
      std::memcpy(static_cast<void*>(&work.weights), &(*made)->weights(), sizeof work.weights);
  }
}

Claim offer(const Problem& p, const Work& work, double flops, NumericClass numeric) {
  Claim c = cpu::claim(flops, kMoreBytes * cpu::bytes_of(p), kUnmeasured, numeric);
  if (work.spec.any_weights)
    c.packed.push_back(
        {1, Bytes(static_cast<int64_t>(library()->dnnl_memory_desc_get_size(&work.weights)))});
  return c;
}

Result<std::vector<LaunchSpec>> launches(const Problem& p, const Work& work) {
  std::vector<LaunchSpec> list;
  if (p.out[0].count() == 0) return list;
  const Spec& s = work.spec;
  LaunchSpec launch;
  launch.entry = "onednn.run";
  launch.grid = static_cast<uint32_t>(work.items);
  launch.arguments = {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}};
  if (s.any_weights)
    launch.arguments.push_back({Argument::kPacked, 0, 0});
  else if (s.weights_rank > 0)
    launch.arguments.push_back({Argument::kInput, 1, 0});
  if (s.has_scale) launch.arguments.push_back({Argument::kInput, 1, 0});
  if (s.has_bias) launch.arguments.push_back({Argument::kInput, 2, 0});
  for (size_t i = 0; i < static_cast<size_t>(s.posts); ++i) {
    const int before = static_cast<int>(p.in.size() + i);
    const op::Step& step = p.steps[i];
    launch.arguments.push_back({Argument::kInput, step.in[step.in[0] == before ? 1 : 0], 0});
  }
  for (int64_t i = 0; i < work.items; ++i) {
    TRY_ASSIGN(const auto primitive,
               Primitive::get(item_of(work, i).spec, s.any_weights ? &work.weights : nullptr));
    TRY(primitive->compile());
  }
  launch.set_constants(work);
  list.push_back(std::move(launch));
  return list;
}

void run(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& work = *static_cast<const Work*>(launch->constants);
  for (uint32_t i = first; i < first + count; ++i)
    if (const Status done = run_item(launch, work, i); !done)
      return launch->fail(launch, done.error().message.c_str());
}

}  // namespace tessera::kernels::onednn
