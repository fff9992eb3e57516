import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { kilnError } from '../errors.ts';
import { checkPresent, type PlayRequest } from './request.ts';
import type { WaitingOfOne } from './waiting-of-one.ts';

/** Output streams that are to come on other nodes. */
export interface StartingElsewhere {
  /** Whether an output stream of another node is to come, as far as this node knows. */
  isStarting(application: Application, name: string): boolean;
  /** Where another node has an output stream, as far as this node knows. */
  known(application: Application, name: string): object | undefined;
  /** Calls the listener when either may have changed. Returns its undo. */
  listen(listener: (name: { readonly vhost: string; readonly app: string }) => void): () => void;
}

/** How long a viewer of a stream that is starting waits at most, from its request on. */
export const HOLD_MS = 10_000;
/** How many may wait at once. */
const MAX_WAITING = 10_000;

/** One waiting viewer. */
interface Waiter {
  readonly application: Application;
  readonly name: string;
  readonly settle: (isThere: boolean) => void;
}

/** Holds the viewers of an output stream that is starting, until it has started. */
export class Starting {
  readonly #elsewhere: StartingElsewhere;
  readonly #waiters = new Set<Waiter>();
  readonly #ofOne: WaitingOfOne;
  readonly #changed = new Set<Application>();
  #looking: NodeJS.Immediate | undefined;
  readonly #undo: readonly (() => void)[];

  /** @param ofOne counts who waits here, too */
  constructor(registry: Registry, elsewhere: StartingElsewhere, ofOne: WaitingOfOne) {
    this.#ofOne = ofOne;
    this.#elsewhere = elsewhere;
    const onOutput = (_output: unknown, application: Application): void => this.#lookSoon(application);
    const onStarting = (application: Application): void => this.#lookSoon(application);
    registry.on('output', onOutput).on('starting', onStarting);
    this.#undo = [
      () => registry.off('output', onOutput).off('starting', onStarting),
      elsewhere.listen(({ vhost, app }) => {
        const application = registry.vhosts.get(vhost)?.applications.get(app);
        if (application !== undefined) this.#lookSoon(application);
      }),
    ];
  }

  /** How many viewers wait. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /**
   * Waits for an output stream that was not found.
   * @returns true when it can be looked up again; false, at once, when it is not to come
   * @throws tooManyWaiting, clientGone
   */
  wait(application: Application, name: string, { signal, client }: PlayRequest): Promise<boolean> | boolean {
    checkPresent(signal);
    const answer = this.#answer(application, name);
    if (answer !== undefined) return answer;
    if (this.#waiters.size >= MAX_WAITING) throw kilnError('tooManyWaiting');
    const leaveOne = this.#ofOne.enter(client.realAddress);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(late);
        signal?.removeEventListener('abort', onGone);
        this.#waiters.delete(waiter);
        leaveOne();
      };
      const settle = (isThere: boolean): void => {
        leave();
        resolve(isThere);
      };
      const onGone = (): void => {
        leave();
        reject(kilnError('clientGone'));
      };
      const late = setTimeout(settle, HOLD_MS, false).unref();
      const waiter = { application, name, settle };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onGone, { once: true });
    });
  }

  /** Ends every wait. Idempotent. */
  close(): void {
    for (const undo of this.#undo) undo();
    clearImmediate(this.#looking);
    for (const { settle } of [...this.#waiters]) settle(false);
  }

  /** Once for all changes of a turn: of a node that dies thousands of streams change at once. */
  #lookSoon(changed: Application): void {
    if (this.#waiters.size === 0) return;
    this.#changed.add(changed);
    this.#looking ??= setImmediate(() => this.#look());
  }

  #look(): void {
    this.#looking = undefined;
    const changed = new Set(this.#changed);
    this.#changed.clear();
    // thousands may wait for one stream, and each answer takes a look at all inputs of the application
    const answers = new Map<Application, Map<string, boolean | undefined>>();
    for (const { application, name, settle } of [...this.#waiters]) {
      if (!changed.has(application)) continue;
      const known = answers.get(application) ?? new Map<string, boolean | undefined>();
      answers.set(application, known);
      if (!known.has(name)) known.set(name, this.#answer(application, name));
      const isThere = known.get(name);
      if (isThere !== undefined) settle(isThere);
    }
  }

  /** Whether an output stream is there; undefined while it is starting. */
  #answer(application: Application, name: string): boolean | undefined {
    if (this.#isThere(application, name)) return true;
    return this.#isStarting(application, name) ? undefined : false;
  }

  #isThere(application: Application, name: string): boolean {
    const output = application.output(name);
    return output === undefined ? this.#elsewhere.known(application, name) !== undefined : output.tracks.length > 0;
  }

  #isStarting(application: Application, name: string): boolean {
    if (application.closed) return false;
    return application.isStarting(name) || this.#elsewhere.isStarting(application, name);
  }
}
