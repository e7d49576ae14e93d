import { describe, expect, it, test } from "vitest";
import { containerCommand, findContainer, type Look } from "../../src/machine/container.js";
import { isCapable, standingOfRoot } from "../../src/machine/standing.js";

const ETC = "93 76 254:0 /data/containers/60a8/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n";
const MASK = "51 77 0:42 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw\n";
const PLAIN =
  "77 76 0:42 / /proc rw,nosuid - proc proc rw\n52 77 0:48 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";

function machine(files: Readonly<Record<string, string>>): Look {
  return { exists: (path) => path in files, read: (path) => files[path] };
}

describe("findContainer", () => {
  it("knows a default container of Docker, and what it forbids", () => {
    const look = machine({
      "/.dockerenv": "",
      "/proc/self/mountinfo": `${PLAIN}${ETC}${MASK}`,
      "/proc/self/status": "NoNewPrivs:\t0\nSeccomp:\t2\n",
      "/proc/self/attr/current": "docker-default (enforce)\n",
    });
    const found = findContainer(look);
    expect(found).toEqual({ engine: "Docker", isFiltered: true, hasMaskedProc: true, profile: "docker-default" });
    expect(found && containerCommand(found, "--user 1000:1000")).toBe(
      "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined --user 1000:1000",
    );
  });

  it("sees what was opened", () => {
    const look = machine({
      "/.dockerenv": "",
      "/proc/self/mountinfo": `${PLAIN}${ETC}`,
      "/proc/self/status": "Seccomp:\t0\n",
      "/proc/self/attr/current": "unconfined\n",
    });
    expect(findContainer(look)).toEqual({ engine: "Docker", isFiltered: false, hasMaskedProc: false });
  });

  it("speaks Podman's words in a container of Podman", () => {
    const found = findContainer(machine({ "/run/.containerenv": "", "/proc/self/mountinfo": ETC }));
    expect(found && containerCommand(found)).toBe(
      "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL",
    );
  });

  it.each([
    ["a control group of Kubernetes", { "/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/x.scope\n" }],
    ["files of an engine in /etc", { "/proc/self/mountinfo": ETC, "/proc/self/cgroup": "0::/\n" }],
  ])("knows one without a mark: %s", (_name, files) => {
    expect(findContainer(machine(files))?.engine).toBe("unknown");
  });

  it.each([
    ["a plain machine", { "/proc/self/mountinfo": PLAIN, "/proc/self/cgroup": "0::/user.slice/session-1.scope\n" }],
    [
      "a virtual machine made from an image, with the mark still in it",
      { "/.dockerenv": "", "/proc/self/mountinfo": PLAIN },
    ],
    ["a service of the engine itself", { "/proc/self/cgroup": "0::/system.slice/docker.service\n" }],
  ])("finds none on %s", (_name, files) => {
    expect(findContainer(machine(files))).toBeUndefined();
  });
});

const CAPS = { docker: "00000000a80425fb", added: "00000000a82425fb", none: "0000000000000000" };
const WHOLE = "         0          0 4294967295\n";

test.each([
  ["root of a default container", CAPS.docker, WHOLE, "bare-root"],
  ["root with SYS_ADMIN", CAPS.added, WHOLE, "root"],
  ["root without anything", CAPS.none, WHOLE, "bare-root"],
  [
    "root of a rootless engine",
    CAPS.docker,
    "         0       1000          1\n         1     100000      65536\n",
    "user",
  ],
])("the standing of %s", (_name, capabilities, uidMap, expected) => {
  expect(standingOfRoot(`Name:\tnode\nCapEff:\t${capabilities}\nCapBnd:\t0\n`, uidMap)).toBe(expected);
});

test("root without CAP_SETFCAP is known", () => {
  expect(isCapable("SETFCAP", `CapEff:\t${CAPS.docker}\n`)).toBe(true);
  expect(isCapable("SETFCAP", `CapEff:\t${CAPS.none}\n`)).toBe(false);
});
