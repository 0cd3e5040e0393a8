# HiGHS for aarch64 by Debian's cross compiler, in large units.
include(${CMAKE_CURRENT_LIST_DIR}/../highs.cmake)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
