import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Cluster, Json } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import { StreamDirectory } from '../../../src/directory/stream-directory.ts';
import { StreamNames } from '../../../src/directory/stream-names.ts';
import { ClusterTasks } from '../../../src/tasks/cluster-tasks.ts';
import type { Task, TaskKind, PlacedKind } from '../../../src/tasks/kind.ts';
import { Tasks } from '../../../src/tasks/tasks.ts';
import { addVhost, type VhostShape } from '../server/live.ts';

const STEP_MS = 2;

/**
 * What a fake task does: `fail` does so at once, `end` after it has begun, `wait` acts until it is stopped, `follow` does
 * so through changes of its spec, and `hang` is never said to work.
 */
export interface FakeSpec {
  readonly does: 'wait' | 'follow' | 'fail' | 'end' | 'hang';
}

export class FakeFailure extends Error {
  override readonly name = 'FakeFailure';
}

/** A kind whose tasks tell, every few milliseconds, that they run; progress counts the runs. */
export class FakeKind implements PlacedKind {
  readonly name = 'fake';
  readonly running = new Map<string, Task>();
  /** By id of the task. */
  readonly runs = new Map<string, number>();
  /** The specs that its runs heard of. */
  readonly heard: Json[] = [];
  readonly #act: (task: Task, at: bigint) => void;

  /** @param act is told a time at which the task was this node's: it may be called later, by a process that stood still */
  constructor(act: (task: Task, at: bigint) => void = () => {}) {
    this.#act = act;
  }

  writeFailure(error: unknown): Json | undefined {
    return error instanceof FakeFailure ? error.message : undefined;
  }

  readFailure(failure: Json): FakeFailure {
    return new FakeFailure(`elsewhere: ${String(failure)}`);
  }

  async run(task: Task): Promise<void> {
    const { id } = task.name;
    const { does } = task.spec as unknown as FakeSpec;
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
    if (does === 'fail') throw new FakeFailure('it fails');
    this.running.set(id, task);
    if (does !== 'hang') task.started();
    if (does === 'follow') task.changed((spec) => this.heard.push(spec));
    task.keep(Number(task.progress ?? 0) + 1);
    try {
      if (does === 'end') return;
      while (!task.signal.aborted) {
        const at = process.hrtime.bigint();
        if (task.valid) this.#act(task, at);
        await delay(STEP_MS, undefined, { signal: task.signal }).catch(() => undefined);
      }
    } finally {
      this.running.delete(id);
    }
  }
}

/** Tasks of a node with the application `app`, and nothing around them. */
export function openTasks<K extends TaskKind>(cluster: Cluster, kind: K, shape: VhostShape = {}) {
  const log = pino({ level: 'silent' });
  const registry = new Registry();
  addVhost(registry, shape);
  const directory = new StreamDirectory({ cluster, registry });
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const changes = new StreamChanges(registry, directory);
  const names = new StreamNames({ cluster, registry, changes, log });
  const tasks = new Tasks({ cluster, registry, calls, log });
  tasks.add(kind);
  tasks.start();
  const everywhere = new ClusterTasks({ cluster, tasks, others, calls, log });
  return { cluster, registry, directory, names, others, calls, tasks, everywhere, kind };
}

export function fakeName(id: string) {
  return { kind: 'fake', vhost: 'default', app: 'app', id };
}
