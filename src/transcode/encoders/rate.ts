import type { VideoEncoding } from '../encoding.ts';

/** Longer than any interval that is asked for: key frames come where they are forced. */
export const LONG_GOP = '9999';

/** A bitrate that is kept within each second, so that a link is not overrun. */
export function constantRate({ bitrate }: VideoEncoding): string[] {
  const rate = String(bitrate);
  return ['-b:v', rate, '-maxrate', rate, '-bufsize', rate];
}

/** Options of libraries that take them as one list. */
export function listed(options: ReadonlyArray<readonly [string, string | number]>): string {
  return options.map(([name, value]) => `${name}=${value}`).join(':');
}

/** Options as arguments of their own. */
export function spread(options: ReadonlyArray<readonly [string, string]>): string[] {
  return options.flatMap(([name, value]) => [`-${name}:v`, value]);
}
