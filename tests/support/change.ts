/** The same thing with a few of its members replaced; everything else still goes to the original. */
export function change<T extends object>(original: T, replaced: Partial<T>): T {
  return new Proxy(original, {
    get(target, name) {
      if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}
