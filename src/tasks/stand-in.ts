import type { Application } from '../core/application.ts';
import type { Logger } from '../log/log.ts';
import { isSameTask, type TaskDefinition } from './definition.ts';
import type { PlacedKind, Standby, Task } from './kind.ts';

/** Time within which a run has to get ready: the media that it plays may have a key frame every 15 seconds. */
const READY_MS = 20_000;
/** How long a run is kept ready: until then its owner has handed it over, or has died. */
const KEPT_MS = 30_000;

/** A run of another node's task that is ready on this node, in case the task comes here. */
export class StandIn {
  /** Resolves with whether the run could be made ready. Never rejects. */
  readonly ready: Promise<boolean>;
  readonly #definition: TaskDefinition;
  readonly #application: Application;
  readonly #warn: (reason: string) => void;
  #standby: Standby | undefined;
  readonly #over = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout;
  #isReady = false;
  #isOver = false;

  constructor(
    standBy: NonNullable<PlacedKind['standBy']>,
    { name, definition, application }: Pick<Task, 'name' | 'application'> & { readonly definition: TaskDefinition },
    log: Logger,
  ) {
    this.#definition = definition;
    this.#application = application;
    this.#warn = (reason) => log.warn({ ...name, reason }, "the run of another node's task cannot be made ready here");
    this.#timer = setTimeout(() => {
      this.#warn(`it was not ready within ${READY_MS / 1000} seconds`);
      this.close();
    }, READY_MS).unref();
    this.ready = this.#getReady(() => standBy({ name, spec: definition.spec, application }));
  }

  /** Whether it is a run of this task that was neither taken nor closed. */
  isFor(definition: TaskDefinition): boolean {
    return !this.#isOver && isSameTask(this.#definition, definition);
  }

  /** Keeps it ready for longer. */
  keep(): void {
    if (this.#isOver || !this.#isReady) return;
    clearTimeout(this.#timer);
    this.#timer = this.#closeIn(KEPT_MS);
  }

  /** Takes its run, if it is one of that task in that application; otherwise closes it. */
  take(definition: TaskDefinition, application: Application): ((task: Task) => Promise<void>) | undefined {
    if (!this.isFor(definition) || application !== this.#application || application.closed) {
      this.close();
      return undefined;
    }
    this.#end();
    const standby = this.#standby;
    return standby && ((task) => standby.run(task));
  }

  /** Idempotent. */
  close(): void {
    if (this.#isOver) return;
    this.#end();
    this.#standby?.close();
  }

  async #getReady(standBy: () => Standby): Promise<boolean> {
    try {
      this.#standby = standBy();
      await Promise.race([this.#standby.ready, this.#over.promise]);
      this.#isReady = !this.#isOver;
      this.keep();
      return this.#isReady;
    } catch (error) {
      if (!this.#isOver) this.#warn((error as Error).message);
      this.close();
      return false;
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#over.resolve();
    clearTimeout(this.#timer);
  }

  #closeIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.close(), ms).unref();
  }
}
