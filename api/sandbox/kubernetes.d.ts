declare function createKubernetesSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare const kubernetes: Backend;

export { KubernetesOptions, KubernetesPodTemplate, KubernetesToleration, createKubernetesSandbox, kubernetes };
