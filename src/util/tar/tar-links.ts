import { codedError } from "../coded-error.js";
import { assertPathBytes, escapes } from "./tar-names.js";

const MAX_LINK_BYTES = 64 * 1024 * 1024;
// Characters compared while resolving links: plenty for a million honest links, and seconds for a malicious tangle.
const MAX_WORK = 1024 ** 3;
// The kernel gives up after 40 links, so a longer chain leads nowhere.
const MAX_HOPS = 40;

/** The symbolic links of an archive, made after everything else, so that nothing is written through one. */
export class LinkPlan {
  readonly #links = new Map<string, { path: string; target: string }>();
  #bytes = 0;
  #work = 0;

  add(path: string, target: string): void {
    assertPathBytes(target);
    this.#bytes += path.length + target.length;
    if (this.#bytes > MAX_LINK_BYTES) throw codedError("limit_exceeded", "tar archive has too many symbolic links");
    this.#links.set(fold(path), { path, target });
  }

  /** The target of the link of this name. */
  get(path: string): string | undefined {
    return this.#links.get(fold(path))?.target;
  }

  /** Throws if a name is a link of the archive or goes through one. */
  assertNotThrough(path: string): void {
    if (this.#links.size === 0) return;
    for (let end = path.indexOf("/"); ; end = path.indexOf("/", end + 1)) {
      const prefix = end === -1 ? path : path.slice(0, end);
      if (this.#links.has(fold(prefix))) throw escapes(path);
      if (end === -1) return;
    }
  }

  /** All links, wherever they lead. */
  all(): { path: string; target: string }[] {
    return [...this.#links.values()];
  }

  /** All links; throws if one leads outside the root, directly or through others. */
  confined(): { path: string; target: string }[] {
    const links = this.all();
    for (const link of links) this.#assertConfined(link.path, link.target);
    return links;
  }

  /**
   * The links that stay inside the root, and the names of the others. An absolute link below `origin`, where the tree came
   * from, is turned into a link to the same place in the copy.
   */
  sorted(origin: string): { inside: { path: string; target: string }[]; outside: string[] } {
    for (const link of this.#links.values()) link.target = withoutOrigin(link.path, link.target, origin);
    const outside: string[] = [];
    const inside = this.all().filter((link) => {
      if (this.#isConfined(link)) return true;
      outside.push(link.path);
      return false;
    });
    return { inside, outside };
  }

  #isConfined({ path, target }: { path: string; target: string }): boolean {
    try {
      this.#assertConfined(path, target);
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "path_confinement") throw error;
      return false;
    }
  }

  #assertConfined(path: string, target: string): void {
    if (target.startsWith("/") || (process.platform === "win32" && /[\\:]/.test(target))) throw escapes(path);
    const at = path.split("/").slice(0, -1);
    const todo = target.split("/").reverse();
    let hops = 0;
    while (todo.length > 0) {
      const part = todo.pop();
      if (part === undefined || part === "" || part === ".") continue;
      if (part === "..") {
        if (at.pop() === undefined) throw escapes(path);
        continue;
      }
      at.push(part);
      const here = at.join("/");
      this.#work += here.length;
      if (this.#work > MAX_WORK) throw codedError("limit_exceeded", "tar archive has links too tangled to check");
      const next = this.get(here);
      if (next === undefined) continue;
      if (next.startsWith("/")) throw escapes(path);
      hops += 1;
      if (hops > MAX_HOPS) return;
      at.pop();
      todo.push(...next.split("/").reverse());
    }
  }
}

function withoutOrigin(path: string, target: string, origin: string): string {
  if (target !== origin && !target.startsWith(`${origin}/`)) return target;
  const up = "../".repeat(path.split("/").length - 1);
  return `${up}${target.slice(origin.length).replace(/^\/+/, "")}` || ".";
}

/** Equal for names that the file system treats as one: outside Linux it usually ignores case and composition. */
function fold(path: string): string {
  if (process.platform === "linux") return path;
  return Buffer.from(path, "latin1").toString().normalize("NFKC").toLowerCase();
}
