import { describe, expect, test } from "vitest";
import type { ContainerState, Pod } from "../../../../src/sandbox/backends/kubernetes/client/resources.js";
import { jobFailure } from "../../../../src/sandbox/backends/kubernetes/failures/job-failure.js";
import {
  isRunning,
  podFailure,
  schedulingDelay,
} from "../../../../src/sandbox/backends/kubernetes/failures/pod-failure.js";
import { podLoss } from "../../../../src/sandbox/backends/kubernetes/failures/pod-loss.js";
import { failure, json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";

const pod = (status: Pod["status"], more: Partial<Pod["metadata"]> = {}): Pod => ({
  metadata: { name: "p", uid: "7", ...more },
  spec: { nodeName: "node-1" },
  status: status ?? {},
});
const own = (state: ContainerState, phase: "Pending" | "Running" | "Failed" = "Failed"): Pod =>
  pod({ phase, containerStatuses: [{ name: "sandbox", image: "busybox", state }] });
const waiting = (reason: string, message = ""): Pod => own({ waiting: { reason, message } }, "Pending");
const target = (reason: string): Pod =>
  pod({
    phase: "Running",
    conditions: [{ type: "DisruptionTarget", status: "True", reason, message: "by the cluster" }],
  });

describe("a pod that failed is told by the cluster's own reason", () => {
  test.each<[string, Pod, string, boolean]>([
    [
      "Evicted",
      pod({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." }),
      "backend_lost",
      true,
    ],
    [
      "Evicted",
      pod({
        phase: "Failed",
        reason: "Evicted",
        message: "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
      }),
      "no_space",
      false,
    ],
    ["OOMKilled", own({ terminated: { exitCode: 137, reason: "OOMKilled" } }), "limit_exceeded", false],
    ["PreemptionByScheduler", target("PreemptionByScheduler"), "backend_lost", true],
    ["DeletionByTaintManager", target("DeletionByTaintManager"), "backend_lost", true],
    ["EvictionByEvictionAPI", target("EvictionByEvictionAPI"), "backend_lost", true],
    [
      "DeadlineExceeded",
      pod({
        phase: "Failed",
        reason: "DeadlineExceeded",
        message: "Pod was active on the node longer than the specified deadline",
      }),
      "limit_exceeded",
      false,
    ],
    [
      "OutOfcpu",
      pod({ phase: "Failed", reason: "OutOfcpu", message: "Pod Node didn't have enough resource: cpu" }),
      "unavailable",
      true,
    ],
    [
      "NodeShutdown",
      pod({
        phase: "Failed",
        reason: "NodeShutdown",
        message: "Pod was terminated in response to imminent node shutdown.",
      }),
      "backend_lost",
      true,
    ],
    ["NodeLost", pod({ phase: "Unknown" }), "backend_lost", true],
    ["Deleted", pod({ phase: "Running" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }), "backend_lost", false],
    [
      "ErrImagePull",
      waiting("ErrImagePull", 'rpc error: failed to resolve reference "x": not found'),
      "not_found",
      false,
    ],
    [
      "ErrImagePull",
      waiting("ErrImagePull", "pull access denied, repository does not exist or may require authorization"),
      "not_found",
      false,
    ],
    ["ErrImagePull", waiting("ErrImagePull", "failed to authorize: 401 Unauthorized"), "unauthenticated", false],
    ["ErrImagePull", waiting("ErrImagePull", "dial tcp: i/o timeout"), "unavailable", true],
    ["ImagePullBackOff", waiting("ImagePullBackOff", "Back-off pulling image"), "unavailable", true],
    ["InvalidImageName", waiting("InvalidImageName"), "invalid_argument", false],
    ["ErrImageNeverPull", waiting("ErrImageNeverPull"), "not_found", false],
    [
      "CreateContainerConfigError",
      waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
      "invalid_argument",
      false,
    ],
    [
      "StartError",
      own({ terminated: { exitCode: 128, reason: "StartError", message: "exec /x: no such file or directory" } }),
      "invalid_argument",
      false,
    ],
    [
      "Error",
      own({ terminated: { exitCode: 1, reason: "Error", message: "exec format error" } }),
      "invalid_argument",
      false,
    ],
    ["Completed", own({ terminated: { exitCode: 0, reason: "Completed" } }), "backend_lost", false],
  ])("%s %#", (reason, given, code, retryable) => {
    const error = podFailure(given);
    expect(error).toMatchObject({ code, reason, retryable, backend: "kubernetes" });
    expect(error?.message).toContain(reason);
    expect(error?.message).toContain("node-1");
  });

  test("an init container's failure is its own, and its success is none", () => {
    const init = (exitCode: number): Pod =>
      pod({
        phase: "Pending",
        initContainerStatuses: [{ name: "first", state: { terminated: { exitCode, reason: "Error" } } }],
      });
    expect(podFailure(init(1))?.message).toContain("the init container first failed");
    expect(podFailure(init(0))).toBeUndefined();
  });

  test("one that starts or runs has not failed", () => {
    expect(podFailure(pod({ phase: "Pending" }))).toBeUndefined();
    expect(podFailure(waiting("ContainerCreating"))).toBeUndefined();
    const running = own({ running: {} }, "Running");
    expect(podFailure(running)).toBeUndefined();
    expect(isRunning(running)).toBe(true);
    expect(isRunning(waiting("ContainerCreating"))).toBe(false);
  });

  test("one that no node has room for waits, with the scheduler's words", () => {
    const conditions = [
      {
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message: "0/1 nodes are available: 1 Insufficient cpu.",
      },
    ] as const;
    const queued: Pod = { metadata: { name: "p" }, status: { phase: "Pending", conditions: [...conditions] } };
    expect(podFailure(queued)).toBeUndefined();
    expect(schedulingDelay(queued)).toMatchObject({ code: "unavailable", reason: "Unschedulable", retryable: true });
    expect(schedulingDelay(queued)?.message).toContain("Insufficient cpu");
    expect(schedulingDelay(pod({ phase: "Pending" }))).toBeUndefined();
  });
});

describe("a Job without a pod", () => {
  const event = (message: string): object => ({ metadata: { name: "e" }, reason: "FailedCreate", message });
  test.each<[string, string]>([
    [
      'Error creating: pods "x" is forbidden: exceeded quota: small, requested: memory=2Gi, used: memory=0, limited: memory=1Gi',
      "limit_exceeded",
    ],
    [
      'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": seccompProfile',
      "permission_denied",
    ],
    [
      'Error creating: pods "x" is forbidden: error looking up service account team/none: serviceaccount "none" not found',
      "permission_denied",
    ],
    ['Error creating: Pod "x" is invalid: spec.containers[0].image: Required value', "invalid_argument"],
  ])("%s", async (message, code) => {
    await using api = await startScriptedApi((_request, response) =>
      json(response, 200, { items: [event(message)], metadata: {} }),
    );
    expect(await jobFailure(api.client(), "x")).toMatchObject({ code, reason: "FailedCreate" });
    expect(decodeURIComponent(api.seen[0]?.url ?? "")).toContain("involvedObject.kind=Job,involvedObject.name=x");
  });

  test("is not known to have failed where events may not be read, until the Job says so", async () => {
    const conditions = [{ type: "Failed", status: "True", reason: "DeadlineExceeded", message: "too long" }];
    let isOver = false;
    await using api = await startScriptedApi(({ url }, response) => {
      if (url.includes("/events")) failure(response, 403, "Forbidden", "no");
      else json(response, 200, { metadata: { name: "x" }, status: isOver ? { conditions } : {} });
    });
    expect(await jobFailure(api.client(), "x")).toBeUndefined();
    isOver = true;
    expect(await jobFailure(api.client(), "x")).toMatchObject({ code: "limit_exceeded", reason: "DeadlineExceeded" });
  });
});

describe("a pod that no longer answers", () => {
  const running = own({ running: {} }, "Running");
  const lossOf = async (found: object | undefined, ready?: string, events: object[] = []): Promise<unknown> => {
    await using api = await startScriptedApi(({ url }, response) => {
      if (url.includes("/events?")) return json(response, 200, { items: url.includes("uid%3D7") ? events : [] });
      if (url.startsWith("/api/v1/nodes/")) {
        if (ready === undefined) failure(response, 403, "Forbidden", "no");
        else
          json(response, 200, {
            metadata: { name: "node-1" },
            status: { conditions: [{ type: "Ready", status: ready, reason: "NodeStatusUnknown" }] },
          });
      } else if (found === undefined) failure(response, 404, "NotFound", "no");
      else json(response, 200, found);
    });
    return await podLoss(api.client(), { name: "p", uid: "7" });
  };

  test("is deleted, replaced, ended, cut off or still there", async () => {
    expect(await lossOf(undefined)).toMatchObject({ code: "backend_lost", reason: "Deleted" });
    expect(await lossOf({ ...running, metadata: { name: "p", uid: "8" } })).toMatchObject({ code: "backend_lost" });
    expect(await lossOf(own({ terminated: { exitCode: 137, reason: "OOMKilled" } }))).toMatchObject({
      code: "limit_exceeded",
    });
    expect(await lossOf(running, "Unknown")).toMatchObject({ code: "unavailable", reason: "NodeStatusUnknown" });
    expect(await lossOf(running, "True")).toBeUndefined();
    expect(await lossOf(running)).toBeUndefined();
  });

  test.each([
    ["Preempted", "Preempted by team/urgent on node node-1", "higher priority"],
    ["TaintManagerEviction", "Marking for deletion Pod team/p", "taint"],
  ])("and was taken away has the cluster's own reason: %s", async (reason, message, hint) => {
    const events = ["Scheduled", reason, "Killing"].map((each) => ({
      metadata: { name: each },
      reason: each,
      message,
    }));
    expect(await lossOf(undefined, undefined, events)).toMatchObject({
      ...{ code: "backend_lost", reason, retryable: true },
      message: expect.stringContaining(`${reason}: ${message}`) as unknown,
      hint: expect.stringContaining(hint) as unknown,
    });
  });
});
