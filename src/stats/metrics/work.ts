import { counter, gauge, type Family, type Labels, type Sample } from './family.ts';

export interface Work {
  readonly counts: {
    readonly kinds: ReadonlyMap<
      string,
      { readonly started: number; readonly failed: number; readonly takenOver: number }
    >;
  };
  running(): Iterable<{ readonly name: { readonly kind: string } }>;
}

/** States of a channel: plays its schedule, its fallback program or nothing, or waits for its sources. */
export const CHANNEL_STATES = ['playing', 'fallback', 'silent', 'waiting'] as const;

export interface RunningChannel {
  readonly labels: Labels;
  readonly state: (typeof CHANNEL_STATES)[number];
}

export function workFamilies(work: Work, channels: () => Iterable<RunningChannel>): Family[] {
  const { kinds } = work.counts;
  const each = (value: (counts: { started: number; failed: number; takenOver: number }) => number) => (): Sample[] =>
    Array.from(kinds, ([kind, counts]) => ({ labels: { kind }, value: value(counts) }));
  return [
    gauge(
      'kiln_tasks_running',
      'Tasks that run on this node, by kind; channels and pulled streams are tasks, too.',
      () => running(work),
    ),
    counter(
      'kiln_task_runs_total',
      'Runs of tasks that have begun on this node.',
      each(({ started }) => started),
    ),
    counter(
      'kiln_task_failures_total',
      'Runs of tasks that have failed on this node, and are tried again.',
      each(({ failed }) => failed),
    ),
    counter(
      'kiln_task_takeovers_total',
      'Tasks that this node goes on with after another one.',
      each(({ takenOver }) => takenOver),
    ),
    gauge('kiln_channel_state', 'What a channel of this node does: 1 for the state that it is in.', () =>
      states(channels()),
    ),
  ];
}

function running(work: Work): Sample[] {
  const counts = new Map(Array.from(work.counts.kinds.keys(), (kind) => [kind, 0]));
  for (const { name } of work.running()) counts.set(name.kind, (counts.get(name.kind) ?? 0) + 1);
  return Array.from(counts, ([kind, value]) => ({ labels: { kind }, value }));
}

function* states(channels: Iterable<RunningChannel>): Iterable<Sample> {
  for (const { labels, state } of channels)
    for (const one of CHANNEL_STATES) yield { labels: { ...labels, state: one }, value: Number(one === state) };
}
