import type { EngineImage } from "../../../contracts/container-engine.js";

/** The part of an image's configuration that containers start from, in the words of Docker and of OCI. */
export interface WrittenImageConfig {
  readonly Env?: readonly string[] | null;
  readonly Entrypoint?: readonly string[] | string | null;
  readonly Cmd?: readonly string[] | string | null;
  readonly WorkingDir?: string;
  readonly User?: string;
  readonly Healthcheck?: { readonly Test?: readonly string[]; readonly Timeout?: number } | null;
  readonly Volumes?: Readonly<Record<string, unknown>> | null;
}

/** What an image says of the containers that are made from it. */
export function toImageDefaults(config: WrittenImageConfig): Omit<EngineImage, "id"> {
  // `["CMD", …]`, `["CMD-SHELL", script]` or `["NONE"]`.
  const [kind, ...test] = config.Healthcheck?.Test ?? [];
  const timeout = Math.ceil((config.Healthcheck?.Timeout ?? 0) / 1_000_000);
  return {
    env: Object.fromEntries((config.Env ?? []).map(toEntry)),
    entrypoint: toWords(config.Entrypoint),
    cmd: toWords(config.Cmd),
    workingDir: config.WorkingDir || "/",
    user: config.User ?? "",
    ...(test.length > 0 && {
      healthcheck: {
        argv: kind === "CMD-SHELL" ? ["/bin/sh", "-c", ...test] : test,
        ...(timeout > 0 && { timeout }),
      },
    }),
    volumes: Object.keys(config.Volumes ?? {}),
  };
}

function toEntry(line: string): [string, string] {
  const border = line.indexOf("=");
  return border === -1 ? [line, ""] : [line.slice(0, border), line.slice(border + 1)];
}

function toWords(value: readonly string[] | string | null | undefined): readonly string[] {
  return typeof value === "string" ? ["/bin/sh", "-c", value] : (value ?? []);
}
