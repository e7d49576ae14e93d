import type { Habits } from "./habits.js";
import { KINDS, type Kind } from "./kinds.js";
import type { Kubelet } from "./kubelet.js";
import { now, type Store, type Stored } from "./store.js";

/** What the controllers of a cluster do: pods for Jobs, Jobs that end, and the removal of what has no owner. */
export class Controllers {
  readonly #store: Store;
  readonly #kubelet: Kubelet;
  readonly #habits: Habits;
  readonly #off: () => void;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(store: Store, kubelet: Kubelet, habits: Habits) {
    this.#store = store;
    this.#kubelet = kubelet;
    this.#habits = habits;
    this.#off = store.on(({ type, object }) => {
      if (type === "DELETED") this.#orphaned(object);
      else if (object.kind === "Job" && type === "ADDED") this.#soon(10, () => this.#startPod(object));
      else if (object.kind === "Pod" && type === "ADDED") void this.#kubelet.take(object);
      else if (object.kind === "Pod") this.#soon(10, () => this.#follow(object));
    });
  }

  stop(): void {
    this.#off();
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** Deletes an object as the server does, with all that depends on it. */
  delete(object: Stored, propagation: string, grace: number | undefined): void {
    if (propagation === "Orphan") {
      for (const owned of this.#store.ownedBy(object.metadata.uid)) {
        this.#store.update(owned, (copy) => {
          delete copy.metadata.ownerReferences;
        });
      }
    }
    if (object.kind !== "Pod") {
      this.#store.remove(object);
      return;
    }
    const seconds = grace ?? object["spec"].terminationGracePeriodSeconds ?? 30;
    if (seconds > 0 && object.metadata.deletionTimestamp === undefined) {
      this.#store.update(object, (copy) => {
        copy.metadata.deletionTimestamp = now();
      });
    }
    // With no grace it is gone at once, before its processes are.
    if (seconds === 0) this.#store.remove(object);
    void this.#kubelet.stop(object);
  }

  #startPod(job: Stored): void {
    if (this.#current(job) === undefined) return;
    const { name, namespace = "", uid } = job.metadata;
    const pods = this.#store
      .list("Pod", namespace)
      .filter(({ status }) => !["Succeeded", "Failed"].includes(status?.phase));
    if (pods.length >= this.#habits.mostPods) {
      const used = `used: pods=${pods.length}, limited: pods=${this.#habits.mostPods}`;
      const message = `Error creating: pods "${name}-" is forbidden: exceeded quota: pods, requested: pods=1, ${used}`;
      this.#kubelet.event(job, "Warning", "FailedCreate", message);
      this.#soon(500, () => this.#startPod(job));
      return;
    }
    const { template } = job["spec"] as {
      template: { metadata?: { labels?: object; annotations?: object }; spec: object };
    };
    this.#store.create(kindOf("Pod"), namespace, podBody(template, name, uid));
    this.#store.update(job, (copy) => {
      copy["status"] = { active: 1, startTime: now() };
    });
    const { activeDeadlineSeconds } = job["spec"];
    if (activeDeadlineSeconds !== undefined) this.#soon(activeDeadlineSeconds * 1_000, () => this.#tooLong(job));
  }

  #follow(pod: Stored): void {
    const owner = pod.metadata.ownerReferences?.[0];
    const job = owner && this.#store.find("Job", pod.metadata.namespace ?? "", owner.name);
    const phase = this.#store.find("Pod", pod.metadata.namespace ?? "", pod.metadata.name)?.["status"]?.phase;
    if (job === undefined || job["status"]?.conditions !== undefined) return;
    if (phase === "Succeeded") this.#end(job, "Complete", { succeeded: 1 });
    if (phase === "Failed")
      this.#end(job, "Failed", { failed: 1 }, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
  }

  #tooLong(job: Stored): void {
    const current = this.#current(job);
    if (current === undefined || current["status"]?.conditions !== undefined) return;
    for (const pod of this.#store.ownedBy(job.metadata.uid)) this.delete(pod, "Background", undefined);
    this.#end(current, "Failed", { failed: 1 }, "DeadlineExceeded", "Job was active longer than specified deadline");
  }

  #end(job: Stored, type: string, count: object, reason?: string, message?: string): void {
    this.#store.update(job, (copy) => {
      copy["status"] = {
        ...copy["status"],
        active: 0,
        ...count,
        conditions: [{ type, status: "True", lastTransitionTime: now(), ...(reason && { reason, message }) }],
      };
    });
    const { ttlSecondsAfterFinished } = job["spec"];
    if (ttlSecondsAfterFinished === undefined) return;
    this.#soon(ttlSecondsAfterFinished * 1_000, () => {
      const current = this.#current(job);
      if (current) this.delete(current, "Background", undefined);
    });
  }

  #orphaned({ metadata }: Stored): void {
    this.#soon(10, () => {
      for (const owned of this.#store.ownedBy(metadata.uid)) this.delete(owned, "Background", undefined);
    });
  }

  #current(job: Stored): Stored | undefined {
    const found = this.#store.find(job.kind, job.metadata.namespace ?? "", job.metadata.name);
    return found?.metadata.uid === job.metadata.uid ? found : undefined;
  }

  #soon(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    timer.unref();
    this.#timers.add(timer);
  }
}

/** The pod of a Job's template, with the labels by which it is found. */
function podBody(
  template: { metadata?: { labels?: object; annotations?: object }; spec: object },
  job: string,
  uid: string,
): Record<string, unknown> {
  return {
    metadata: {
      generateName: `${job}-`,
      labels: { ...template.metadata?.labels, "controller-uid": uid, "job-name": job },
      ...(template.metadata?.annotations && { annotations: template.metadata.annotations }),
      ownerReferences: [
        { apiVersion: "batch/v1", kind: "Job", name: job, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: structuredClone(template.spec),
    status: { phase: "Pending" },
  };
}

function kindOf(kind: string): Kind {
  return KINDS.find((each) => each.kind === kind) as Kind;
}
