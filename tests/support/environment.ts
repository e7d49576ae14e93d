/** Sets variables of the environment, or takes them away; gives what puts them back. */
export function setEnv(env: Readonly<Record<string, string | undefined>>): () => void {
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  const set = (values: Readonly<Record<string, string | undefined>>): void => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(env);
  return () => set(before);
}

/** Runs with these variables of the environment, and as before afterwards. */
export async function withEnv<T>(
  env: Readonly<Record<string, string | undefined>>,
  work: () => Promise<T>,
): Promise<T> {
  const restore = setEnv(env);
  try {
    return await work();
  } finally {
    restore();
  }
}
