#include <string>
#include <vector>

#include "tessera/cli/commands.h"

int main(int argc, char** argv) { return tessera::cli::dispatch({argv, argv + argc}); }
