/** Reports activity to the service at regular intervals; returns the function that ends it. */
export function keepAlive(refresh: () => Promise<void>, everyMs: number, warn: (message: string) => void): () => void {
  const timer = setInterval(() => {
    refresh().catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      warn(`Could not report to Daytona that the sandbox is in use: ${message}`);
    });
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
