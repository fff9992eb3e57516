import type { OutputStream } from './stream.ts';

const TIMEOUT_MS = 3000;

/** Whether a stream knows its tracks, which it may take some time for. */
export function isStarted(output: OutputStream): Promise<boolean> | boolean {
  if (output.tracks.length > 0 || output.closed) return !output.closed;
  return new Promise((resolve) => {
    const settle = (): void => {
      clearTimeout(late);
      output.off('tracks', settle).off('close', settle);
      resolve(output.tracks.length > 0 && !output.closed);
    };
    const late = setTimeout(settle, TIMEOUT_MS);
    output.on('tracks', settle).on('close', settle);
  });
}
