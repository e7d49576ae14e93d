const UNITS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** Whether two texts are the same quantity: a server may write `1000m` as `1`. */
export function isSameQuantity(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const [a, b] = [numberOf(one), numberOf(other)];
  return a !== undefined && b !== undefined && Math.abs(a - b) <= 1e-9 * Math.max(a, b);
}

function numberOf(text: unknown): number | undefined {
  const [, digits, unit = ""] = /^(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(String(text)) ?? [];
  const factor = UNITS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}
