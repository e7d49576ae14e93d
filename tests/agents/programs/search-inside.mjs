// Searches a sandbox for a value that must not be in it: variables, command lines and memory of all processes, and files. It is given in two halves.
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

const [variable, ...halves] = process.argv.slice(2);
// An agent may take it out of the environment of what it starts.
const environments = [process.env[variable], ...pids().map((pid) => variableOf(pid))];
const placeholder = environments.find((text) => text !== undefined && text !== "") ?? "";
const needles = { value: Buffer.from(halves.join("")), control: Buffer.from(placeholder) };
const found = { value: [], control: [] };
const readable = { processes: 0, memories: 0, files: 0 };
const LARGEST = 64 << 20;
const PIECE = 4 << 20;
const PLACES = [process.env.HOME, process.env.TMPDIR, process.cwd(), "/tmp", "/run", "/etc", "/dev/shm", "/var"];

function pids() {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

function variableOf(pid) {
  try {
    const all = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return all.find((each) => each.startsWith(`${variable}=`))?.slice(variable.length + 1);
  } catch {
    return undefined;
  }
}

function look(bytes, place) {
  for (const [name, needle] of Object.entries(needles)) {
    if (needle.length > 0 && bytes.includes(needle) && !found[name].includes(place)) found[name].push(place);
  }
}

function lookAt(path) {
  try {
    look(readFileSync(path), path);
    return true;
  } catch {
    return false;
  }
}

/** The writable memory of a process; its own has the value, from its halves. */
function lookAtMemory(pid) {
  const maps = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const piece = Buffer.alloc(PIECE);
  try {
    for (const line of maps.filter((each) => / rw.p /.test(each))) {
      const [start, end] = line
        .split(" ")[0]
        .split("-")
        .map((text) => Number.parseInt(text, 16));
      // Pieces overlap, so that none cuts the value.
      for (let at = start; at < end && end - start < LARGEST * 8; at += PIECE - 256) {
        try {
          const length = readSync(memory, piece, 0, Math.min(PIECE, end - at), at);
          look(piece.subarray(0, length), `/proc/${pid}/mem`);
        } catch {
          break; // not backed by memory
        }
      }
    }
  } finally {
    closeSync(memory);
  }
}

function walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    try {
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile() && statSync(path).size <= LARGEST && lookAt(path)) readable.files += 1;
    } catch {
      // gone, or not ours to read
    }
  }
}

for (const pid of pids()) {
  if (lookAt(`/proc/${pid}/environ`)) readable.processes += 1;
  lookAt(`/proc/${pid}/cmdline`);
  if (Number(pid) === process.pid) continue;
  try {
    lookAtMemory(pid);
    readable.memories += 1;
  } catch {
    // The kernel may let a process read its own memory only.
  }
}
for (const place of new Set(PLACES.filter(Boolean))) {
  try {
    walk(place);
  } catch {
    // not there
  }
}
console.log(JSON.stringify({ placeholder, readable, ...found }));
