import Type from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { StreamKind, StreamTask } from '../../../src/tasks/kind.ts';
import type { openTasks } from './fake-task.ts';
import { VIDEO } from '../server/live.ts';
import { until } from '../time/until.ts';

const Total = Type.Object({
  /** Packets that all runs have counted. */
  total: Type.Number(),
  /** Of the run. */
  sequence: Type.Number(),
});

/** What a task counts, and `until` how many. */
export interface CountingSpec {
  readonly stream: string;
  readonly until?: number;
}

/** A packet that a run has counted: `number` is its own among all packets of a test. */
export interface Count {
  readonly task: string;
  readonly fence: number;
  readonly number: number;
  readonly total: number;
}

export function readTotal(progress: unknown): { readonly total: number; readonly sequence: number } {
  return Value.Check(Total, progress) ? progress : { total: 0, sequence: 0 };
}

/** Counts the packets of a stream, from where the run before has left it. */
export class CountingKind implements StreamKind {
  readonly name = 'counting';
  readonly running = new Map<string, StreamTask>();
  /** With what each run began. */
  readonly begun: { readonly total: number; readonly sequence: number; readonly fence: number }[] = [];
  /** How often anybody asked what a task follows. */
  asked = 0;
  readonly #onCount: (count: Count) => void;
  readonly #keepEvery: number;

  /** @param keepEvery how many packets go between what a run keeps; its end keeps in any case */
  constructor(onCount: (count: Count) => void = () => {}, keepEvery = 10) {
    this.#onCount = onCount;
    this.#keepEvery = keepEvery;
  }

  follows(spec: Json): string | undefined {
    this.asked += 1;
    return (spec as unknown as Partial<CountingSpec>).stream;
  }

  async run(task: StreamTask): Promise<void> {
    const { id } = task.name;
    const limit = (task.spec as unknown as CountingSpec).until ?? Infinity;
    const before = readTotal(task.progress);
    let { total } = before;
    const sequence = before.sequence + 1;
    this.begun.push({ total, sequence, fence: task.fence });
    const keep = (): void => task.keep({ total, sequence });
    const { promise: over, resolve } = Promise.withResolvers<void>();
    task.signal.addEventListener('abort', () => resolve(), { once: true });
    const reader = task.output.read({
      packet: (packet) => {
        if (!task.valid || total >= limit) return;
        total += 1;
        this.#onCount({ task: id, fence: task.fence, number: Number(packet.dts), total });
        if (total % this.#keepEvery === 0) keep();
        if (total >= limit) resolve();
      },
    });
    task.show(() => ({ total, sequence }));
    this.running.set(id, task);
    try {
      await over;
    } finally {
      this.running.delete(id);
      reader.close();
      keep();
    }
  }
}

type Node = Pick<ReturnType<typeof openTasks>, 'names' | 'registry'>;

/** A publisher's stream on a node, under a name that is its own in the cluster; waits until that is free. */
export async function publish({ names, registry }: Node, stream: string, app = 'app'): Promise<OutputStream> {
  const application = registry.vhost('default').application(app);
  const options = { replace: false, maxConnections: 0, silence: 'continue' } as const;
  const input = await until('the name is free', () =>
    names.publish(application, stream, { type: 'Rtmp', kind: 'rtmp' }, options).catch(() => undefined),
  );
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, stream);
  output.setTracks([VIDEO]);
  application.announce(output);
  return output;
}

let last = 0;

/** Writes packets, each with a number that no other has. */
export function write(output: OutputStream, count: number): void {
  for (let n = 0; n < count; n++) {
    last += 1;
    output.write({ track: VIDEO, dts: last, pts: last, duration: 1, key: true, data: Buffer.alloc(1) });
  }
}

export function countingName(id: string, app = 'app') {
  return { kind: 'counting', vhost: 'default', app, id };
}
