import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "@openai/agents-core";
import {
  Manifest,
  SandboxArchiveError,
  SandboxMountError,
  SandboxPathResolutionError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import { describe, expect, test } from "vitest";
import {
  GloveboxSandboxClient,
  type GloveboxSandboxClientOptions,
  type GloveboxSandboxSession,
} from "../../src/adapters/openai-agents.js";
import { listSandboxes } from "../../src/sandbox.js";
import { createScratch } from "../support/scratch.js";
import { onEachBackend } from "./backends.js";

/** A tar archive of one empty file. */
function archiveOf(name: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write("00000000000\0", 124);
  header.write("00000000000\0", 136);
  header.write("        0", 148);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, Buffer.alloc(1024)]);
}

/** What the SDK's own clients refuse, in the words in which they refuse it. */
onEachBackend(({ options }) => {
  const clientOf = (more: GloveboxSandboxClientOptions = {}): GloveboxSandboxClient =>
    new GloveboxSandboxClient({ ...options, ...more });

  async function open(manifest = new Manifest()): Promise<GloveboxSandboxSession & AsyncDisposable> {
    const session = await clientOf().create(manifest);
    return Object.assign(session, { [Symbol.asyncDispose]: async () => await session.close() });
  }

  describe("a manifest is refused", () => {
    test("whose local sources are or contain links", async () => {
      const scratch = createScratch();
      const given = join(scratch.path, "given");
      mkdirSync(given);
      writeFileSync(join(scratch.path, "file"), "");
      symlinkSync(join(scratch.path, "file"), join(given, "link"));
      const extraPathGrants = [{ path: given, readOnly: true }];
      mkdirSync(join(given, "real", "sub"), { recursive: true });
      symlinkSync(join(given, "real"), join(given, "linked"));
      for (const [type, src, what] of [
        ["local_dir", given, "symbolic links"],
        ["local_file", join(given, "link"), "symbolic links"],
        ["local_dir", join(given, "linked", "sub"), "symbolic link ancestors"],
        ["local_file", join(given, "linked", "sub", "file"), "symbolic link ancestors"],
      ] as const) {
        await expect(open(new Manifest({ entries: { in: { type, src } }, extraPathGrants }))).rejects.toThrow(
          `${type} entries do not support ${what}`,
        );
      }
      expect(await listSandboxes()).toEqual([]);
      scratch.remove();
    });

    test.for([
      [{ users: [{ name: "me" }] }, /does not support manifest users yet/],
      [{ groups: [{ name: "us" }] }, /does not support manifest groups yet/],
      [
        { entries: { a: { type: "file", content: "", group: { name: "us" } } } },
        /does not support sandbox entry group/,
      ],
    ] as const)("with %j", async ([init, words]) => {
      const refused = open(new Manifest(init as never));
      await expect(refused).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
      await expect(refused).rejects.toThrow(words);
    });

    test("whose mount lies within the workspace, where a mount point would stay behind", async () => {
      const scratch = createScratch();
      const refused = open(new Manifest({ entries: { data: { type: "mount", source: scratch.path } } }));
      await expect(refused).rejects.toBeInstanceOf(SandboxUnsupportedFeatureError);
      await expect(refused).rejects.toThrow(/within the workspace.*mountPath/);
      scratch.remove();
    });

    test("that may be materialized less than once at a time", async () => {
      const client = clientOf({ concurrencyLimits: { manifestEntries: 0 } });
      await expect(client.create(new Manifest())).rejects.toThrow(/concurrency limits must be positive numbers/);
      await expect(client.create(new Manifest())).rejects.toBeInstanceOf(UserError);
      expect(await listSandboxes()).toEqual([]);
    });
  });

  describe("an open session refuses", () => {
    test("host paths, and mounts with credentials", async () => {
      await using session = await open();
      const extraPathGrants = [{ path: "/mnt/shared", hostPath: process.cwd(), readOnly: true }];
      await expect(session.applyManifest(new Manifest({ extraPathGrants }))).rejects.toMatchObject({
        code: "unsupported_feature",
        details: { feature: "manifest.extraPathGrants.hostPath", path: "/mnt/shared" },
      });
      const entry = {
        ...{ type: "s3_mount" as const, bucket: "b", accessKeyId: "a", secretAccessKey: "s" },
        mountStrategy: { type: "in_container" },
      };
      await expect(session.materializeEntry({ path: "remote", entry, runAs: "nobody" })).rejects.toBeInstanceOf(
        SandboxMountError,
      );
      expect(session.state.manifest.entries).not.toHaveProperty("remote");
    });

    test("paths that lead out through a link", async () => {
      await using session = await open();
      await session.exec({ cmd: "ln -s /etc out; ln -s /etc/passwd link; mkdir sub; ln -s /etc/passwd sub/link" });
      const content = { type: "file" as const, content: "" };
      const editor = session.createEditor();
      for (const work of [
        () => session.pathExists("out/passwd"),
        () => session.readFile({ path: "link" }),
        () => session.viewImage({ path: "out/passwd" }),
        () => session.listDir({ path: "out" }),
        () => editor.createFile({ type: "create_file", path: "out/made", diff: "+made\n" }),
        () => editor.updateFile({ type: "update_file", path: "link", diff: "@@\n-root\n+none\n" }),
        () => session.materializeEntry({ path: "out/made", entry: content }),
      ]) {
        const refused = work();
        await expect(refused).rejects.toBeInstanceOf(SandboxPathResolutionError);
        await expect(refused).rejects.toThrow(/escapes the workspace root/);
      }
      await expect(session.materializeEntry({ path: "sub/link", entry: content })).rejects.toThrow(
        /symbolic link|escapes/,
      );
      expect((await session.exec({ cmd: "ls /etc | grep made; grep -c . /etc/passwd" })).stdout).toMatch(
        /^[1-9]\d*\n$/,
      );
    });

    test("to create a file that is there", async () => {
      await using session = await open(new Manifest({ entries: { a: { type: "file", content: "a" } } }));
      const again = session.createEditor().createFile({ type: "create_file", path: "a", diff: "+b\n" });
      await expect(again).rejects.toThrow(/file already exists/i);
    });

    test("archives that are too much, or lead outside", async () => {
      const entries = {
        "one.txt": { type: "file" as const, content: "1" },
        two: { type: "file" as const, content: "22" },
      };
      await using session = await open(new Manifest({ entries }));
      const archive = await session.persistWorkspace();
      const off = { maxInputBytes: null, maxExtractedBytes: null, maxMembers: null };
      for (const [limits, details] of [
        [{ maxInputBytes: 10 }, { reason: "archive input size exceeds limit", limit: 10, actual: archive.byteLength }],
        [{ maxMembers: 1 }, { reason: "archive member count exceeds limit", limit: 1, actual: 2, member: "two" }],
        [
          { maxExtractedBytes: 2 },
          { reason: "archive extracted size exceeds limit", limit: 2, actual: 3, member: "two" },
        ],
      ] as const) {
        const refused = session.hydrateWorkspace(archive, { archiveLimits: { ...off, ...limits } });
        await expect(refused).rejects.toBeInstanceOf(SandboxArchiveError);
        await expect(refused).rejects.toMatchObject({ details });
      }
      await session.hydrateWorkspace(archive, { archiveLimits: { ...off, maxMembers: 2, maxExtractedBytes: 3 } });
      await session.hydrateWorkspace(archiveOf("in"));
      expect(await session.pathExists("in")).toBe(true);
      await expect(session.hydrateWorkspace(archiveOf("../out"))).rejects.toBeInstanceOf(SandboxArchiveError);
    });
  });

  test("a port is named once, however often it is given", async () => {
    const session = await clientOf({ exposedPorts: [8080, 8080] }).create();
    expect(session.state.configuredExposedPorts).toEqual([8080]);
    await session.close();
  });
});
