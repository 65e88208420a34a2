#include <string>
#include <vector>

#include "tessera/cli/commands.h"
#include "tessera/cli/process.h"

int main(int argc, char** argv) {
  tessera::cli::mark_start();
  return tessera::cli::dispatch({argv, argv + argc});
}
