#include "tessera/layout/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;

BoundLayout bound(std::string_view text, Index extents, DType dtype = DType::kF16) {
  const Result<Layout> layout = Layout::parse(text);
  EXPECT_TRUE(layout) << layout.error().message;
  const Result<BoundLayout> result = BoundLayout::bind(*layout, dtype, extents);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

std::string refusal(std::string_view text, Index extents, DType dtype = DType::kF16) {
  const Result<Layout> layout = Layout::parse(text);
  if (!layout) return layout.error().message;
  const Result<BoundLayout> result = BoundLayout::bind(*layout, dtype, extents);
  return result ? "" : result.error().message;
}

Index to_vector(std::span<const int64_t> s) { return {s.begin(), s.end()}; }

// The meaning of an expression, written a second time and simply: what the graph must agree with.
struct Plain {
  std::span<const int64_t> extents;

  int64_t size(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::kLetter:
        return extents[static_cast<size_t>(e.axis)];
      case ExprKind::kMerge: {
        int64_t product = 1;
        for (const Expr& arg : e.args) product *= size(arg);
        return product;
      }
      case ExprKind::kJoin:
        return extents[static_cast<size_t>(e.axis)];
      case ExprKind::kXor: {
        int64_t largest = 0;
        for (const Expr& arg : e.args) {
          if (size(arg) == 0) return 0;
          largest = std::max(largest, size(arg));
        }
        int64_t power = 1;
        while (power < largest) power *= 2;
        return power;
      }
      case ExprKind::kDiv: {
        if (const Expr* j = joined(e)) {
          int64_t sum = 0;
          for (const Segment& s : j->segments) sum += ceil_chain(e, s.hi - s.lo);
          return sum;
        }
        return (size(e.args[0]) + e.by - 1) / e.by;
      }
      case ExprKind::kMod:
        return e.by;
    }
    return -1;
  }

  int64_t value(const Expr& e, const Index& i) const {
    switch (e.kind) {
      case ExprKind::kLetter:
        return i[static_cast<size_t>(e.axis)];
      case ExprKind::kMerge: {
        int64_t sum = 0;
        for (const Expr& arg : e.args) sum = sum * size(arg) + value(arg, i);
        return sum;
      }
      case ExprKind::kXor: {
        int64_t sum = 0;
        for (const Expr& arg : e.args) sum ^= value(arg, i);
        return sum;
      }
      case ExprKind::kJoin:
      case ExprKind::kDiv:
        if (const Expr* j = joined(e)) {
          int64_t base = 0;
          for (const Segment& s : j->segments) {
            const int64_t x = i[static_cast<size_t>(j->axis)];
            if (x >= s.lo && x < s.hi) return base + floor_chain(e, x - s.lo);
            base += ceil_chain(e, s.hi - s.lo);
          }
        }
        return value(e.args[0], i) / e.by;
      case ExprKind::kMod: {
        if (const Expr* j = joined(e.args[0]))
          for (const Segment& s : j->segments) {
            const int64_t x = i[static_cast<size_t>(j->axis)];
            if (x >= s.lo && x < s.hi) return floor_chain(e.args[0], x - s.lo) % e.by;
          }
        return value(e.args[0], i) % e.by;
      }
    }
    return -1;
  }

  // The join below a chain of divisions.
  static const Expr* joined(const Expr& e) {
    const Expr* x = &e;
    while (x->kind == ExprKind::kDiv) x = &x->args[0];
    return x->kind == ExprKind::kJoin ? x : nullptr;
  }
  static int64_t ceil_chain(const Expr& e, int64_t length) {
    return e.kind == ExprKind::kJoin ? length : (ceil_chain(e.args[0], length) + e.by - 1) / e.by;
  }
  static int64_t floor_chain(const Expr& e, int64_t x) {
    return e.kind == ExprKind::kJoin ? x : floor_chain(e.args[0], x) / e.by;
  }
};

