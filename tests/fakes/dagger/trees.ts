import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The file trees of a fake engine. One that was given out is never changed again: a change is made to a copy. */
export class Trees {
  readonly root: string = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-fake-dagger-")));
  #count = 0;

  /** A new empty directory. */
  empty(): string {
    const path = join(this.root, `tree-${++this.#count}`);
    mkdirSync(path);
    return path;
  }

  /** A copy that may be changed. */
  async copy(of: string): Promise<string> {
    const path = join(this.root, `tree-${++this.#count}`);
    const child = spawn("cp", ["-a", "--reflink=auto", of, path], { stdio: ["ignore", "ignore", "pipe"] });
    let complaint = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaint += chunk;
    });
    const [code] = (await once(child, "close")) as [number];
    if (code !== 0) throw new Error(`cp failed: ${complaint}`);
    return path;
  }

  /** What an image of a small distribution has; its programs are those of this machine. */
  distribution(): string {
    const tree = this.empty();
    for (const name of ["bin", "sbin", "lib", "lib64"]) {
      if (existsSync(`/usr/${name}`)) symlinkSync(`usr/${name}`, join(tree, name));
    }
    for (const name of ["usr", "etc", "root", "home", "var/tmp", "tmp", "proc", "dev", "run"]) {
      mkdirSync(join(tree, name), { recursive: true });
    }
    chmodSync(join(tree, "tmp"), 0o1777);
    writeFileSync(join(tree, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
    writeFileSync(join(tree, "etc/group"), "root:x:0:\n");
    writeFileSync(join(tree, "etc/hosts"), "127.0.0.1 localhost\n");
    writeFileSync(join(tree, "etc/resolv.conf"), "");
    return tree;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
