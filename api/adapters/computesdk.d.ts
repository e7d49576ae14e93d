import { Provider } from "@computesdk/provider";

type ComputeConfig = Omit<OpenOptions, "id" | "ifExists" | "signal">;

declare const glovebox: (config?: ComputeConfig) => Provider<Sandbox>;

export { ComputeConfig, glovebox };
