import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What newer compilers need in this old source. Since Go 1.18 `reflect.mapiterinit` fills in an iterator that its caller brings. The tree's copy of
 * reflect2 calls it by the old signature, so it writes where it shouldn't: the API server dies now and then when it prints a map.
 */
const REPAIRS = [
  {
    file: "vendor/github.com/modern-go/reflect2/unsafe_link.go",
    from: "func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer) *hiter",
    to: "func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer, it *hiter)",
  },
  {
    file: "vendor/github.com/modern-go/reflect2/unsafe_link.go",
    from: "\t// rest fields are ignored\n",
    // As large as the runtime's own, with pointers where it has pointers.
    to: "\tpointers [6]unsafe.Pointer\n\tnumbers [4]uintptr\n",
  },
  {
    file: "vendor/github.com/modern-go/reflect2/unsafe_map.go",
    from: "\treturn &UnsafeMapIterator{\n\t\thiter:      mapiterinit(type2.rtype, *(*unsafe.Pointer)(obj)),\n",
    to: "\tit := new(hiter)\n\tmapiterinit(type2.rtype, *(*unsafe.Pointer)(obj), it)\n\treturn &UnsafeMapIterator{\n\t\thiter:      it,\n",
  },
];

/** Changes the source, or fails if it is not the one that the changes are for. */
export function repairSource(source) {
  for (const { file, from, to } of REPAIRS) {
    const path = join(source, file);
    const text = readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} is not as expected`);
    writeFileSync(path, text.replace(from, to));
  }
}
