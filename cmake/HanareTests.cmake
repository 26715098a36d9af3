# SPDX-License-Identifier: Apache-2.0
#
# How tests are registered.  Labels: unit, integration, stress, model, fuzz, checks, install; `asan`
# in addition on what belongs to the quick sanitizer subset that `make test` builds and runs: unit
# tests and the API; `make test-sanitizers` runs all others, too.

# SIGSEGV and SIGBUS are Hanare's, and so are the alternate signal stacks: a sanitizer that unmaps
# "its" stack at thread exit would unmap ours.
set(no_signals "handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1:use_sigaltstack=0")
# Of a thread-local block that happens to begin 16 bytes into a page the leak check takes what is in
# front for a header of the C library's, and ends itself over it; without that it finds the blocks
# from the thread's own table.
set(asan "${no_signals}:detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0")
set(HANARE_TEST_ENVIRONMENT
  "ASAN_OPTIONS=${asan}"
  "UBSAN_OPTIONS=${no_signals}:print_stacktrace=1")
set(tsan "${no_signals}:halt_on_error=1:history_size=7:second_deadlock_stack=1")
find_program(HANARE_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
mark_as_advanced(HANARE_SYMBOLIZER)
if(HANARE_SYMBOLIZER)
  string(APPEND tsan ":external_symbolizer_path=${HANARE_SYMBOLIZER}")
endif()
list(APPEND HANARE_TEST_ENVIRONMENT "TSAN_OPTIONS=${tsan}")

# Builds the programs of all tests labelled `asan`, and nothing else.
add_custom_target(hanare_asan_tests)

# hanare_add_test(NAME name COMMAND command... LABELS label... [TARGET target] [TIMEOUT_S seconds]
#                 [ENVIRONMENT NAME=VALUE...] [WORKING_DIRECTORY directory] [SKIP_CODE code]
#                 [SERIAL])
# TARGET is the program under test, built with the `asan` subset when the test has that label.
# SKIP_CODE is the exit status that means "cannot run here, the output says why".
# SERIAL: the machine must be otherwise quiet (measures memory, fills the disk, needs all cores).
function(hanare_add_test)
  cmake_parse_arguments(ARG "SERIAL" "NAME;TARGET;TIMEOUT_S;WORKING_DIRECTORY;SKIP_CODE"
    "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_COMMAND OR NOT ARG_LABELS)
    message(FATAL_ERROR "hanare_add_test(${ARGN}): needs NAME, COMMAND and LABELS; "
                        "not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TIMEOUT_S)
    set(ARG_TIMEOUT_S 600)
  endif()
  if(NOT ARG_WORKING_DIRECTORY)
    set(ARG_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND} COMMAND_EXPAND_LISTS
    WORKING_DIRECTORY ${ARG_WORKING_DIRECTORY})
  set_tests_properties(${ARG_NAME} PROPERTIES
    LABELS "${ARG_LABELS}"
    TIMEOUT ${ARG_TIMEOUT_S}
    ENVIRONMENT "${HANARE_TEST_ENVIRONMENT};${ARG_ENVIRONMENT}"
    FIXTURES_REQUIRED machine)
  if(ARG_SERIAL)
    set_tests_properties(${ARG_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
  if(ARG_SKIP_CODE)
    set_tests_properties(${ARG_NAME} PROPERTIES SKIP_RETURN_CODE ${ARG_SKIP_CODE})
  endif()
  if(ARG_TARGET MATCHES "_test$")
    hanare_compiled_soon(${ARG_TARGET})
  endif()
  if(ARG_TARGET AND "asan" IN_LIST ARG_LABELS)
    add_dependencies(hanare_asan_tests ${ARG_TARGET})
  endif()
endfunction()
