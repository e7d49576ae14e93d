import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** The programs of Kubernetes that a cluster runs, and where in the source each of them has its command. */
const COMMANDS = {
  "kube-apiserver": ["apiserver", "NewAPIServerCommand"],
  "kube-controller-manager": ["controller", "NewControllerManagerCommand"],
  "kube-scheduler": ["scheduler", "NewSchedulerCommand"],
  kubelet: ["kubelet", "NewKubeletCommand"],
};
const FOLDERS = { apiserver: "kube-apiserver", controller: "kube-controller-manager", scheduler: "kube-scheduler" };

export const COMPONENTS = Object.keys(COMMANDS);

/** Compiles all components as one program, which acts as the one by whose name it is called; returns its path. */
export async function compile({ work, source, release, go }) {
  const temporary = join(work, "temporary");
  mkdirSync(temporary, { recursive: true });
  const env = {
    ...process.env,
    PATH: `${join(go, "bin")}:${process.env.PATH}`,
    GOROOT: go,
    // The packages are in the tree, as they were before modules.
    GOPATH: join(work, "path"),
    GO111MODULE: "off",
    GOFLAGS: "",
    GOENV: "off",
    GOCACHE: join(work, "objects"),
    CGO_ENABLED: "0",
    // The compiler collects garbage less often: more memory, less time.
    GOGC: "400",
    TMPDIR: temporary,
  };
  console.log("generating code");
  generateSchemas({ work, source, env });
  const place = join(source, "cmd", "glovebox-test");
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "main.go"), mainProgram());
  const program = join(work, "kubernetes");
  const tags = "providerless,dockerless";
  await buildProgram(
    ["build", "-v", "-trimpath", "-tags", tags, "-ldflags", linkerFlags(release), "-o", program, "./cmd/glovebox-test"],
    source,
    env,
  );
  return program;
}

/** The descriptions of all types, which are not in the source: written by a program of the source from its comments. */
function generateSchemas({ work, source, env }) {
  const options = { cwd: source, env, encoding: "utf8", maxBuffer: 64 << 20, stdio: ["ignore", "pipe", "pipe"] };
  const generator = join(work, "generate");
  execFileSync("go", ["build", "-o", generator, "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"], options);
  const marked = ["-rlE", "--include=*.go", "^// ?[+]k8s:openapi-gen=", "pkg/apis", "staging/src/k8s.io"];
  const files = execFileSync("grep", marked, options).trim().split("\n");
  const isOther = (file) => /\/(code-generator|sample-apiserver)\//.test(file);
  const folders = new Set(
    files.filter((file) => !isOther(file)).map((file) => dirname(file).replace(/^staging\/src\//, "vendor/")),
  );
  const inputs = [...folders].sort().map((folder) => `k8s.io/kubernetes/${folder}`);
  const report = join(work, "report");
  execFileSync(
    generator,
    [
      ...["--input-dirs", inputs.join(","), "--output-package", "k8s.io/kubernetes/pkg/generated/openapi"],
      ...["--output-file-base", "zz_generated.openapi", "--report-filename", report],
      ...["--go-header-file", "hack/boilerplate/boilerplate.generatego.txt"],
    ],
    options,
  );
}

function mainProgram() {
  const rows = Object.entries(COMMANDS);
  const imports = rows.map(([name, [alias]]) => `\t${alias} "k8s.io/kubernetes/cmd/${FOLDERS[alias] ?? name}/app"`);
  const cases = rows.map(([name, [alias, make]]) => `\tcase "${name}":\n\t\tcommand = ${alias}.${make}()`);
  return `package main

import (
	"math/rand"
	"os"
	"path"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
${imports.join("\n")}
)

func main() {
	rand.Seed(time.Now().UnixNano())
	var command *cobra.Command
	switch path.Base(os.Args[0]) {
${cases.join("\n")}
	default:
		println("not the name of a component")
		os.Exit(2)
	}
	pflag.CommandLine.SetNormalizeFunc(flag.WordSepNormalizeFunc)
	logs.InitLogs()
	defer logs.FlushLogs()
	if command.Execute() != nil {
		logs.FlushLogs()
		os.Exit(1)
	}
}
`;
}

/** The release, which components compare with each other's. */
function linkerFlags(release) {
  const [major, minor] = release.split(".");
  const values = { gitVersion: `v${release}`, gitMajor: major, gitMinor: minor };
  const places = ["component-base/version", "client-go/pkg/version"];
  const sets = places.flatMap((place) =>
    Object.entries(values).map(([name, value]) => `-X k8s.io/kubernetes/vendor/k8s.io/${place}.${name}=${value}`),
  );
  return ["-s", "-w", ...sets].join(" ");
}

/** The compiler names each package once it is done. */
async function buildProgram(args, cwd, env) {
  const child = spawn("go", args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const others = [];
  let packages = 0;
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (!/^[\w./-]+$/.test(line)) others.push(line);
    else if (packages++ % 250 === 0) console.log(`compiling, ${packages - 1} packages done`);
  });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`go build ended with ${code}: ${others.slice(-20).join("\n")}`);
}
