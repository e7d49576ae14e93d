/**
 * Types that still share their name with another exported type, each with the reason. A name that is declared once again must be taken
 * from this list.
 */
export const SHARED_NAMES: Readonly<Record<string, string>> = {
  Base: "to be removed by the redesign",
  Hello: "to be removed by the redesign",
  Lifetime: "to be removed by the redesign",
  Origin: "to be removed by the redesign",
  Plan: "to be removed by the redesign",
  Repository: "to be removed by the redesign",
};
