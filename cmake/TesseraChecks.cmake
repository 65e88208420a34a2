# Checks of the whole tree as tests beside those of the modules. The slow ones need what `./x test` prepares: the venv and
# the models in it. Each is here if its script is.

if(NOT TESSERA_TESTS OR TESSERA_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(tessera_venv_python ${CMAKE_SOURCE_DIR}/build/venv/bin/python)

# tessera_check(NAME LABEL COMMAND...): the script is the second word of the command.
function(tessera_check name label python script)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${script})
    add_test(NAME ${name} COMMAND ${python} ${CMAKE_SOURCE_DIR}/${script} ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 3000 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()

tessera_check(layers fast ${Python3_EXECUTABLE} tools/check_layers.py)
tessera_check(layers.test fast ${Python3_EXECUTABLE} tools/check_layers_test.py)
tessera_check(cli.end_to_end fast ${Python3_EXECUTABLE} tools/cli_test.py $<TARGET_FILE:tessera>)
tessera_check(accuracy fast ${Python3_EXECUTABLE} tools/accuracy.py --tessera $<TARGET_FILE:tessera>)
tessera_check(install fast ${Python3_EXECUTABLE} tools/install_test.py ${CMAKE_BINARY_DIR} ${CMAKE_COMMAND})
# numpy is in the venv.
if(TESSERA_PYTHON)
  tessera_check(python slow ${tessera_venv_python} python/tests/test_tessera.py)
  set_tests_properties(python PROPERTIES ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python")
  tessera_check(python.wheel slow ${tessera_venv_python} tools/wheel_test.py)
endif()
# The slow ones use all processors by themselves.
cmake_host_system_information(RESULT tessera_processors QUERY NUMBER_OF_LOGICAL_CORES)
tessera_check(conformance slow ${tessera_venv_python} tools/conformance.py)
tessera_check(models slow ${tessera_venv_python} tools/models.py)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  tessera_check(guard slow ${tessera_venv_python} tools/guard.py)
endif()
tessera_check(models.all all ${tessera_venv_python} tools/models.py --all)
foreach(name python.wheel conformance models models.all)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES PROCESSORS ${tessera_processors})
  endif()
endforeach()
