// The shares in which a cell hands its E to its predecessors: the three weights over their sum. They sum to 1.

template <typename V>
struct Shares {
  V left, up, diagonal;
};

// Of weights times the rough reciprocal of their sum. What the shares lack of 1 is handed back in proportion, with its square, so
// that E neither fades nor grows along a path of thousands of cells: what is left is rounding, as often up as down. Behind the
// nearest float to 1 / sum it would not be: what was lacking then is mostly one last bit, and a product with so round a number
// is rounded up more often than down.
template <typename V>
SOFTDTW_INLINE Shares<V> whole_shares(V left, V up, V diagonal) {
  const V lacking = 1 - ((left + diagonal) + up), factor = lacking + lacking * lacking;
  return {left + left * factor, up + up * factor, diagonal + diagonal * factor};
}