TEST(BoundLayout, SizesOfTheKnownExamples) {
  const BoundLayout nz = bound("mn: n/16 m/16 m%16 n%16", {20, 28});
  EXPECT_EQ(to_vector(nz.physical_extents()), (Index{2, 2, 16, 16}));
  EXPECT_EQ(to_vector(nz.strides()), (Index{512, 256, 16, 1}));
  EXPECT_EQ(nz.elements(), 560);
  EXPECT_EQ(nz.padding(), 1024 - 560);
  EXPECT_EQ(nz.bytes(), Bytes(2048));
  EXPECT_EQ(nz.offset(Index{1, 0}), 16);
  EXPECT_EQ(nz.offset(Index{16, 16}), 512 + 256);
  EXPECT_EQ(nz.contiguous_run(1), 16);
  EXPECT_EQ(nz.contiguous_run(0), 1);
  EXPECT_EQ(nz.contiguous_run(), 4);

  const BoundLayout rows = bound("nchw: n c h w", {2, 3, 4, 5});
  EXPECT_EQ(rows.contiguous_run(), 120);
  EXPECT_EQ(rows.contiguous_run(3), 5);
  EXPECT_EQ(rows.padding(), 0);
  EXPECT_EQ(bound("nchw: n h w c", {2, 3, 4, 5}).contiguous_run(1), 3);
  EXPECT_EQ(bound("ab: a b", {0, 5}).bytes(), Bytes(0));
  EXPECT_EQ(bound(": ", {}).elements(), 1);
  EXPECT_EQ(bound(": ", {}).offset(Index{}), 0);
}

TEST(BoundLayout, SubByteRowsStartOnAByte) {
  const BoundLayout rows = bound("mn: m n", {3, 5}, DType::kI4);
  EXPECT_EQ(to_vector(rows.strides()), (Index{6, 1}));
  EXPECT_EQ(rows.bytes(), Bytes(9));
  EXPECT_EQ(bound("mn: (m n)", {3, 5}, DType::kI4).bytes(), Bytes(8));
  EXPECT_EQ(bound("mn: m n", {3, 5}, DType::kU2).bytes(), Bytes(6));
  EXPECT_EQ(bound("mn: m n", {3, 5}, DType::kF4E2M1).offset(Index{2, 4}), 16);
}

