import { isBelow } from './keys.ts';
import type { Owner, OwnerChange } from './types.ts';

type Listener = (changes: readonly OwnerChange[]) => void;

interface Watcher {
  readonly path: string;
  readonly listener: Listener;
  /** Changes that were not delivered yet, with only the last state of each key. */
  pending: Map<string, Owner | undefined> | undefined;
}

/** Watchers of the owners of keys. Each is called once per turn of the event loop, with everything that has changed. */
export class Watchers {
  readonly #watchers = new Set<Watcher>();

  /** @param present what there is now: delivered first, even if it is empty. Returns its undo. */
  add(path: string, present: ReadonlyMap<string, Owner>, listener: Listener): () => void {
    const watcher: Watcher = { path, listener, pending: undefined };
    this.#watchers.add(watcher);
    this.#queue(watcher, present);
    return () => {
      watcher.pending = undefined;
      this.#watchers.delete(watcher);
    };
  }

  notify(changes: ReadonlyMap<string, Owner | undefined>): void {
    for (const watcher of this.#watchers) {
      const own = [...changes].filter(([key]) => isBelow(key, watcher.path));
      if (own.length > 0) this.#queue(watcher, new Map(own));
    }
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.pending = undefined;
    this.#watchers.clear();
  }

  #queue(watcher: Watcher, changes: ReadonlyMap<string, Owner | undefined>): void {
    if (watcher.pending !== undefined) {
      for (const [key, owner] of changes) watcher.pending.set(key, owner);
      return;
    }
    watcher.pending = new Map(changes);
    setImmediate(() => {
      const { pending } = watcher;
      watcher.pending = undefined;
      if (pending !== undefined) watcher.listener([...pending].map(([key, owner]) => ({ key, owner })));
    });
  }
}
