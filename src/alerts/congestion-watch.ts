import type { Application } from '../core/application.ts';
import type { Queue } from '../core/queue.ts';
import type { Alert, AlertMessage, Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { queueEntry, type Queues, type QueueState } from '../stats/queues.ts';
import { ENDED, GOOD } from './recovery.ts';

const LOOK_MS = 2000;
/** Consecutive looks after which a congested queue counts. */
const LOOKS = 2;
/** Calm looks in a row after which the stream has recovered: a slow reader drops, catches up, and falls behind again. */
const CALM_LOOKS = 15;
/** Part of the incoming packets or bytes dropped from which a queue counts as congested, however short it is. */
const DROPPED_PART = 0.1;

type Stream = InputStream | OutputStream;

interface Congested {
  readonly application: Application;
  readonly named: ReadonlySet<Queue>;
  /** Consecutive looks in which none of its queues was congested. */
  calm: number;
}

/** Raises an alert when queues of a stream become congested, when further ones do, and when none is congested any more. */
export class CongestionWatch {
  readonly #registry: Registry;
  readonly #queues: Queues;
  readonly #isOn: () => boolean;
  readonly #node: string;
  readonly #timer: NodeJS.Timeout;
  readonly #streams = new Map<Stream, Congested>();
  /** Consecutive looks in which each queue was congested. */
  #looks: ReadonlyMap<Queue, number> = new Map();

  /** @param isOn whether the rule is configured at present @param node id of this node */
  constructor(registry: Registry, queues: Queues, isOn: () => boolean, node: string) {
    this.#registry = registry;
    this.#queues = queues;
    this.#isOn = isOn;
    this.#node = node;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const congested = this.#isOn() ? [...this.#queues.all()].filter(isCongested) : [];
    this.#looks = new Map(congested.map(({ queue }) => [queue, (this.#looks.get(queue) ?? 0) + 1]));
    const lasting = congested.filter(({ queue }) => (this.#looks.get(queue) ?? 0) >= LOOKS);
    const byStream = Map.groupBy(lasting, ({ stream }) => stream);
    for (const [stream, states] of byStream) this.#congested(stream, states);
    const busy = new Set(congested.map(({ stream }) => stream));
    for (const [stream, known] of this.#streams) {
      known.calm = busy.has(stream) ? 0 : known.calm + 1;
      if (stream.closed) this.#recovered(stream, known, ENDED);
      else if (known.calm >= CALM_LOOKS || !this.#isOn()) this.#recovered(stream, known, GOOD);
    }
  }

  #congested(stream: Stream, states: readonly QueueState[]): void {
    const [{ application }] = states as [QueueState];
    const queues = states.map(({ queue }) => queue);
    const known = this.#streams.get(stream);
    const named = new Set([...(known?.named ?? []), ...queues]);
    if (named.size === known?.named.size) return;
    this.#streams.set(stream, { application, named, calm: 0 });
    const messages = [
      {
        code: 'INTERNAL_QUEUE_CONGESTION',
        description: `Internal queues are congested: ${states.map(describe).join(', ')}`,
      },
    ];
    this.#raise(stream, { application, messages, queues: states.map((state) => queueEntry(state, this.#node)) });
  }

  #recovered(stream: Stream, { application }: Congested, message: AlertMessage): void {
    this.#streams.delete(stream);
    this.#raise(stream, { application, messages: [message], resolved: true });
  }

  #raise(stream: Stream, alert: Omit<Alert, 'stream' | 'name' | 'type'>): void {
    this.#registry.emit('alert', { ...alert, stream, name: stream.name, type: 'INTERNAL_QUEUE' });
  }
}

function isCongested({ queue: { size }, threshold, input, dropped }: QueueState): boolean {
  return (threshold > 0 && size > threshold) || dropped > DROPPED_PART * input;
}

function describe({ queue: { kind, size }, threshold, dropped }: QueueState): string {
  const drops = dropped > 0 ? `, ${Math.round(dropped)} dropped per second` : '';
  return `${kind} (size ${size}, threshold ${threshold}${drops})`;
}