TEST(BoundLayout, ExplicitStrides) {
  const Layout rows = Layout::row_major(2);
  const Index extents = {3, 4};
  const auto bind = [&](int64_t offset, Index strides) {
    return BoundLayout::bind(Stored{.layout = rows, .offset = offset, .strides = strides},
                             DType::kF32, extents);
  };
  EXPECT_EQ(bind(2, {10, 1})->offset(Index{1, 1}), 13);
  EXPECT_EQ(bind(2, {10, 1})->bytes(), Bytes(4 * 26));
  EXPECT_FALSE(bind(2, {10, 1})->is_packed());
  EXPECT_TRUE(bind(2, {4, 1})->is_packed());
  EXPECT_EQ(bind(3, {4, -1})->offset(Index{0, 3}), 0);
  EXPECT_EQ(bind(3, {4, -1})->element_at(0), (Index{0, 3}));
  EXPECT_EQ(bind(2, {10, 1})->element_at(7), std::nullopt);
  EXPECT_EQ(bind(0, {4, -1}).error().code, Code::kOutOfRange);
  EXPECT_EQ(bind(-1, {4, 1}).error().code, Code::kOutOfRange);
  EXPECT_EQ(bind(0, {0, 1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(bind(0, {3, 1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(bind(0, {1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(bind(0, {int64_t{1} << 61, 1}).error().code, Code::kOutOfRange);
  EXPECT_EQ(bind(0, {INT64_MIN, 1}).error().code, Code::kOutOfRange);
}

TEST(BoundLayout, RefusesWhatHasNoSinglePlace) {
  const std::pair<std::string, std::pair<const char*, Index>> cases[] = {
      {"'n', extent 5", {"mn: m", {3, 5}}},
      {"'c', extent 5", {"nc: n c%4", {3, 5}}},
      {"'m'", {"mn: m%2 n", {3, 5}}},
      {"'m'", {"mn: m^n", {4, 4}}},
      {"'m'", {"mn: m/4 m%2 n", {8, 4}}},
      {"extents for the", {"mn: m n", {3}}},
      {"negative", {"mn: m n", {3, -1}}},
      {"segments hold 5", {"m: m[0:2]|m[2:5]", {6}}},
      {"segments hold 5", {"m: m[0:2]|m[3:6]", {6}}},
      {"2^62", {"mn: m n", {int64_t{1} << 40, int64_t{1} << 40}}},
      {"2^62", {"m: m/4 m%9223372036854775807", {5}}},
      {"2^62", {"m: (m m%4611686018427387904 m%4611686018427387904)", {5}}},
      {"2^62", {"m: m^m%2 m%2", {(int64_t{1} << 62) + 1}}},
  };
  for (const auto& [reason, layout] : cases) {
    const std::string message = refusal(layout.first, layout.second);
    EXPECT_NE(message.find(reason), std::string::npos) << layout.first << ": " << message;
  }
  EXPECT_NE(refusal("m: m", {3}, DType::kString), "");
  EXPECT_EQ(refusal("mn: m", {3, 1}), "");
  EXPECT_EQ(refusal("nc: n c%4", {3, 3}), "");
}

TEST(BoundLayout, AcceptsRedundantAndNestedForms) {
  const std::pair<const char*, Index> cases[] = {
      {"m: m/32 m/16%2 m%16", {100}},
      {"m: m/32 m%32/16 m%16", {100}},
      {"m: m/15 m%15/4 m%15%4", {100}},
      {"m: m/30 m%30/15 m%15", {100}},
      {"m: m/4 m%8", {31}},
      {"mn: (m n)/7 (m n)%7", {5, 6}},
      {"mn: (m n)/12 (m n)%12", {5, 6}},
      {"mn: (m n)/3 (m n)%3", {5, 6}},
      {"mn: (m n/4)/3 (m n/4)%3 n%4", {5, 9}},
      {"hwc: (h w c%4)/16 (h w c%4)%16", {3, 5, 3}},
      {"mn: m (n/8)^(m%8) n%8", {20, 64}},
      {"m: (m[0:5]|m[5:12])/4 (m[0:5]|m[5:12])%4", {12}},
      {"m: (m[5:12]|m[0:5])/4/2 (m[5:12]|m[0:5])/4%2 (m[5:12]|m[0:5])%4", {12}},
      {"m: (m[0:5]|m[5:12])/8 (m[0:5]|m[5:12])%8/2 (m[0:5]|m[5:12])%2", {12}},
      {"bm: (b m[0:5]|m[5:12])/4 (b m[0:5]|m[5:12])%4", {1, 12}},
      {"bm: (b m[0:5]|m[5:12])/4 (b m[0:5]|m[5:12])%4", {3, 12}},
      {"c: c/4 c%4 c%4", {10}},
      {"b: (b%3)^(b/6) b/3", {12}},
      {"b: (b/4)^(b%2) b%4", {12}},
      {"b: (b/12%2)^(b%12/4) b%12 b/24%3", {24}},
  };
  for (const auto& [text, extents] : cases) EXPECT_EQ(refusal(text, extents), "") << text;
}

// @post i != j => offset(i) != offset(j);  element_at(offset(i)) == i;  nullopt at every other
// place
void check_places(const BoundLayout& b) {
  std::map<int64_t, Index> at;
  for_each_index(b.extents(), [&](const Index& i) {
    const int64_t offset = b.offset(i);
    ASSERT_TRUE(at.emplace(offset, i).second) << "two elements at " << offset;
    ASSERT_GE(offset, 0);
    ASSERT_LE((offset + 1) * b.bits(), b.bytes().value * 8);
  });
  ASSERT_EQ(static_cast<int64_t>(at.size()), b.elements());
  for (int64_t offset = -1; offset <= b.bytes().value * 8 / b.bits(); ++offset) {
    const auto it = at.find(offset);
    ASSERT_EQ(b.element_at(offset), it == at.end() ? std::nullopt : std::optional(it->second))
        << "offset " << offset;
  }
}

// offset(i) is the sum of stride times value over the physical axes, as Plain understands them.
void check_meaning(const BoundLayout& b) {
  const Plain plain{b.extents()};
  Index sizes;
  for (const Expr& axis : b.layout().axes()) sizes.push_back(plain.size(axis));
  ASSERT_EQ(to_vector(b.physical_extents()), sizes);
  for_each_index(b.extents(), [&](const Index& i) {
    int64_t offset = b.offset();
    for (size_t a = 0; a < sizes.size(); ++a)
      offset += plain.value(b.layout().axes()[a], i) * b.strides()[a];
    ASSERT_EQ(b.offset(i), offset);
  });
}

// offset(index + t e_axis) == start + t stride for 0 <= t < length
void check_lines(const BoundLayout& b) {
  for (int axis = 0; axis < static_cast<int>(b.extents().size()); ++axis)
    for_each_index(b.extents(), [&](const Index& i) {
      const BoundLayout::Line line = b.line(i, axis);
      ASSERT_GE(line.length, 1);
      ASSERT_LE(i[static_cast<size_t>(axis)] + line.length, b.extents()[static_cast<size_t>(axis)]);
      Index j = i;
      for (int64_t t = 0; t < line.length; ++t, ++j[static_cast<size_t>(axis)])
        ASSERT_EQ(b.offset(j), line.start + t * line.stride);
    });
}

// i[axis] % contiguous_run(axis) != 0 => offset(i) == offset(i - e_axis) + 1, and no larger number
// does; k % contiguous_run() != 0 => offset(k-th) == offset((k-1)-th) + 1
void check_runs(const BoundLayout& b) {
  for (size_t axis = 0; axis < b.extents().size(); ++axis) {
    const int64_t run = b.contiguous_run(static_cast<int>(axis));
    std::set<int64_t> breaks;
    for_each_index(b.extents(), [&](const Index& i) {
      Index j = i;
      if (--j[axis] >= 0 && b.offset(i) != b.offset(j) + 1) breaks.insert(i[axis]);
    });
    for (const int64_t at : breaks) ASSERT_EQ(at % run, 0);
    if (b.elements() == 0) continue;
    for (int64_t larger = run + 1; larger <= b.extents()[axis]; ++larger)
      ASSERT_TRUE(
          std::any_of(breaks.begin(), breaks.end(), [&](int64_t at) { return at % larger != 0; }));
  }
  const int64_t run = b.contiguous_run();
  int64_t k = 0;
  int64_t last = 0;
  for_each_index(b.extents(), [&](const Index& i) {
    const int64_t offset = b.offset(i);
    ASSERT_TRUE(k % run == 0 || offset == last + 1) << "element " << k << ", run " << run;
    last = offset;
    ++k;
  });
}

// Without mixing, the offset is a sum over axes.
void check_mixing(const BoundLayout& b) {
  if (b.elements() == 0 || b.extents().size() != 2 || b.mixes(0, 1)) return;
  const Index zero(b.extents().size());
  for_each_index(b.extents(), [&](const Index& i) {
    Index first = zero;
    Index second = i;
    first[0] = i[0];
    second[0] = 0;
    ASSERT_EQ(b.offset(i) - b.offset(zero),
              b.offset(first) + b.offset(second) - 2 * b.offset(zero));
  });
}

// @post offset(i) == offset(0) + sum of digit.value(i)
void check_digits(const BoundLayout& b, int* known) {
  const auto digits = b.digits();
  if (!digits) return;
  ++*known;
  const Index zero(b.extents().size());
  for_each_index(b.extents(), [&](const Index& i) {
    int64_t offset = b.offset(zero);
    for (const BoundLayout::Digit& digit : *digits) offset += digit.value(i, b.extents());
    ASSERT_EQ(offset, b.offset(i));
  });
}

TEST(BoundLayout, LawsHoldForRandomLayouts) {
  RandomLayouts random(7);
  int bound_count = 0, with_digits = 0;
  for (int round = 0; round < 1500; ++round) {
    const Index extents = random.extents(random.below(4));
    const Layout layout = random.layout(extents);
    const Result<BoundLayout> b = BoundLayout::bind(layout, random.dtype(), extents);
    SCOPED_TRACE(layout.to_string() + " of " + fmt::format("{}", fmt::join(extents, "x")));
    ASSERT_TRUE(b) << b.error().message;
    if (b->places() > 20000) continue;
    ++bound_count;
    check_meaning(*b);
    check_places(*b);
    check_lines(*b);
    check_runs(*b);
    check_mixing(*b);
    check_digits(*b, &with_digits);
    const Result<Layout> again = Layout::parse(layout.to_string());
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*again, layout);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(bound_count, 1000);
  EXPECT_GT(with_digits, 500);
}

TEST(BoundLayout, HugeExtentsAreQuick) {
  const int64_t n = int64_t{1} << 56;
  const BoundLayout b = bound("mn: n/16 m n%16", {2, n}, DType::kI8);
  EXPECT_EQ(b.offset(Index{1, n - 1}), 2 * n - 1);
  EXPECT_EQ(b.element_at(2 * n - 1), (Index{1, n - 1}));
  EXPECT_GE(b.contiguous_run(1), 1);
  EXPECT_EQ(bound("m: m", {n}, DType::kI8).contiguous_run(), n);
}

}  // namespace
}  // namespace tessera::layout
