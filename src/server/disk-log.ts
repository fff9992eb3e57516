import type { DiskCalls } from '../core/disk-calls.ts';
import type { Logger } from '../log/log.ts';

/** Logs when disks of media cease to answer, and when they are back. @returns a function that ends this */
export function logDisks(calls: DiskCalls, log: Logger): () => void {
  const onSlow = (folder: string): void =>
    log.warn(
      { event: 'disk.slow', folder },
      'a disk does not answer: live streams go on, and what cannot be written is left out',
    );
  const onBack = (folder: string, ms: number): void => {
    const seconds = Math.round(ms / 1000);
    log.info({ event: 'disk.back', folder, seconds }, `the disk answers again after ${seconds} s`);
  };
  calls.on('slow', onSlow).on('back', onBack);
  return () => void calls.off('slow', onSlow).off('back', onBack);
}
