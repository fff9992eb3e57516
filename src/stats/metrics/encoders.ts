import { usageOf } from '../../lib/process-usage.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { AllStreams } from './all-streams.ts';
import { counter, gauge, type Family, type Labels, type Sample } from './family.ts';

/** Reuse of readings from /proc: all families of one scrape share them. */
const FRESH_MS = 500;

interface Run {
  readonly input: InputStream;
  readonly pid: number | undefined;
  readonly queuedSeconds: number;
}

export interface Encoders {
  readonly running: Iterable<Run>;
  readonly started: number;
  readonly died: number;
  /** Seconds of media that the encoders of a stream have put out. */
  mediaSeconds(input: InputStream): number;
}

interface Usage {
  readonly labels: Labels;
  processes: number;
  cpuSeconds: number;
  residentBytes: number;
  queuedSeconds: number;
  mediaSeconds: number;
}

export function encoderFamilies(encoders: Encoders, streams: AllStreams): Family[] {
  const cpu = new ChildCpu();
  let latest: { readonly at: number; readonly usages: readonly Usage[] } | undefined;
  const read = (): readonly Usage[] => {
    const at = performance.now();
    if (latest === undefined || at - latest.at > FRESH_MS) latest = { at, usages: usages(encoders, streams, cpu) };
    return latest.usages;
  };
  const each = (value: (usage: Usage) => number) => (): Sample[] =>
    read().map((usage) => ({ sharedLabels: usage.labels, value: value(usage) }));
  return [
    counter('kiln_encoder_starts_total', 'Encoder processes that were started.', () => encoders.started),
    counter(
      'kiln_encoder_deaths_total',
      'Encoder processes that ended though they were not to, and were started again.',
      () => encoders.died,
    ),
    gauge(
      'kiln_encoder_processes',
      'Encoder processes of a stream.',
      each(({ processes }) => processes),
    ),
    counter(
      'kiln_encoder_cpu_seconds_total',
      'CPU time of the encoders of a stream.',
      each(({ cpuSeconds }) => cpuSeconds),
    ),
    gauge(
      'kiln_encoder_resident_memory_bytes',
      'Resident memory of the encoders of a stream.',
      each(({ residentBytes }) => residentBytes),
    ),
    counter(
      'kiln_encoder_media_seconds_total',
      'Media that the encoders of a stream have put out: they keep up when it grows by a second each second.',
      each(({ mediaSeconds }) => mediaSeconds),
    ),
    gauge(
      'kiln_encoder_queue_seconds',
      'Media of a stream that waits for its encoders.',
      each(({ queuedSeconds }) => queuedSeconds),
    ),
  ];
}

function usages(encoders: Encoders, streams: AllStreams, cpu: ChildCpu): Usage[] {
  const all = new Map<Labels, Usage>();
  const counted = new Set<InputStream>();
  const pids = new Set<number>();
  for (const { input, pid, queuedSeconds } of encoders.running) {
    const labels = streams.labelsOf(input);
    const none = { labels, processes: 0, cpuSeconds: 0, residentBytes: 0, queuedSeconds: 0, mediaSeconds: 0 };
    const usage = all.get(labels) ?? none;
    all.set(labels, usage);
    usage.processes++;
    usage.queuedSeconds = Math.max(usage.queuedSeconds, queuedSeconds);
    usage.residentBytes += cpu.note(input, pid);
    if (pid !== undefined) pids.add(pid);
    if (counted.has(input)) continue;
    counted.add(input);
    usage.mediaSeconds += encoders.mediaSeconds(input);
  }
  for (const input of counted) {
    const usage = all.get(streams.labelsOf(input));
    if (usage !== undefined) usage.cpuSeconds += cpu.of(input, pids);
  }
  return [...all.values()];
}

interface StreamCpu {
  /** Seconds of children that have ended, as far as they were measured. */
  ended: number;
  /** Seconds of children that run, by process id. */
  readonly running: Map<number, number>;
}

class ChildCpu {
  readonly #streams = new WeakMap<InputStream, StreamCpu>();

  /** @returns resident memory of the process, in bytes */
  note(input: InputStream, pid: number | undefined): number {
    const usage = pid === undefined ? undefined : usageOf(pid);
    if (pid === undefined || usage === undefined) return 0;
    const cpu = this.#streams.get(input) ?? { ended: 0, running: new Map<number, number>() };
    this.#streams.set(input, cpu);
    const before = cpu.running.get(pid) ?? 0;
    // less than before: another process with the same id
    if (usage.cpuSeconds < before) cpu.ended += before;
    cpu.running.set(pid, usage.cpuSeconds);
    return usage.residentBytes;
  }

  /** @param pids of all running children: any other known one has ended */
  of(input: InputStream, pids: ReadonlySet<number>): number {
    const cpu = this.#streams.get(input);
    if (cpu === undefined) return 0;
    for (const [pid, seconds] of cpu.running) {
      if (pids.has(pid)) continue;
      cpu.ended += seconds;
      cpu.running.delete(pid);
    }
    return [...cpu.running.values()].reduce((sum, seconds) => sum + seconds, cpu.ended);
  }
}
