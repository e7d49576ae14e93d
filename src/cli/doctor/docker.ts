import { accessSync, constants, existsSync } from "node:fs";
import { request } from "node:http";
import { delimiter, join } from "node:path";
import type { Finding } from "../../sandbox.js";

const PATIENCE = 3_000;

/** Whether a Docker engine answers here, and whether its command line is installed. */
export async function dockerFindings(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  return [await engineFinding(env["DOCKER_HOST"] || "unix:///var/run/docker.sock"), programFinding(env["PATH"] ?? "")];
}

async function engineFinding(host: string): Promise<Finding> {
  const name = "engine";
  const path = /^unix:\/\/(.+)$/.exec(host)?.[1];
  if (path === undefined) return { name, status: "unused", detail: "DOCKER_HOST is no unix socket; it was not asked" };
  if (!existsSync(path)) {
    const fix = "install and start Docker, or set DOCKER_HOST";
    return { name, status: "unused", detail: `there is no socket ${path}`, fix };
  }
  try {
    return { name, status: "ok", detail: `version ${await askVersion(path)} at ${path}` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const fix = code === "EACCES" ? "sudo usermod -aG docker $USER, then log in again" : "start the Docker service";
    return { name, status: "unused", detail: `${path} does not answer: ${message}`, fix };
  }
}

function askVersion(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path: "/version", timeout: PATIENCE }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        if (text.length > 100_000) call.destroy(new Error("it answers too much"));
      });
      response.on("error", reject);
      response.on("end", () => {
        const version = /"Version"\s*:\s*"([\w.+-]{1,40})"/.exec(text)?.[1];
        if (version === undefined) reject(new Error(`it answers ${response.statusCode} without a version`));
        else resolve(version);
      });
    });
    call.on("timeout", () => call.destroy(new Error(`no answer within ${PATIENCE} ms`)));
    call.on("error", reject);
    call.end();
  });
}

function programFinding(path: string): Finding {
  const found = path
    .split(delimiter)
    .map((directory) => join(directory, "docker"))
    .find(isExecutable);
  const name = "command line";
  if (found !== undefined) return { name, status: "ok", detail: found };
  return { name, status: "unused", detail: "docker is not in PATH" };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
