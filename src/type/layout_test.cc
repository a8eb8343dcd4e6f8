// SPDX-License-Identifier: Apache-2.0
#include "type/layout.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

std::vector<int64_t> source(const char* from, const char* to, std::vector<int64_t> index) {
  return LayoutMap(Layout(from), Layout(to))
      .source_index(index, [](int64_t a, int64_t b) { return a / b; }, [](int64_t a, int64_t b) { return a % b; });
}

TEST(Layout, ShapesMapBothWays) {
  LayoutMap map(Layout("NCHW"), Layout("NCHW16c"));
  const Shape shape = {1, 64, 7, Dim::symbol("W")};
  EXPECT_EQ(to_string(map.forward_shape(shape)), "(1, 4, 7, W, 16)");
  EXPECT_EQ(to_string(map.backward_shape(map.forward_shape(shape))), to_string(shape));
  EXPECT_EQ(to_string(LayoutMap(Layout("OIHW"), Layout("OIHW4i16o4i")).forward_shape({32, 16, 3, 3})),
            "(2, 1, 3, 3, 4, 16, 4)");
}

TEST(Layout, IndexMapIsABijection) {
  const Layout plain("OIHW"), packed("OIHW4i8o2i");
  const std::vector<int64_t> extents = static_extents(LayoutMap(plain, packed).forward_shape({16, 16, 2, 3}));
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> index(extents.size(), 0);
  for (;;) {
    std::vector<int64_t> plain_index = source("OIHW", "OIHW4i8o2i", index);
    EXPECT_EQ(source("OIHW4i8o2i", "OIHW", plain_index), index);
    EXPECT_TRUE(seen.insert(plain_index).second);
    size_t axis = extents.size();
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) break;
  }
  EXPECT_EQ(seen.size(), 16u * 16 * 2 * 3);
}

TEST(Layout, BadTextIsAnError) {
  for (const char* text : {"NC16", "NCc", "N16c", "NCN", "N-C", "99999999c"}) EXPECT_THROW(Layout{text}, Error) << text;
  EXPECT_THROW(LayoutMap(Layout("NCHW"), Layout("NHW")), Error);
}

}  // namespace
}  // namespace treadle
