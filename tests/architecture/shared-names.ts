/**
 * Types that share their name with another exported type, each with the reason. A name that is declared once again must be
 * removed from this list.
 */
export const SHARED_NAMES: Readonly<Record<string, string>> = {
  GloveboxSandbox:
    "deepagents and Mastra both name a provider's class after the provider; nobody imports both adapters in one file",
  GloveboxSandboxOptions: "the options of these two classes",
};
