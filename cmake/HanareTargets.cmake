# SPDX-License-Identifier: Apache-2.0
#
# One static target per folder of src/, each linking only the folders it may include, and the
# shared library made of all of them.

add_library(hanare_options INTERFACE)
target_compile_features(hanare_options INTERFACE c_std_11 cxx_std_23)
target_compile_options(hanare_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion
  $<$<BOOL:${HANARE_WERROR}>:-Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_include_directories(hanare_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(hanare_options INTERFACE Threads::Threads)
target_compile_definitions(hanare_options INTERFACE
  _GNU_SOURCE HANARE_VERSION="${PROJECT_VERSION}"
  $<$<OR:$<CONFIG:Debug>,$<BOOL:${HANARE_CHECKED}>>:HANARE_CHECK_LOCK_RANKS>)

# A check that cannot fail is worth nothing: the analysis must object to a field read without its
# lock.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  file(WRITE ${PROJECT_BINARY_DIR}/unlocked.cpp [[
    #include "base/thread_annotations.hpp"
    struct HANARE_CAPABILITY("lock") Lock {};
    struct Counter { Lock lock; int value HANARE_GUARDED_BY(lock) = 0; };
    int read(Counter& counter) { return counter.value; }
  ]])
  try_compile(HANARE_UNLOCKED_COMPILES ${PROJECT_BINARY_DIR}/unlocked ${PROJECT_BINARY_DIR}/unlocked.cpp
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/src -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY
    COMPILE_DEFINITIONS -Wthread-safety -Werror OUTPUT_VARIABLE unlocked_output)
  if(HANARE_UNLOCKED_COMPILES OR NOT unlocked_output MATCHES "requires holding")
    message(FATAL_ERROR "hanare: -Wthread-safety does not find an unlocked access:\n"
                        "${unlocked_output}")
  endif()
endif()

# Whether there is a C library to link statically; sanitizers need the shared one.
file(WRITE ${PROJECT_BINARY_DIR}/static_program.cpp "int main() {}")
try_compile(HANARE_STATIC_PROGRAMS ${PROJECT_BINARY_DIR}/static_program
  ${PROJECT_BINARY_DIR}/static_program.cpp LINK_OPTIONS -static)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(HANARE_STATIC_PROGRAMS OFF)
endif()

# hanare_compiled_soon(TARGET): what is built more often than it runs long, as tests.  Functions have
# their names in stack traces, and lines.
function(hanare_compiled_soon target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1;-g1>)
endfunction()

# hanare_precompile_test(TARGET): what all unit tests include is read once (HANARE_PRECOMPILED_TESTS), a
# third of the time of compiling them under sanitizers.
function(hanare_precompile_test target)
  if(NOT HANARE_PRECOMPILED_TESTS)
    return()
  endif()
  get_property(first GLOBAL PROPERTY HANARE_PRECOMPILED_TEST)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h> <atomic> <memory> <string> <vector>)
    set_property(GLOBAL PROPERTY HANARE_PRECOMPILED_TEST ${target})
  endif()
endfunction()

set_property(GLOBAL PROPERTY HANARE_LAYERS "")

# hanare_layer(NAME [SERIAL_TESTS] DEPENDS LAYER...): library hanare_NAME from src/NAME/**.cpp and,
# from the *_test.cpp beside them, the test program hanare_NAME_test.
function(hanare_layer name)
  cmake_parse_arguments(ARG "SERIAL_TESTS" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    file(WRITE ${PROJECT_BINARY_DIR}/generated/${name}_empty.cpp "")
    set(sources ${PROJECT_BINARY_DIR}/generated/${name}_empty.cpp)
  endif()
  add_library(hanare_${name} STATIC ${sources})
  set_target_properties(hanare_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(hanare_${name} PUBLIC hanare_options)
  # The library that programs load holds only what it uses.
  target_compile_options(hanare_${name} PRIVATE -ffunction-sections -fdata-sections)
  foreach(layer IN LISTS ARG_DEPENDS)
    target_link_libraries(hanare_${name} PUBLIC hanare_${layer})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HANARE_LAYERS ${name})
  if(HANARE_BUILD_TESTS AND tests)
    add_executable(hanare_${name}_test ${tests})
    target_link_libraries(hanare_${name}_test PRIVATE hanare_${name} GTest::gtest_main)
    hanare_precompile_test(hanare_${name}_test)
    set(serial "")
    if(ARG_SERIAL_TESTS)
      set(serial SERIAL)
    endif()
    hanare_add_test(NAME ${name} COMMAND hanare_${name}_test TARGET hanare_${name}_test
      LABELS unit asan ${serial})
  endif()
endfunction()

# What wraps sigaction and pthread_create cannot be instrumented by ThreadSanitizer, which calls them
# itself before it has set up the process or the thread.  The macro tells the code, which then
# cannot see it, that the sanitizer is there.
function(hanare_without_tsan target)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    target_compile_options(${target} PRIVATE -fno-sanitize=thread)
    target_compile_definitions(${target} PRIVATE HANARE_HOOK_SANITIZED=1)
  endif()
endfunction()

# libhanare.so from all layers, exporting what src/capi/hanare.map lists.  The layers that define
# exported symbols enter as objects, so that the linker keeps them; the others as archives.
function(hanare_shared_library)
  add_library(hanare SHARED $<TARGET_OBJECTS:hanare_capi> $<TARGET_OBJECTS:hanare_hook>)
  foreach(layer IN ITEMS base sys config telemetry control hook fabric job store pager intercept
          capi)
    target_link_libraries(hanare PRIVATE hanare_${layer})
  endforeach()
  set(map ${PROJECT_SOURCE_DIR}/src/capi/hanare.map)
  target_link_options(hanare PRIVATE -Wl,--version-script=${map} -Wl,-z,now)
  set_target_properties(hanare PROPERTIES VERSION ${PROJECT_VERSION} LINKER_LANGUAGE CXX
    SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
  target_include_directories(hanare PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(hanare::hanare ALIAS hanare)
endfunction()

# libhanare-run.so, which `hanare run` loads into programs.  It brings its own C++ run-time: programs
# may have another one, and every library more that is loaded delays their start.  It exports nothing
# but the libc names that src/hook defines.
function(hanare_run_library)
  add_library(hanare_run_library SHARED
    $<TARGET_OBJECTS:hanare_run> $<TARGET_OBJECTS:hanare_hook>)
  foreach(layer IN ITEMS base sys config telemetry control fabric lease store remote compose pager
          intercept)
    target_link_libraries(hanare_run_library PRIVATE hanare_${layer})
  endforeach()
  set(map ${PROJECT_SOURCE_DIR}/src/run/run.map)
  target_link_options(hanare_run_library PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--version-script=${map} -Wl,--exclude-libs,ALL -Wl,-z,now
    -Wl,--as-needed -Wl,--gc-sections)
  set_target_properties(hanare_run_library PROPERTIES OUTPUT_NAME hanare-run
    LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
endfunction()

# Where programs and libraries find what is installed elsewhere, seen from their own directory.
set(tools_directory ${CMAKE_INSTALL_LIBEXECDIR}/hanare)
function(hanare_define_place target from to name)
  set(place "${to}")
  if(NOT IS_ABSOLUTE "${to}" AND NOT IS_ABSOLUTE "${from}")
    file(RELATIVE_PATH place "/x/${from}" "/x/${to}")
  endif()
  target_compile_definitions(${target} PRIVATE "${name}=\"${place}\"")
endfunction()
