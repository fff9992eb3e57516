import { usageOf } from '../../lib/process-usage.ts';
import { counter, gauge, type Family, type Sample } from './family.ts';

export interface MediaWorkers {
  readonly workers: readonly { readonly index: number; readonly pid: number; readonly sessions: number }[];
  /** Number that died and were replaced. */
  readonly died: number;
}

/** Metrics of the processes that encrypt and fan out WebRTC. */
export function mediaWorkerFamilies(pool: MediaWorkers): Family[] {
  const each = (value: (worker: MediaWorkers['workers'][number]) => number | undefined) => (): Sample[] =>
    pool.workers.flatMap((worker) => {
      const read = value(worker);
      return read === undefined ? [] : [{ labels: { worker: String(worker.index) }, value: read }];
    });
  return [
    counter(
      'kiln_media_worker_cpu_seconds_total',
      'CPU time of a media worker of WebRTC: one core is the most that it can use.',
      each(({ pid }) => usageOf(pid)?.cpuSeconds),
    ),
    gauge(
      'kiln_media_worker_resident_memory_bytes',
      'Resident memory of a media worker of WebRTC.',
      each(({ pid }) => usageOf(pid)?.residentBytes),
    ),
    gauge(
      'kiln_media_worker_sessions',
      'Sessions of publishers and viewers at a media worker of WebRTC.',
      each(({ sessions }) => sessions),
    ),
    counter(
      'kiln_media_worker_deaths_total',
      'Media workers that died and were replaced: their viewers were disconnected.',
      () => pool.died,
    ),
  ];
}
