import type { Json, Lease } from '#cluster';
import type { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { PlacedKind, Standby, StreamKind, Task } from '../../../src/tasks/kind.ts';
import { VIDEO } from '../server/live.ts';

/** A run that ends when the test says so, or when its signal aborts. */
export interface HeldRun {
  readonly task: Task;
  /** Completes the task, or fails with an error. */
  readonly end: (error?: Error) => void;
}

class HeldRuns {
  readonly name = 'held';
  readonly runs: HeldRun[] = [];
  /** Runs go on after their signal has aborted. */
  isSlow = false;
  /** Called at the beginning of each run. */
  onRun: (task: Task) => void = () => {};

  get last(): HeldRun | undefined {
    return this.runs.at(-1);
  }

  async run(task: Task): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.runs.push({ task, end: (error) => (error === undefined ? resolve() : reject(error)) });
    task.signal.addEventListener('abort', () => {
      if (!this.isSlow) resolve();
    });
    this.onRun(task);
    await promise;
  }
}

/** Tasks for any node, whose runs the test ends. */
export class HeldKind extends HeldRuns implements PlacedKind {
  /** Stand-ins that were closed. */
  closed = 0;

  standBy(): Standby {
    return { ready: Promise.resolve(), run: (task) => this.run(task), close: () => void (this.closed += 1) };
  }

  writeFailure(): Json | undefined {
    return undefined;
  }

  readFailure(): Error {
    return new Error('it failed elsewhere');
  }
}

/** Tasks beside the stream `live`, whose runs the test ends. */
export class HeldStreamKind extends HeldRuns implements StreamKind {
  follows(): string {
    return 'live';
  }
}

/** A lease of the key that is held until the test loses it. */
export class FakeLease implements Lease {
  readonly key = 'task/held/default/app/one';
  readonly inherited: Json | undefined;
  readonly meta = null;
  readonly #lost = new AbortController();
  readonly signal = this.#lost.signal;
  readonly fence: number;
  readonly kept: Json[] = [];
  isReleased = false;

  constructor(fence = 1, inherited?: Json) {
    this.fence = fence;
    this.inherited = inherited;
  }

  get valid(): boolean {
    return !this.isReleased && !this.signal.aborted;
  }

  lose(): void {
    this.#lost.abort(new Error('the lease was lost'));
  }

  async update(): Promise<void> {}

  async keep(value: Json): Promise<void> {
    this.kept.push(value);
  }

  async release(): Promise<void> {
    this.isReleased = true;
  }
}

/** Publishes the stream `live` on a node without a cluster. */
export function publishLive(registry: Registry): OutputStream {
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: true, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'live');
  output.setTracks([VIDEO]);
  application.announce(output);
  return output;
}
