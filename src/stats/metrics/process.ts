import { readdir, readFile } from 'node:fs/promises';
import { counter, gauge, type Family, type Sample } from './family.ts';

export function processFamilies(): Family[] {
  return [
    counter('kiln_process_cpu_seconds_total', 'CPU time of the server process, without its children.', cpu),
    gauge('kiln_process_resident_memory_bytes', 'Resident memory of the server process.', () =>
      process.memoryUsage.rss(),
    ),
    gauge('kiln_process_heap_bytes', 'JavaScript heap, used and reserved.', heap),
    gauge('kiln_process_buffers_bytes', 'Memory of buffers outside the JavaScript heap.', () => {
      return process.memoryUsage().arrayBuffers;
    }),
    gauge('kiln_process_open_fds', 'Open file descriptors, sockets included.', () => openDescriptors()),
    gauge('kiln_process_max_fds', 'Most file descriptors that the process may open.', () => mostDescriptors()),
    gauge('kiln_process_start_time_seconds', 'When the process was started, in seconds since 1970.', () => {
      return (performance.timeOrigin ?? 0) / 1000;
    }),
  ];
}

function cpu(): Sample[] {
  const { user, system } = process.cpuUsage();
  return [
    { labels: { mode: 'user' }, value: user / 1e6 },
    { labels: { mode: 'system' }, value: system / 1e6 },
  ];
}

function heap(): Sample[] {
  const { heapUsed, heapTotal } = process.memoryUsage();
  return [
    { labels: { state: 'used' }, value: heapUsed },
    { labels: { state: 'total' }, value: heapTotal },
  ];
}

/** Reads asynchronously: there may be many thousands. None without /proc. */
async function openDescriptors(): Promise<Sample[]> {
  const fds = await readdir('/proc/self/fd').catch(() => undefined);
  return fds === undefined ? [] : [{ value: fds.length }];
}

async function mostDescriptors(): Promise<Sample[]> {
  const limits = await readFile('/proc/self/limits', 'latin1').catch(() => '');
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? [] : [{ value: Number(soft) }];
}
