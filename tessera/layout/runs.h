// What it takes to write a tensor anew in another layout, whoever does it: the bytes of both sides,
// and how long the pieces are in which memory is read and written.
//
//   nothing staged   pieces are what follows each other on both sides
//   a buffer         a tile is put together in it: it is read in runs of the source and written in
//                    runs of the target, both as long as the buffer allows
#pragma once

#include "tessera/base/result.h"
#include "tessera/base/units.h"
#include "tessera/layout/bound.h"

namespace tessera::layout {

struct Runs {
  Bytes elements;          // of the elements alone
  Bytes read, written;     // of both sides, padding included
  double common = 0;       // mean bytes of pieces that follow each other on both sides; of sub-byte
                           // types possibly below 1
  double read_run = 0;     // bytes read in a row, at least `common`, at most `elements`
  double written_run = 0;  // bytes written in a row, padding within a run included
};

// `staged`: bytes of the buffer in which tiles are put together; 0: there is none.
// kInvalidArgument if dtype or extents differ. Layouts that do not come apart into boxes (xor,
// segments) are sampled, and take no advantage of a buffer.
Result<Runs> runs_of(const BoundLayout& from, const BoundLayout& to, Bytes staged = Bytes(0));

}  // namespace tessera::layout
