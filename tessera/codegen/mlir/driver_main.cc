// MLIR and LLVM by their C interfaces: parse, lower to the LLVM dialect, translate, optimise, emit.
#include <mutex>
#include <string>

#include "llvm-c/Analysis.h"
#include "llvm-c/Core.h"
#include "llvm-c/Target.h"
#include "llvm-c/TargetMachine.h"
#include "llvm-c/Transforms/PassBuilder.h"
#include "mlir-c/Conversion.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/LLVM.h"
#include "mlir-c/Dialect/Math.h"
#include "mlir-c/Dialect/SCF.h"
#include "mlir-c/Dialect/Vector.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "mlir-c/RegisterEverything.h"
#include "mlir-c/Support.h"
#include "mlir-c/Target/LLVMIR.h"
#include "tessera/codegen/mlir/driver.h"

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kLowering =
    "builtin.module(convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,"
    "convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)";
// The code is in vectors already: what is left is to clean up and to move what does not vary out of
// loops.
constexpr const char* kOptimizations =
    "function(simplifycfg,early-cse<memssa>,instcombine,loop-mssa(licm),early-cse,"
    "simplifycfg)";

void register_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    mlirRegisterConversionPasses();
  });
}

// Texts of diagnostics, one a line.
struct Log {
  std::string text;
  static void append(MlirStringRef part, void* log) {
    static_cast<Log*>(log)->text.append(part.data, part.length);
  }
  static MlirLogicalResult hear(MlirDiagnostic diagnostic, void* log) {
    if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError) {
      mlirDiagnosticPrint(diagnostic, append, log);
      static_cast<Log*>(log)->text += '\n';
    }
    return mlirLogicalResultSuccess();
  }
};

// Calls its function when it goes out of scope.
template <class F>
struct Finally {
  F run;
  explicit Finally(F f) : run(f) {}
  ~Finally() { run(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;
};

MlirStringRef text_of(const char* data, size_t size) { return {data, size}; }
MlirStringRef text_of(const char* text) { return mlirStringRefCreateFromCString(text); }

// A module of LLVM's, or null with the reason in the log.
LLVMModuleRef translate(MlirContext context, MlirStringRef text, LLVMContextRef llvm, Log& log) {
  const MlirModule module = mlirModuleCreateParse(context, text);
  if (mlirModuleIsNull(module)) return nullptr;
  const Finally destroy([&] { mlirModuleDestroy(module); });
  const MlirPassManager passes = mlirPassManagerCreate(context);
  const Finally drop([&] { mlirPassManagerDestroy(passes); });
  mlirPassManagerEnableVerifier(passes, false);
  if (mlirLogicalResultIsFailure(mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(passes),
                                                       text_of(kLowering), Log::append, &log)))
    return nullptr;
  const MlirOperation operation = mlirModuleGetOperation(module);
  if (mlirLogicalResultIsFailure(mlirPassManagerRunOnOp(passes, operation))) return nullptr;
  return mlirTranslateModuleToLLVMIR(operation, llvm);
}

LLVMTargetMachineRef machine_for(const char* features, Log& log) {
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(kTriple, &target, &message)) {
    log.text += message;
    LLVMDisposeMessage(message);
    return nullptr;
  }
  return LLVMCreateTargetMachine(target, kTriple, "x86-64", features, LLVMCodeGenLevelDefault,
                                 LLVMRelocPIC, LLVMCodeModelSmall);
}

// An object file, or null with the reason in the log.
LLVMMemoryBufferRef emit(LLVMModuleRef module, LLVMTargetMachineRef machine, Log& log) {
  LLVMSetTarget(module, kTriple);
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef failed = LLVMRunPasses(module, kOptimizations, machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (failed) {
    char* message = LLVMGetErrorMessage(failed);
    log.text += message;
    LLVMDisposeErrorMessage(message);
    return nullptr;
  }
  LLVMMemoryBufferRef buffer = nullptr;
  char* message = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &buffer)) {
    log.text += message;
    LLVMDisposeMessage(message);
    return nullptr;
  }
  return buffer;
}

LLVMMemoryBufferRef compile(MlirStringRef text, const char* features, Log& log) {
  register_once();
  const MlirContext context = mlirContextCreateWithThreading(false);
  const Finally destroy([&] { mlirContextDestroy(context); });
  mlirContextAttachDiagnosticHandler(context, Log::hear, &log, nullptr);
  for (const MlirDialectHandle dialect :
       {mlirGetDialectHandle__llvm__(), mlirGetDialectHandle__scf__(),
        mlirGetDialectHandle__arith__(), mlirGetDialectHandle__math__(),
        mlirGetDialectHandle__vector__()})
    mlirDialectHandleLoadDialect(dialect, context);
  mlirRegisterAllLLVMTranslations(context);
  const LLVMContextRef llvm = LLVMContextCreate();
  const Finally drop([&] { LLVMContextDispose(llvm); });
  LLVMModuleRef module = translate(context, text, llvm, log);
  if (!module) return nullptr;
  const Finally dispose([&] { LLVMDisposeModule(module); });
  const LLVMTargetMachineRef machine = machine_for(features, log);
  if (!machine) return nullptr;
  const Finally release([&] { LLVMDisposeTargetMachine(machine); });
  return emit(module, machine, log);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int tessera_mlir_compile(
    const char* text, size_t size, const char* features, void* context, tessera_mlir_sink object,
    tessera_mlir_sink error) {
  Log log;
  const LLVMMemoryBufferRef buffer = compile(text_of(text, size), features, log);
  if (!buffer) {
    if (log.text.empty()) log.text = "MLIR gives no reason";
    error(context, log.text.data(), log.text.size());
    return 1;
  }
  object(context, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return 0;
}

extern "C" __attribute__((visibility("default"))) const char* tessera_mlir_version() {
  static const std::string text = [] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return "LLVM " + std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(patch);
  }();
  return text.c_str();
}
