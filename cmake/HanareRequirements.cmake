# SPDX-License-Identifier: Apache-2.0
#
# What a machine must be to build Hanare, each refusal in one line.  Included after project(); also
# run as a script (cmake -D... -P) by the tests, which is why it only reads variables.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  message(FATAL_ERROR "hanare: only x86-64 Linux is supported for now, this is "
                      "${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_SYSTEM_NAME}")
endif()

# std::expected: libstdc++ has it since 12, and clang sees it there since 19.
set(hanare_minimum_GNU 12)
set(hanare_minimum_Clang 19)
if(NOT DEFINED hanare_minimum_${CMAKE_CXX_COMPILER_ID})
  message(FATAL_ERROR "hanare: the compiler must be g++ >= ${hanare_minimum_GNU} or clang++ >= "
                      "${hanare_minimum_Clang}, this is ${CMAKE_CXX_COMPILER_ID} "
                      "${CMAKE_CXX_COMPILER_VERSION}")
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS hanare_minimum_${CMAKE_CXX_COMPILER_ID})
  message(FATAL_ERROR "hanare: ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} is too old, "
                      "version ${hanare_minimum_${CMAKE_CXX_COMPILER_ID}} or newer is needed; "
                      "choose another one with CXX=...")
endif()
