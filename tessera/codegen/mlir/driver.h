// The C interface of libtessera_mlir.so, the only part of Tessera that is linked against MLIR and
// LLVM: text of MLIR in, an object file out. It is opened when the first program is compiled.
#ifndef TESSERA_CODEGEN_MLIR_DRIVER_H
#define TESSERA_CODEGEN_MLIR_DRIVER_H

#include <stddef.h>

/* Changes with what is done to the text: code of another version is not this one's. */
#define TESSERA_MLIR_DRIVER_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Receives bytes, which are gone when it returns. */
typedef void (*tessera_mlir_sink)(void* context, const char* data, size_t size);

/* Compiles a module of the dialects llvm, scf, arith, math and vector for an x86-64 processor with
 * these features, as LLVM spells them: "+avx2,+fma". Gives an object file to `object` and returns
 * 0, or says what is wrong to `error` and returns 1. Thread-safe. */
typedef int (*tessera_mlir_compile_fn)(const char* text, size_t size, const char* features,
                                       void* context, tessera_mlir_sink object,
                                       tessera_mlir_sink error);
int tessera_mlir_compile(const char* text, size_t size, const char* features, void* context,
                         tessera_mlir_sink object, tessera_mlir_sink error);

/* The compiler's version: "LLVM 19.1.7". */
typedef const char* (*tessera_mlir_version_fn)(void);
const char* tessera_mlir_version(void);

#ifdef __cplusplus
}
#endif

#endif
