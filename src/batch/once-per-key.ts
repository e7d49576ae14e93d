/** Lets the first work under a key run alone: what it prepares, the others find. If it fails, the next one is the first. */
export class OncePerKey {
  readonly #prepared = new Set<string>();
  readonly #preparing = new Map<string, Promise<unknown>>();

  async first<T>(key: string, work: () => Promise<T>): Promise<T> {
    while (!this.#prepared.has(key)) {
      const other = this.#preparing.get(key);
      if (other === undefined) return await this.#prepare(key, work);
      await other.catch(() => undefined);
    }
    return await work();
  }

  async #prepare<T>(key: string, work: () => Promise<T>): Promise<T> {
    const preparing = work();
    this.#preparing.set(key, preparing);
    try {
      const made = await preparing;
      this.#prepared.add(key);
      return made;
    } finally {
      this.#preparing.delete(key);
    }
  }
}
