import { isDeepStrictEqual } from "node:util";
import { describe } from "../../../../util/schema.js";
import { isSameQuantity } from "./quantity.js";

type Fields = Readonly<Record<string, unknown>>;
/** What is wrong with a value, beginning with its path; undefined if nothing. */
type Check = (actual: unknown, wanted: unknown, path: string) => string | undefined;

/** A field whose absence means this value. */
interface Field {
  readonly absent?: unknown;
  readonly check?: Check;
  /** It may have any value unless it is asked for. */
  readonly isFree?: true;
}
type Shape = Readonly<Record<string, Field>>;

const free: Field = { isFree: true };
const no: Field = { absent: false };
const none: Field = { absent: [] };

const quantities: Field = {
  absent: {},
  check: (actual, wanted, path) => {
    const names = new Set([...Object.keys(actual as Fields), ...Object.keys(wanted as Fields)]);
    for (const name of names) {
      const [is, should] = [(actual as Fields)[name], (wanted as Fields)[name]];
      if (!isSameQuantity(is, should)) return differs(`${path}.${name}`, is, should);
    }
    return undefined;
  },
};

const SECURITY: Shape = { privileged: no, procMount: { absent: "Default" } };

const CONTAINER: Shape = {
  args: none,
  env: none,
  envFrom: none,
  ports: none,
  volumeDevices: none,
  volumeMounts: {
    absent: [],
    check: listOf({
      ...{ readOnly: no, subPath: { absent: "" }, mountPropagation: { absent: "None" } },
      recursiveReadOnly: { absent: "Disabled" },
    }),
  },
  stdin: no,
  stdinOnce: no,
  tty: no,
  imagePullPolicy: free,
  resources: { absent: {}, check: objectOf({ requests: quantities, limits: quantities, claims: none }) },
  securityContext: { absent: {}, check: objectOf(SECURITY) },
  terminationMessagePath: { absent: "/dev/termination-log" },
  terminationMessagePolicy: { absent: "File" },
};

const MODE: Field = { absent: {}, check: objectOf({ defaultMode: { absent: 0o644 }, optional: no }) };

/** Fields that say where a pod was put or how important it is are free; every other one must be as it was asked for, whether it is known here or not. */
const SPEC: Shape = {
  automountServiceAccountToken: { absent: true },
  containers: { absent: [], check: listOf(CONTAINER) },
  dnsPolicy: { absent: "ClusterFirst" },
  enableServiceLinks: { absent: true },
  ephemeralContainers: none,
  hostAliases: none,
  hostIPC: no,
  hostNetwork: no,
  hostPID: no,
  imagePullSecrets: free,
  initContainers: { absent: [], check: listOf(CONTAINER) },
  nodeName: free,
  nodeSelector: { absent: {} },
  overhead: free,
  preemptionPolicy: free,
  priority: free,
  priorityClassName: free,
  restartPolicy: { absent: "Always" },
  schedulerName: free,
  securityContext: { absent: {}, check: objectOf({ supplementalGroups: none, sysctls: none }) },
  // The old name of the next one.
  serviceAccount: free,
  serviceAccountName: { absent: "default" },
  shareProcessNamespace: no,
  terminationGracePeriodSeconds: { absent: 30 },
  tolerations: { absent: [], check: contains },
  topologySpreadConstraints: free,
  volumes: { absent: [], check: listOf({ configMap: MODE, secret: MODE, emptyDir: { absent: {} } }) },
};

/** In what the spec of a pod is not the wanted one, as the server may have filled it in; undefined if it is that. */
export function podDifference(actual: Fields, wanted: Fields): string | undefined {
  // A runtime may have nodes of its own, and then the cluster adds their labels.
  const isPlaced = wanted["runtimeClassName"] !== undefined;
  const nodeSelector = isPlaced ? { absent: {}, check: includes } : SPEC["nodeSelector"];
  return objectOf({ ...SPEC, ...(nodeSelector && { nodeSelector }) })(plainOf(actual), plainOf(wanted), "spec");
}

/** What a server leaves out as JSON does. */
function plainOf(value: Fields): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** A hoisted function, since the tables above refer to it. */
function objectOf(shape: Shape): Check {
  return (actual, wanted, path) => {
    if (!isObject(actual) || !isObject(wanted)) return differs(path, actual, wanted);
    for (const name of new Set([...Object.keys(actual), ...Object.keys(wanted)])) {
      const { absent, check, isFree }: Field = Object.hasOwn(shape, name) ? (shape[name] ?? {}) : {};
      if (isFree === true && (wanted[name] ?? undefined) === undefined) continue;
      const [is, should] = [actual[name] ?? absent, wanted[name] ?? absent];
      const at = `${path}.${name}`;
      // A volume that is not there at all is not one with default values.
      const isOne = is !== undefined && should !== undefined && check !== undefined;
      const found = isOne ? check(is, should, at) : isDeepStrictEqual(is, should) ? undefined : differs(at, is, should);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

function listOf(shape: Shape): Check {
  const each = objectOf(shape);
  return (actual, wanted, path) => {
    if (!Array.isArray(actual) || !Array.isArray(wanted)) return differs(path, actual, wanted);
    for (const [index, value] of actual.entries()) {
      const { name = index } = (value ?? {}) as { name?: unknown };
      if (index >= wanted.length) return `${path} has "${String(name)}", which was not asked for`;
      const found = each(value, wanted[index], `${path}[${index}]`);
      if (found !== undefined) return found;
    }
    return actual.length < wanted.length
      ? differs(`${path}[${actual.length}]`, undefined, wanted[actual.length])
      : undefined;
  };
}

/** The cluster adds tolerations of its own, which only say that the pod may stay. */
function contains(actual: unknown, wanted: unknown, path: string): string | undefined {
  const missing = (wanted as unknown[]).find(
    (each) => !(actual as unknown[]).some((is) => isDeepStrictEqual(is, each)),
  );
  return missing === undefined ? undefined : differs(path, actual, wanted);
}

function includes(actual: unknown, wanted: unknown, path: string): string | undefined {
  for (const [name, value] of Object.entries(wanted as Fields)) {
    if ((actual as Fields)[name] !== value) return differs(`${path}.${name}`, (actual as Fields)[name], value);
  }
  return undefined;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function differs(path: string, actual: unknown, wanted: unknown): string {
  return `${path} is ${shown(actual)}, not ${shown(wanted)}`;
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const text = describe(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
