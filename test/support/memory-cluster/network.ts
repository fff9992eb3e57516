import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../soak/random.ts';

/** The end of a connection that is not a node. */
export const STORE = 'the store';

/** No answer came in time. */
export class SilenceError extends Error {}

/** There is no way from one end to the other. */
export class CutError extends Error {}

/**
 * What lies between nodes, and between them and the store. Messages from one end to another arrive in order, after a
 * random time, or never. What is done to it is undone by `heal`; randomness is seeded.
 */
export class Network {
  /** The longest a message takes, in milliseconds. */
  latencyMs = 4;
  /** The share of messages that are lost. */
  loss = 0;
  readonly #random: Random;
  readonly #cuts = new Set<string>();
  /** What is under way, in the order in which it was sent. */
  readonly #ways = new Map<string, { latest: number; readonly messages: (() => void)[] }>();
  /** What came to, or was to leave, ends that stand still. */
  readonly #held = new Map<string, (() => void)[]>();
  readonly #onCut = new Set<() => void>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Cuts each of the first off from each of the others, in both directions. */
  cut(some: readonly string[], others: readonly string[]): void {
    for (const a of some) for (const b of others) if (a !== b) this.#cuts.add(pair(a, b));
    for (const tell of this.#onCut) tell();
  }

  heal(): void {
    this.#cuts.clear();
    this.loss = 0;
  }

  reaches(from: string, to: string): boolean {
    return !this.#cuts.has(pair(from, to));
  }

  /** Calls `tell` at every cut. Returns its undo. */
  onCut(tell: () => void): () => void {
    this.#onCut.add(tell);
    return () => this.#onCut.delete(tell);
  }

  /** An end stands still: what it sends and what is sent to it waits. */
  pause(end: string): void {
    this.#held.set(end, []);
  }

  resume(end: string): void {
    const held = this.#held.get(end) ?? [];
    this.#held.delete(end);
    for (const run of held) run();
  }

  paused(end: string): boolean {
    return this.#held.has(end);
  }

  /** Runs `deliver` at the other end, some time later or never. */
  send(from: string, to: string, deliver: () => void): void {
    const held = this.#held.get(from);
    if (held !== undefined) return void held.push(() => this.send(from, to, deliver));
    if (!this.reaches(from, to) || this.#random.chance(this.loss)) return;
    const name = `${from} to ${to}`;
    const way = this.#ways.get(name) ?? { latest: 0, messages: [] };
    this.#ways.set(name, way);
    const now = performance.now();
    way.latest = Math.max(now + 1 + this.#random.below(this.latencyMs), way.latest);
    way.messages.push(deliver);
    setTimeout(() => {
      const first = way.messages.shift();
      if (first !== undefined && this.reaches(from, to)) this.#arrive(to, first);
    }, way.latest - now);
  }

  /**
   * Runs `answer` at the other end and brings back what it answers.
   * @throws CutError soon when there is no way; SilenceError, after which it may have run; what `answer` throws
   */
  async call<T>(from: string, to: string, answer: () => Promise<T> | T, timeoutMs: number): Promise<T> {
    if (!this.paused(from) && !this.reaches(from, to)) {
      // as a connection that is refused: who tries again at once does not stop the time
      await delay(1);
      throw new CutError(`${to} cannot be reached from ${from}`);
    }
    return await new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => reject(new SilenceError(`${to} does not answer ${from}`)), timeoutMs);
      const back = (settle: () => void): void =>
        this.send(to, from, () => {
          clearTimeout(timer);
          settle();
        });
      this.send(from, to, () => {
        new Promise<T>((done) => done(answer())).then(
          (value) => back(() => resolve(value)),
          (error: unknown) => back(() => reject(error)),
        );
      });
    });
  }

  #arrive(end: string, deliver: () => void): void {
    const held = this.#held.get(end);
    if (held === undefined) deliver();
    else held.push(() => this.#arrive(end, deliver));
  }
}

function pair(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}
