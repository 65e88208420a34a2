#include "tessera/passes/relu.h"

#include "tessera/passes/algebra.h"

namespace tessera::passes {
namespace {

bool rule(Site& at) {
  if (at.is("relu")) return at.producer(at.in(0), "relu") && at.replace(at.in(0), "relu of relu");
  if (!at.is("max")) return false;
  for (size_t side : {1, 0})
    if (number(at, at.in(side)) == 0.0)
      return at.replace(at.build().unary("relu", at.in(1 - side)), "max with 0");
  return false;
}

}  // namespace

void relu(Rewriter& rewriter) { rewriter.walk(rule); }

}  // namespace tessera::passes
