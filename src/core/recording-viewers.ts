import { kilnError } from '../errors.ts';
import { RecentSet } from '../lib/recent-set.ts';
import { Flow } from './counters.ts';
import type { Session } from './session.ts';

const MAX_KICKED = 10_000;

/** Viewers of an application's recordings on this node. The streams that they play need not be live. */
export class RecordingViewers {
  /** By stream. */
  readonly #sessions = new Map<string, Set<Session>>();
  readonly #kicked = new RecentSet<string>(MAX_KICKED);

  /**
   * Lists a viewer.
   * @param stream output stream that was recorded
   * @param close disconnects the viewer
   * @returns where what it is sent is counted, and the undo
   */
  add(stream: string, id: string, close: () => void): { readonly out: Flow; readonly leave: () => void } {
    const createdTime = Date.now();
    const out = new Flow(createdTime);
    const kick = (): void => {
      this.keepOut(stream, id);
      close();
    };
    const session: Session = { id, kind: 'playback', createdTime, out, kick };
    const sessions = this.#sessions.get(stream) ?? new Set();
    this.#sessions.set(stream, sessions);
    sessions.add(session);
    const leave = (): void => {
      sessions.delete(session);
      if (sessions.size === 0 && this.#sessions.get(stream) === sessions) this.#sessions.delete(stream);
    };
    return { out, leave };
  }

  /** Sessions that play a stream. A player that asks for several files at a time may have several of one id. */
  of(stream: string): Session[] {
    return [...(this.#sessions.get(stream) ?? [])];
  }

  /** Rejects an id from now on. Returns its undo, which does nothing if it was rejected before. */
  keepOut(stream: string, id: string): () => void {
    const key = keyOf(stream, id);
    if (this.#kicked.has(key)) return () => {};
    this.#kicked.add(key);
    return () => void this.#kicked.delete(key);
  }

  /** @throws sessionRefused for a session that was ended by the server */
  check(stream: string, id: string): void {
    if (this.#kicked.has(keyOf(stream, id))) throw kilnError('sessionRefused', id);
  }
}

function keyOf(stream: string, id: string): string {
  return JSON.stringify([stream, id]);
}
