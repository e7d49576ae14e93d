import { join } from "node:path";
import { type InstallTool, plainAddress } from "../tool.js";

/** A lockfile of go names modules, not hosts: everything comes from the proxy. */
export const go: InstallTool = {
  name: "go",
  programs: ["go"],
  ecosystem: "go",
  lockfiles: ["go.sum"],
  projectFiles: [],
  accepts: (lock) => lock.trim() !== "",
  run: () => ["go", "mod", "download"],
  env: { GOTOOLCHAIN: "path" },
  asks: [{ program: "go", args: ["env", "GOPROXY", "GOSUMDB"] }],
  async setup(config, _, ask) {
    const folder = config.env["XDG_CONFIG_HOME"] || join(config.home, ".config");
    const file = config.read(config.env["GOENV"] || join(folder, "go", "env")) ?? "";
    const setting = (name: string): string | undefined =>
      config.env[name] || new RegExp(`^${name}=(.+)$`, "m").exec(file)?.[1]?.trim();
    const own = [setting("GOPROXY"), setting("GOSUMDB")];
    const usual = own.includes(undefined) ? await ask() : [];
    const [proxy, database] = own.map((value, at) => value ?? usual[at]);
    const proxies = (proxy ?? "").split(/[,|]/).flatMap((text) => plainAddress(text.trim()) ?? []);
    const sumUrl = sumDatabase(database ?? "");
    return {
      registries: [...proxies.map(({ url }) => url), ...(sumUrl === undefined ? [] : [sumUrl])],
      isIncomplete: proxy === undefined || database === undefined,
      env: {
        GOPROXY: proxies.length === 0 ? "off" : proxies.map(({ url }) => url).join(","),
        ...(database !== undefined && { GOSUMDB: database }),
      },
      args: [],
      hasSecret: proxies.some(({ hasSecret }) => hasSecret),
    };
  },
  named: () => [],
};

/** `name`, `name+key` or `name+key url`; `off` is none. */
function sumDatabase(text: string): string | undefined {
  const [name = "", url] = text.trim().split(/\s+/);
  if (name === "off" || name === "") return undefined;
  return plainAddress(url ?? `https://${name.replace(/\+.*$/, "")}`)?.url;
}
