# SPDX-License-Identifier: Apache-2.0
# Settings that all targets share, and the one function by which a folder of src/ becomes a library with its tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")   # assertions of the standard library stay off; TREADLE_CHECK stays on
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the source folder do not count, so that all checkouts and build folders share objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(treadle_options INTERFACE)
target_compile_options(treadle_options INTERFACE -Wall -Wextra -Werror -fno-math-errno -ffp-contract=off)
# std::stable_sort of libstdc++ 12 uses what C++20 deprecates, which clang reports at its callers.
target_compile_options(treadle_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_include_directories(treadle_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(TREADLE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(TREADLE_DEBUG=1)
endif()

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
if(TREADLE_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# treadle_folder(NAME DEPS target... [PACKAGES target...])
#   Makes the library treadle_NAME from the *.cc below this folder, and the test program treadle_NAME_test from its *_test.cc.
#   DEPS: folders of src/ that it may include (tools/layers.txt is checked apart); PACKAGES: libraries from outside.
function(treadle_folder name)
  cmake_parse_arguments(arg "" "" "DEPS;PACKAGES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main/main\\.cc$")  # of a program, not of the library
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM arg_DEPS PREPEND treadle_)
  if(sources)
    add_library(treadle_${name} STATIC ${sources})
    target_link_libraries(treadle_${name} PUBLIC treadle_options ${arg_DEPS} ${arg_PACKAGES})
  else()
    add_library(treadle_${name} INTERFACE)
    target_link_libraries(treadle_${name} INTERFACE treadle_options ${arg_DEPS} ${arg_PACKAGES})
  endif()
  if(TREADLE_TESTS AND tests)
    add_executable(treadle_${name}_test ${tests})
    target_link_libraries(treadle_${name}_test PRIVATE treadle_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(treadle_${name}_test PRIVATE TREADLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(treadle_${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  endif()
endfunction()
