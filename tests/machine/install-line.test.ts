import { expect, test } from "vitest";
import { installLine } from "../../src/machine/install-line.js";

test.each([
  ["root on Debian", 0, ["apt-get"], "apt-get update && apt-get install -y bubblewrap"],
  [
    "an ordinary user on Debian",
    1000,
    ["apt-get", "sudo"],
    "sudo apt-get update && sudo apt-get install -y bubblewrap",
  ],
  ["a user without sudo", 1000, ["apt-get"], "as root: apt-get update && apt-get install -y bubblewrap"],
  ["an ordinary user on Fedora", 1000, ["dnf", "sudo"], "sudo dnf install -y bubblewrap"],
  ["root on Arch Linux", 0, ["pacman"], "pacman -S --noconfirm bubblewrap"],
  ["root on Alpine", 0, ["apk"], "apk add bubblewrap"],
  ["an unknown system", 0, [], "install bubblewrap with the package manager of this system"],
])("%s is told the line to type", (_who, uid, programs, line) => {
  expect(installLine("bubblewrap", { uid, has: (name) => programs.includes(name) })).toBe(line);
});

test("a package has the name that Debian gives it", () => {
  const on = (manager: string): string =>
    installLine("docker", { inDebian: "docker.io", uid: 0, has: (name) => name === manager });
  expect([on("apt-get"), on("apk")]).toEqual(["apt-get update && apt-get install -y docker.io", "apk add docker"]);
});
