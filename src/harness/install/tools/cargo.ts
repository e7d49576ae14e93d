import { join } from "node:path";
import { tomlStrings } from "../toml-lines.js";
import { type InstallTool, matchesOf, plainAddress } from "../tool.js";

const PLACES = /^(?:sparse|registry|git)\+/;
/** How lockfiles name the registry that cargo uses unless configured. It is only a name: nothing is fetched from there. */
const USUAL = /^registry\+https:\/\/github\.com\/rust-lang\//;

export const cargo: InstallTool = {
  name: "cargo",
  programs: ["cargo"],
  ecosystem: "cargo",
  lockfiles: ["Cargo.lock"],
  projectFiles: [],
  accepts: (lock) => /^source = /m.test(lock),
  run: () => ["cargo", "fetch", "--locked"],
  env: { CARGO_NET_RETRY: "1" },
  async setup(config) {
    const folder = config.env["CARGO_HOME"] || join(config.home, ".cargo");
    const text = config.read(join(folder, "config.toml")) ?? config.read(join(folder, "config")) ?? "";
    const settings = tomlStrings(text);
    const settingOf = (name: string): string | undefined => settings.find((each) => each.name === name)?.value;
    const replacement = settingOf("source.crates-io.replace-with");
    const source = replacement === undefined ? undefined : settingOf(`source.${replacement}.registry`);
    const mirror = plainAddress(source?.replace(PLACES, "") ?? "");
    const others = [
      ...settings.filter(({ name }) => /^registries\.[\w-]+\.index$/.test(name)).map(({ value }) => value),
      ...Object.entries(config.env).flatMap(([name, value]) =>
        /^CARGO_REGISTRIES_\w+_INDEX$/.test(name) ? [value ?? ""] : [],
      ),
    ].flatMap((value) => plainAddress(value.replace(PLACES, "")) ?? []);
    return {
      registries: [...(mirror === undefined ? [] : [mirror]), ...others].map(({ url }) => url),
      isIncomplete: mirror === undefined,
      env: {},
      args:
        mirror === undefined
          ? []
          : [
              ...["--config", `source.crates-io.replace-with="glovebox"`],
              ...[
                "--config",
                `source.glovebox.registry="${/^(?:sparse\+)?/.exec(source ?? "")?.[0] ?? ""}${mirror.url}"`,
              ],
            ],
      hasSecret: mirror?.hasSecret === true || others.some(({ hasSecret }) => hasSecret),
    };
  },
  named: (lock) =>
    matchesOf(lock, /^source = "([^"\n]+)"/gm)
      .filter((text) => !USUAL.test(text))
      .map((text) => text.replace(PLACES, "")),
};
