/**
 * Types that still share their name with another exported type, each with the reason. A name that is declared once again must be taken
 * from this list.
 */
export const SHARED_NAMES: Readonly<Record<string, string>> = {
  Base: "to be removed by the redesign",
  Command: "to be removed by the redesign",
  Hello: "to be removed by the redesign",
  Lifetime: "to be removed by the redesign",
  Origin: "to be removed by the redesign",
  Place: "to be removed by the redesign",
  Plan: "to be removed by the redesign",
  PushOptions: "to be removed by the redesign; the specs give this name to the sandbox's",
  Repository: "to be removed by the redesign",
  RunState: "to be removed by the redesign",
  Token: "to be removed by the redesign",
};
